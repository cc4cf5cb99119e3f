// From a tensor's bad elements back to the ops that made them.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"

namespace sherlorch {

// One record in the history of the target.
struct Visit {
  OpRecord* record = nullptr;
  std::vector<ElementSet> wanted;    // per output: the elements that reach the target
  const Visit* next = nullptr;       // the op that read it on the shortest way to the target; null: the target itself
  std::size_t next_input = 0;        // by which of its inputs
  OpRecord* first_reader = nullptr;  // the earliest op in the history that read it; null: only the target does
  std::uint32_t distance = 0;        // ops between it and the target
  bool accidental = false;           // some of it reaches the target other than as an infinity that was asked for
};

struct History {
  std::unordered_map<OpRecord*, Visit> visits;
  std::vector<Visit*> culprits;  // introduced something that reaches the target, or an origin; in the order they ran
  std::vector<Visit*>
      deliberate;  // fills and masks whose infinities reach the target, or the culprit that made something else of them
  std::uint64_t unmapped = 0;  // ops without an element map on the way
};

// What the target reads: the edges of its own bad elements.
struct TargetRead {
  Geometry geometry;
  std::vector<ReadEdge> edges;
};

// Walks back from the target. `visible(seq)` is false for ops outside the trace that asks; they count as origins.
// REQUIRES: graph.mutex is held. Cost: linear in the ops of the history, each visited once however many ways lead to
// it.
History trace_back(const Graph& graph, const TargetRead& target, const std::function<bool(OpSeq)>& visible);

}  // namespace sherlorch
