// The path from a culprit to the target: ops, the views between them, transitions, and one chain of elements.
#pragma once

#include <cstdint>
#include <vector>

#include "core/diagnose/step_builder.h"

namespace sherlorch {

// What a path ends in.
struct PathEnd {
  const TargetRead& read;
  const OpRecord* via = nullptr;             // the view through which the target is seen, if any
  const FinitenessCounts* counts = nullptr;  // of the target
};

// The last op on the way from `first` to the target that ran in the same autograd node; `first` itself outside of
// nodes. To the user an autograd node is one step.
const Visit* end_of_node(const Visit& first);

class PathBuilder {
 public:
  // `elements` may be null. REQUIRES: the graph's lock is held while it is used.
  PathBuilder(Graph& graph, const StepBuilder& steps, StepElements* elements)
      : graph_(graph), steps_(steps), elements_(elements) {}

  // Fills in culprit->path, and transition and element of culprit->step, which is the first step of the path and stands
  // for all ops from `first` to end_of_node(first). Of a very long path the middle is left out, but for its
  // transitions; Step::folded says how many ops are missing.
  void build(const Visit& first, const PathEnd& end, Culprit* culprit) const;

 private:
  void add_views(const Visit& visit, const PathEnd& end, std::vector<Step>* path) const;
  std::vector<std::int64_t> element_chain(const std::vector<const Visit*>& hops, const TargetRead& target) const;
  // The elements of `visit`'s output that `wanted`, elements of its reader's output, come from.
  ElementSet sources_of(const Visit& visit, const ElementSet& wanted) const;

  Graph& graph_;
  const StepBuilder& steps_;
  StepElements* elements_;
};

}  // namespace sherlorch
