// From a tensor's bad elements back to the ops that made them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/graph/graph.h"

namespace sherlorch {

// The classes among some bad elements.
struct Kinds {
  bool nan = false;
  bool pos_inf = false;
  bool neg_inf = false;
  bool none() const noexcept { return !nan && !pos_inf && !neg_inf; }
};

// What lies between a record and the target that takes the certainty away.
struct Doubts {
  std::uint64_t folded = 0;    // ops that were let go, and with them which elements they read
  std::uint32_t unmapped = 0;  // ops without an element map that read good elements beside the bad ones
  bool number = false;         // the value was a Python number for a while
};

// One set an output, of which there is at least one. That of a single one, as most ops have it, takes no block of its
// own.
class WantedElements {
 public:
  explicit WantedElements(std::size_t outputs)
      : all_(outputs > 1 ? std::make_unique<std::vector<ElementSet>>(outputs) : nullptr) {}

  std::size_t size() const noexcept { return all_ == nullptr ? 1 : all_->size(); }
  ElementSet& operator[](std::size_t output) noexcept { return all_ == nullptr ? one_ : (*all_)[output]; }
  const ElementSet& operator[](std::size_t output) const noexcept { return begin()[output]; }
  const ElementSet* begin() const noexcept { return all_ == nullptr ? &one_ : all_->data(); }
  const ElementSet* end() const noexcept { return begin() + size(); }

 private:
  ElementSet one_;
  std::unique_ptr<std::vector<ElementSet>> all_;  // null: there is one
};

// One record in the history of the target. Of a long one there are many, and pages that were never touched are dear.
struct Visit {
  explicit Visit(OpRecord* visited) : record(visited), wanted(visited->outputs.size()) {}

  OpRecord* record;
  WantedElements wanted;        // the elements that reach the target
  const Visit* next = nullptr;  // the op that read it on the shortest way to the target; null: the target itself
  const Visit* first_reader = nullptr;  // the earliest op in the history that read it; null: only the target does
  std::uint64_t folded = 0;             // ops that were let go between it and `next`
  std::uint32_t next_input = 0;         // by which of its inputs `next` read it
  std::uint32_t distance = 0;           // ops between it and the target
  bool accidental = false;              // some of it reaches the target other than as an infinity that was asked for
  Kinds kinds;                          // of all wanted elements
  Doubts doubts;                        // on the way to the target

  // The output whose elements matter most: the first with wanted elements.
  std::size_t shown_output() const noexcept {
    std::size_t shown = 0;
    while (shown + 1 < wanted.size() && wanted[shown].empty()) ++shown;
    return shown;
  }
};

struct History {
  std::vector<Visit> visits;     // of all records, in the order in which they were met
  std::vector<Visit*> culprits;  // introduced something that reaches the target, or an origin; in the order they ran
  // Fills and masks whose infinities reach the target, or the culprit that made something else of them.
  std::vector<Visit*> deliberate;
  std::uint64_t unmapped = 0;  // ops without an element map on the way
};

// What the target reads: the edges of its own bad elements.
struct TargetRead {
  Geometry geometry;
  ReadEdges edges;
};

// The edges of these bad elements of a tensor, as far as `visible` ops wrote them; the rest goes into `unexplained`.
// REQUIRES: graph.mutex is held.
TargetRead read_target(const Graph& graph, StorageKey storage, const Geometry& geometry, const ElementSet& bad,
                       const std::function<bool(OpSeq)>& visible, ElementSet* unexplained);

// Walks back from the target. `visible(seq)` is false for ops outside the trace that asks; they count as origins.
// REQUIRES: graph.mutex is held. Cost: linear in the ops of the history, each visited once however many ways lead to
// it.
History trace_back(const Graph& graph, const TargetRead& target, const std::function<bool(OpSeq)>& visible);

}  // namespace sherlorch
