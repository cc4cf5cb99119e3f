// One culprit of a history: what it is called, where its value came from, its witness, words, path and doubts.
#pragma once

#include "core/diagnose/culprit_origin.h"
#include "core/diagnose/path_builder.h"

namespace sherlorch {

// Why a value in memory that this op wrote is not certain under sample=.
std::string in_part_text(const std::string& writer);

class CulpritBuilder {
 public:
  // REQUIRES: the graph's lock is held while it is used. `elements` may be null.
  CulpritBuilder(Graph& graph, const View& view, const StepBuilder& steps, StepElements* elements)
      : graph_(graph), view_(view), steps_(steps), origins_(graph, view, steps), paths_(graph, steps, elements) {}

  // Step, origin and stack: what it takes to know whether two culprits are one. `shown` becomes the visit that is
  // blamed: the visit itself, or of an origin the first op of the history that read it; null if only the target did.
  Culprit identify(const Visit& visit, const Visit** shown) const;

  // All the rest. REQUIRES: culprit and shown come from identify(visit), and shown is not null.
  void tell(const Visit& visit, const Visit& shown, const PathEnd& end, Culprit* culprit) const;

  // What takes the certainty away, put into words. For a culprit that only the target has read, `shown` is null.
  void doubt(const Visit* visit, const Visit* shown, Culprit* culprit) const;

  const OriginTeller& origins() const { return origins_; }

 private:
  Graph& graph_;
  const View& view_;
  const StepBuilder& steps_;
  OriginTeller origins_;
  PathBuilder paths_;
};

}  // namespace sherlorch
