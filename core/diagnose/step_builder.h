// Turns records and flight-recorder entries into the steps that reports show.
#pragma once

#include <span>

#include "core/diagnose/diagnose.h"
#include "core/diagnose/trace_back.h"

namespace sherlorch {

class StepBuilder {
 public:
  StepBuilder(const Graph& graph, const View& view) : graph_(graph), view_(view) {}

  // Of the output whose elements matter most: the first with wanted elements; the first one if `wanted`, one set an
  // output, is empty.
  Step of_record(const OpRecord& record, std::span<const ElementSet> wanted) const;
  // A view of `geometry`, which holds these bad elements.
  Step of_view(const OpRecord& record, const BadElements& bad) const;
  Step of_flight(const FlightHeader& op) const;
  // Fills in shape, dtype and counts of a tensor.
  void describe(const TensorFacts& facts, const BadElements& bad, Step* step) const;

  // The parameter, buffer or gradient to which this memory belonged when op `seq` used it; empty if there is none, or
  // if there are several, or if its address may have been that of another storage then.
  StorageLabel label(const TensorFacts& facts, OpSeq seq) const;
  SourceLocation location(SiteId site) const;
  std::string op_name(OperatorId op) const;

 private:
  void name(OperatorId op, Step* step) const;
  std::string label_of_output(const OpRecord& record, const TensorFacts& facts) const;

  const Graph& graph_;
  const View& view_;
};

FinitenessCounts counts_of(const BadElements& bad, const Geometry& geometry);

// What happened to the value between a step that held `before` and the next, which held `after` (null: it was finite).
Transition transition_between(const Kinds* before, const Kinds& after);

// The witness, operands, cause and words of a culprit. `last` is the last op of the autograd node in which `visit` ran,
// or `visit` itself. `last_writer`: who had written what was then changed from outside torch.
void explain_culprit(const Graph& graph, const View& view, const Visit& visit, const Visit& last,
                     const std::string& last_writer, Culprit* culprit);

// The words of a culprit that only the target has read.
void explain_unread(const std::string& last_writer, Culprit* culprit);

// The words for an op that wrote the bytes as another dtype.
void explain_reinterpreted(Culprit* culprit);

}  // namespace sherlorch
