// A set of elements of one tensor, by row-major linear index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/inline_vector.h"

namespace sherlorch {

// Half-open range of linear indices.
struct Run {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Run&) const = default;
};

// Sorted, disjoint, non-adjacent runs. Where a set would need more than kMaxRuns of them it turns coarse: runs are
// widened to multiples of a growing power of two until they fit, so a coarse set holds every element that was put in
// and maybe neighbours of them, never fewer. Even a coarse set never reaches before its first element or past its last:
// first() stays exact, and every member is a valid index of the tensor.
//
// Indices are not negative. Not thread-safe for writers. Appending is amortised O(1).
class ElementSet {
 public:
  // Chosen: 65,536 runs are 1 MiB, which keeps a half-bad tensor of 100,000 elements exact.
  static constexpr std::size_t kMaxRuns = std::size_t{1} << 16;

  ElementSet() = default;
  static ElementSet range(std::int64_t begin, std::int64_t end);
  // From indices in any order, with repetitions.
  static ElementSet of(std::vector<std::int64_t> indices);

  // Appends a run; an empty one (begin >= end) changes nothing. REQUIRES: begin is not before the end of the last run
  // (runs arrive in order).
  void append(std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    if (!runs_.empty() && begin <= runs_.back().end) {
      if (end > runs_.back().end) runs_.back().end = end;
    } else if (shift_ == 0 && runs_.size() < kMaxRuns) {
      runs_.push_back({begin, end});
    } else {
      append_coarse(begin, end);
    }
  }
  // The same for many runs at once, which costs little more than copying them. `edges` is where they begin and end in
  // turn. REQUIRES: as for append(), and each edge is larger than the one before it; their number is even.
  void append_edges(std::span<const std::int64_t> edges);
  // Takes [begin, end) out. Finding it is O(log n), closing the gap moves the runs behind it. A set that is full stays
  // as it is where a run would have to be split.
  void remove(std::int64_t begin, std::int64_t end);
  // Widens runs, as above, until there are at most `max_runs` of them (at least 1).
  void coarsen_to(std::size_t max_runs);

  bool empty() const noexcept { return runs_.empty(); }
  std::int64_t count() const noexcept;
  std::int64_t first() const noexcept { return runs_.empty() ? -1 : runs_.front().begin; }
  bool contains(std::int64_t index) const noexcept;
  bool intersects(const ElementSet& other) const noexcept {
    return !runs_.empty() && !other.runs_.empty() && share_an_element(other);
  }
  bool coarse() const noexcept { return coarse_; }
  void mark_coarse() noexcept { coarse_ = true; }
  std::span<const Run> runs() const noexcept { return runs_; }
  // What it takes beside itself: nothing for a single run.
  std::size_t bytes() const noexcept { return runs_.heap_bytes(); }

  // Calls f(index) for each element, in order; stops early when f returns false.
  template <typename F>
  void for_each(F&& f) const {
    for (const Run& run : runs_) {
      for (std::int64_t i = run.begin; i < run.end; ++i) {
        if (!f(i)) return;
      }
    }
  }

  friend ElementSet set_union(const ElementSet& a, const ElementSet& b);
  friend ElementSet set_intersection(const ElementSet& a, const ElementSet& b);
  friend ElementSet set_difference(const ElementSet& a, const ElementSet& b);
  bool operator==(const ElementSet& other) const { return runs_ == other.runs_; }

 private:
  bool share_an_element(const ElementSet& other) const noexcept;
  void append_coarse(std::int64_t begin, std::int64_t end);
  void merge_at_granularity();

  InlineVector<Run, 1> runs_;
  unsigned shift_ = 0;  // gaps are kept where they hold a whole multiple of 2^shift_; 0 while exact
  bool coarse_ = false;
};

// Linear in the number of runs. The result is coarse if an operand is. Union and intersection of coarse sets hold every
// element that they should. The difference takes a coarse `b` at its word, so that equal patterns cancel: elements of
// `a` that only b's widening covers are missing from it.
ElementSet set_union(const ElementSet& a, const ElementSet& b);
ElementSet set_intersection(const ElementSet& a, const ElementSet& b);
ElementSet set_difference(const ElementSet& a, const ElementSet& b);

}  // namespace sherlorch
