// One dimension's part in carrying elements across a relation. Internal to the relation engine.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/element_set.h"
#include "core/operators/relation.h"

namespace sherlorch {

// Sorts and merges.
void sort_runs(std::vector<Run>& runs);
// Appends, merging with the last run where the two touch. Empty runs change nothing.
void push_run(std::vector<Run>& runs, std::int64_t begin, std::int64_t end);
// REQUIRES: both sorted and merged.
std::vector<Run> intersect_runs(const std::vector<Run>& a, const std::vector<Run>& b);

// A link seen in one direction. Keeps pointers into the link, and into itself: not to be copied or moved.
class Axis {
 public:
  Axis(const Link& link, bool to_input, std::int64_t from_size, std::int64_t to_size);
  Axis(const Axis&) = delete;
  Axis& operator=(const Axis&) = delete;

  const int from_dim;
  const int to_dim;

  // The coordinates tied to at least one of [begin, end), sorted; adds what it cost to `work`. The reference is good
  // until the next call.
  const std::vector<Run>& image(std::int64_t begin, std::int64_t end, std::int64_t& work);

 private:
  enum class Mode : std::uint8_t { kSame, kWindow, kPoints, kLists };
  using Sizes = std::vector<std::int64_t>;

  void compute(std::int64_t begin, std::int64_t end, std::vector<Run>& runs, std::int64_t& work) const;
  void invert_window(const Link& link);
  void invert_points(const Sizes& points);
  void lists_of(const Sizes& keys, const Sizes& values);

  std::int64_t from_size_;
  std::int64_t to_size_;
  Mode mode_ = Mode::kSame;
  const Sizes* low_ = nullptr;   // kWindow, kPoints; the link's own or own_low_
  const Sizes* high_ = nullptr;  // kWindow
  Sizes own_low_, own_high_;
  Sizes offsets_, values_;  // kLists: those of coordinate c are values_[offsets_[c] .. offsets_[c + 1])
  Sizes always_;            // tied to every coordinate
  std::vector<Run> whole_, part_;
  bool whole_known_ = false;
};

}  // namespace sherlorch
