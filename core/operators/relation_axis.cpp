#include "core/operators/relation_axis.h"

#include <algorithm>

namespace sherlorch {

void sort_runs(std::vector<Run>& runs) {
  auto before = [](const Run& x, const Run& y) { return x.begin < y.begin; };
  if (!std::is_sorted(runs.begin(), runs.end(), before)) std::sort(runs.begin(), runs.end(), before);
  std::size_t kept = 0;
  for (const Run& run : runs) {
    if (run.begin >= run.end) continue;
    if (kept > 0 && run.begin <= runs[kept - 1].end) {
      runs[kept - 1].end = std::max(runs[kept - 1].end, run.end);
    } else {
      runs[kept++] = run;
    }
  }
  runs.resize(kept);
}

void push_run(std::vector<Run>& runs, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  if (!runs.empty() && begin >= runs.back().begin && begin <= runs.back().end) {
    runs.back().end = std::max(runs.back().end, end);
  } else {
    runs.push_back({begin, end});
  }
}

std::vector<Run> intersect_runs(const std::vector<Run>& a, const std::vector<Run>& b) {
  std::vector<Run> result;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    push_run(result, std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end));
    (a[i].end < b[j].end ? i : j)++;
  }
  return result;
}

Axis::Axis(const Link& link, bool to_input, std::int64_t from_size, std::int64_t to_size)
    : from_dim(to_input ? link.out_dim : link.in_dim),
      to_dim(to_input ? link.in_dim : link.out_dim),
      from_size_(from_size),
      to_size_(to_size) {
  switch (link.kind) {
    case Link::Kind::kSame:
      mode_ = Mode::kSame;
      break;
    case Link::Kind::kWindow:
      mode_ = Mode::kWindow;
      if (to_input) {
        low_ = &link.a;
        high_ = &link.b;
      } else {
        invert_window(link);
      }
      break;
    case Link::Kind::kPoints:
    case Link::Kind::kScatter:
      if ((link.kind == Link::Kind::kPoints) == to_input) {
        mode_ = Mode::kPoints;
        low_ = &link.a;
      } else {
        mode_ = Mode::kLists;
        invert_points(link.a);
      }
      break;
    case Link::Kind::kPairs:
      mode_ = Mode::kLists;
      lists_of(to_input ? link.a : link.b, to_input ? link.b : link.a);
      break;
  }
}

const std::vector<Run>& Axis::image(std::int64_t begin, std::int64_t end, std::int64_t& work) {
  if (begin == 0 && end == from_size_) {
    if (!whole_known_) {
      compute(begin, end, whole_, work);
      whole_known_ = true;
    }
    return whole_;
  }
  compute(begin, end, part_, work);
  return part_;
}

void Axis::compute(std::int64_t begin, std::int64_t end, std::vector<Run>& runs, std::int64_t& work) const {
  runs.clear();
  if (mode_ == Mode::kSame) {
    push_run(runs, begin, std::min(end, to_size_));
    work += 1;
    return;
  }
  work += end - begin;
  for (std::int64_t c = begin; c < end; ++c) {
    if (mode_ == Mode::kLists) {
      if (static_cast<std::size_t>(c) + 1 >= offsets_.size()) break;
      work += offsets_[c + 1] - offsets_[c];
      for (std::int64_t k = offsets_[c]; k < offsets_[c + 1]; ++k) push_run(runs, values_[k], values_[k] + 1);
      continue;
    }
    if (static_cast<std::size_t>(c) >= low_->size()) break;
    const std::int64_t low = (*low_)[c];
    if (mode_ == Mode::kWindow) {
      push_run(runs, std::max<std::int64_t>(low, 0), std::min((*high_)[c], to_size_));
    } else if (low == Link::kAll) {
      push_run(runs, 0, to_size_);
    } else if (low >= 0 && low < to_size_) {
      push_run(runs, low, low + 1);
    }
  }
  for (std::int64_t c : always_) push_run(runs, c, c + 1);
  sort_runs(runs);
}

// Both ends grow with the output coordinate, so the outputs whose window holds an input coordinate are a range as well.
void Axis::invert_window(const Link& link) {
  own_low_.assign(from_size_, 0);
  own_high_.assign(from_size_, 0);
  std::size_t first = 0;
  std::size_t last = 0;
  for (std::int64_t c = 0; c < from_size_; ++c) {
    while (first < link.b.size() && link.b[first] <= c) ++first;
    while (last < link.a.size() && link.a[last] <= c) ++last;
    own_low_[c] = static_cast<std::int64_t>(first);
    own_high_[c] = std::min(static_cast<std::int64_t>(last), to_size_);
  }
  low_ = &own_low_;
  high_ = &own_high_;
}

void Axis::invert_points(const Sizes& points) {
  offsets_.assign(from_size_ + 1, 0);
  const std::size_t usable = std::min(points.size(), static_cast<std::size_t>(to_size_));
  for (std::size_t k = 0; k < usable; ++k) {
    if (points[k] >= 0 && points[k] < from_size_) ++offsets_[points[k] + 1];
  }
  for (std::int64_t c = 0; c < from_size_; ++c) offsets_[c + 1] += offsets_[c];
  values_.resize(offsets_[from_size_]);
  Sizes next(offsets_.begin(), offsets_.end() - 1);
  for (std::size_t k = 0; k < usable; ++k) {
    const std::int64_t point = points[k];
    if (point == Link::kAll) always_.push_back(static_cast<std::int64_t>(k));
    if (point >= 0 && point < from_size_) values_[next[point]++] = static_cast<std::int64_t>(k);
  }
}

void Axis::lists_of(const Sizes& keys, const Sizes& values) {
  offsets_.assign(from_size_ + 1, 0);
  auto usable = [&](std::size_t k) {
    return keys[k] >= 0 && keys[k] < from_size_ && values[k] >= 0 && values[k] < to_size_;
  };
  const std::size_t count = std::min(keys.size(), values.size());
  for (std::size_t k = 0; k < count; ++k) {
    if (usable(k)) ++offsets_[keys[k] + 1];
  }
  for (std::int64_t c = 0; c < from_size_; ++c) offsets_[c + 1] += offsets_[c];
  values_.resize(offsets_[from_size_]);
  Sizes next(offsets_.begin(), offsets_.end() - 1);
  for (std::size_t k = 0; k < count; ++k) {
    if (usable(k)) values_[next[keys[k]]++] = values[k];
  }
}

}  // namespace sherlorch
