#include "core/base/element_set.h"

#include <algorithm>
#include <cstring>

namespace sherlorch {
namespace {

// The first run that ends after `index`: the only one that can hold it.
std::span<const Run>::iterator run_ending_after(std::span<const Run> runs, std::int64_t index) {
  return std::partition_point(runs.begin(), runs.end(), [index](const Run& run) { return run.end <= index; });
}

// An end rounded up, counted in units of 2^shift: as an index it could overflow. REQUIRES: end > 0.
std::int64_t end_in_units(std::int64_t end, unsigned shift) { return ((end - 1) >> shift) + 1; }

}  // namespace

ElementSet ElementSet::range(std::int64_t begin, std::int64_t end) {
  ElementSet set;
  set.append(begin, end);
  return set;
}

ElementSet ElementSet::of(std::vector<std::int64_t> indices) {
  std::sort(indices.begin(), indices.end());
  ElementSet set;
  for (const std::int64_t index : indices) set.append(index, index + 1);
  return set;
}

std::int64_t ElementSet::count() const noexcept {
  std::int64_t count = 0;
  for (const Run& run : runs_) count += run.end - run.begin;
  return count;
}

bool ElementSet::contains(std::int64_t index) const noexcept {
  const std::span<const Run> all = runs();
  const auto run = run_ending_after(all, index);
  return run != all.end() && run->begin <= index;
}

bool ElementSet::share_an_element(const ElementSet& other) const noexcept {
  auto a = runs_.begin();
  auto b = other.runs_.begin();
  while (a != runs_.end() && b != other.runs_.end()) {
    if (a->end <= b->begin) {
      ++a;
    } else if (b->end <= a->begin) {
      ++b;
    } else {
      return true;
    }
  }
  return false;
}

void ElementSet::append_edges(std::span<const std::int64_t> edges) {
  if (!edges.empty() && !runs_.empty() && edges[0] <= runs_.back().end) {
    runs_.back().end = edges[1];
    edges = edges.subspan(2);
  }
  const std::size_t size = runs_.size();
  if (shift_ == 0 && size + edges.size() / 2 <= kMaxRuns) {
    runs_.resize(size + edges.size() / 2);
    static_assert(sizeof(Run) == 2 * sizeof(std::int64_t));
    if (!edges.empty()) std::memcpy(static_cast<void*>(runs_.data() + size), edges.data(), edges.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < edges.size(); i += 2) append(edges[i], edges[i + 1]);
}

void ElementSet::remove(std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  const std::span<const Run> all = runs();
  auto first = runs_.begin() + (run_ending_after(all, begin) - all.begin());
  if (first == runs_.end() || first->begin >= end) return;
  if (first->begin < begin && end < first->end) {
    if (runs_.size() >= kMaxRuns) {
      coarse_ = true;
      return;
    }
    const Run rest{end, first->end};
    first->end = begin;
    runs_.insert(first + 1, rest);
    return;
  }
  if (first->begin < begin) (first++)->end = begin;
  auto last = first;
  while (last != runs_.end() && last->end <= end) ++last;
  if (last != runs_.end() && last->begin < end) last->begin = end;
  runs_.erase(first, last);
}

// A run that does not touch the last one, in a set that is coarse or about to be. The last run's end stays exact until
// another run follows, because no element past it is known to exist.
void ElementSet::append_coarse(std::int64_t begin, std::int64_t end) {
  if (runs_.size() >= kMaxRuns) {
    // Half, so that the next linear pass is at least kMaxRuns / 2 appends away.
    coarsen_to(kMaxRuns / 2);
  }
  Run& last = runs_.back();
  const std::int64_t end_unit = end_in_units(last.end, shift_);
  const std::int64_t begin_unit = begin >> shift_;
  if (begin_unit <= end_unit) {
    last.end = end;
  } else {
    last.end = end_unit << shift_;
    runs_.push_back({begin_unit << shift_, end});
  }
}

void ElementSet::coarsen_to(std::size_t max_runs) {
  max_runs = std::max<std::size_t>(max_runs, 1);
  if (runs_.size() <= max_runs) return;
  coarse_ = true;
  // 2^62 spans every pair of indices, so the loop ends with a single run at the latest.
  while (runs_.size() > max_runs && shift_ < 62) {
    ++shift_;
    merge_at_granularity();
  }
}

void ElementSet::merge_at_granularity() {
  std::size_t last = 0;
  for (std::size_t i = 1; i < runs_.size(); ++i) {
    const std::int64_t end_unit = end_in_units(runs_[last].end, shift_);
    const std::int64_t begin_unit = runs_[i].begin >> shift_;
    if (begin_unit <= end_unit) {
      runs_[last].end = runs_[i].end;
    } else {
      runs_[last].end = end_unit << shift_;
      runs_[++last] = {begin_unit << shift_, runs_[i].end};
    }
  }
  runs_.resize(last + 1);
}

ElementSet set_union(const ElementSet& a, const ElementSet& b) {
  ElementSet result;
  auto left = a.runs_.begin();
  auto right = b.runs_.begin();
  while (left != a.runs_.end() || right != b.runs_.end()) {
    const bool take_left = right == b.runs_.end() || (left != a.runs_.end() && left->begin <= right->begin);
    const Run& run = take_left ? *left++ : *right++;
    result.append(run.begin, run.end);
  }
  result.coarse_ = result.coarse_ || a.coarse_ || b.coarse_;
  return result;
}

ElementSet set_intersection(const ElementSet& a, const ElementSet& b) {
  ElementSet result;
  auto left = a.runs_.begin();
  auto right = b.runs_.begin();
  while (left != a.runs_.end() && right != b.runs_.end()) {
    result.append(std::max(left->begin, right->begin), std::min(left->end, right->end));
    if (left->end < right->end) {
      ++left;
    } else {
      ++right;
    }
  }
  result.coarse_ = result.coarse_ || a.coarse_ || b.coarse_;
  return result;
}

ElementSet set_difference(const ElementSet& a, const ElementSet& b) {
  ElementSet result;
  auto right = b.runs_.begin();
  for (const Run& run : a.runs_) {
    std::int64_t begin = run.begin;
    while (right != b.runs_.end() && right->end <= begin) ++right;
    // A run of b may reach into the next run of a, so this walk leaves `right` where it is.
    for (auto hole = right; hole != b.runs_.end() && hole->begin < run.end; ++hole) {
      result.append(begin, hole->begin);
      begin = hole->end;
    }
    result.append(begin, run.end);
  }
  result.coarse_ = result.coarse_ || a.coarse_ || b.coarse_;
  return result;
}

}  // namespace sherlorch
