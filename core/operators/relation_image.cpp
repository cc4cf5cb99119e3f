// How it works. Every run of `given` is cut into boxes: a range of coordinates in each dimension. Since the links bind
// one dimension each, the image of a box is the product of the images of its sides:
//
//   from [4, 6], run [2, 15)      boxes          to [6, 3], dimension 1 of `from` tied to dimension 0 of `to`
//   . . 2 3 4 5                   {0} x [2,6)    [2,6) x free
//   6 7 8 9 . .   ...             {1} x all      all x free      -> stop: every key is there
//
// Only the tied dimensions of `to` matter until the end: their coordinates together are a "key". Keys are kept as runs,
// so whole rows cost as much as one element. In the end either the keys are written out as elements of `to`, or the
// candidates are looked up among the keys, whichever is less.
#include "core/operators/relation_image.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/operators/relation_axis.h"

namespace sherlorch {
namespace {

using Sizes = std::vector<std::int64_t>;
using Shape = std::span<const std::int64_t>;

// Chosen: a fraction of a second of work at most for one edge; beyond that a coarse answer is worth more than an exact
// one.
constexpr std::int64_t kMaxWork = std::int64_t{1} << 22;
constexpr std::size_t kMaxKeyRuns = std::size_t{1} << 20;

class Image {
 public:
  Image(const std::vector<Link>& links, Shape from, Shape to, bool to_input) : from_(from), to_(to) {
    for (const Link& link : links) {
      axes_.emplace_back(link, to_input, from[to_input ? link.out_dim : link.in_dim],
                         to[to_input ? link.in_dim : link.out_dim]);
    }
    key_of_dim_.assign(to.size(), -1);
    shared_.assign(from.size(), false);
    std::vector<bool> seen(from.size(), false);
    for (const Axis& axis : axes_) {
      key_of_dim_[axis.to_dim] = 0;
      if (seen[axis.from_dim]) shared_[axis.from_dim] = true;
      seen[axis.from_dim] = true;
    }
    for (std::size_t dim = 0; dim < to.size(); ++dim) {
      if (key_of_dim_[dim] < 0) continue;
      key_of_dim_[dim] = static_cast<int>(key_dims_.size());
      key_dims_.push_back(static_cast<int>(dim));
    }
    // Key blocks: how many keys share a coordinate of this dimension and of the ones before it.
    key_block_.assign(key_dims_.size() + 1, 1);
    for (std::size_t k = key_dims_.size(); k-- > 0;) key_block_[k] = key_block_[k + 1] * to[key_dims_[k]];
    sides_.resize(key_dims_.size());
  }

  // False: too much work.
  bool add(const ElementSet& given) {
    const std::size_t rank = from_.size();
    Sizes block(rank + 1, 1);
    for (std::size_t d = rank; d-- > 0;) block[d] = block[d + 1] * from_[d];
    Sizes low(rank), high(rank);
    for (const Run& run : given.runs()) {
      std::int64_t begin = std::max<std::int64_t>(run.begin, 0);
      const std::int64_t end = std::min(run.end, block[0]);
      while (begin < end) {
        std::size_t dim = 0;  // the outermost dimension of which a whole coordinate fits
        while (dim + 1 < rank && (begin % block[dim + 1] != 0 || begin + block[dim + 1] > end)) ++dim;
        const std::int64_t unit = rank == 0 ? 1 : block[dim + 1];
        std::int64_t count = 1;
        for (std::size_t d = 0; d < rank; ++d) {
          low[d] = d <= dim ? begin / block[d + 1] % from_[d] : 0;
          high[d] = d <= dim ? low[d] + 1 : from_[d];
        }
        if (rank > 0) {
          count = std::min((end - begin) / unit, from_[dim] - low[dim]);
          high[dim] = low[dim] + count;
        }
        if (!add_box(low, high, 0)) return false;
        if (full_) return true;
        begin += count * unit;
      }
    }
    return true;
  }

  ElementSet collect(const ElementSet& candidates) {
    sort_runs(keys_);
    if (keys_.empty()) return {};
    if (full_ || (keys_.size() == 1 && keys_[0].begin == 0 && keys_[0].end == key_block_[0])) return candidates;

    // Dimensions after the last tied one are free: a key stands for a block of that many elements.
    std::int64_t tail = 1;
    for (std::size_t d = key_dims_.back() + 1; d < to_.size(); ++d) tail *= to_[d];
    std::int64_t copies = 1;  // how often each key is written out
    for (int d = 0; d < key_dims_.back(); ++d) copies *= key_of_dim_[d] < 0 ? to_[d] : 1;
    const double written = static_cast<double>(copies) * static_cast<double>(keys_.size());
    double looked_up = static_cast<double>(candidates.count()) / static_cast<double>(tail) +
                       static_cast<double>(candidates.runs().size());
    if (std::min(written, looked_up) > static_cast<double>(kMaxWork)) {
      ElementSet coarse = candidates;
      coarse.mark_coarse();
      return coarse;
    }
    if (looked_up < written) return look_up(candidates, tail);
    elements_ = ElementSet();
    write_out(0, 0, 0, 0);
    return set_intersection(elements_, candidates);
  }

 private:
  bool add_box(Sizes& low, Sizes& high, std::size_t first_dim) {
    // Two links on one dimension are not independent: take its coordinates one at a time.
    for (std::size_t d = first_dim; d < from_.size(); ++d) {
      if (!shared_[d] || high[d] - low[d] <= 1) continue;
      const std::int64_t begin = low[d];
      const std::int64_t end = high[d];
      bool within = true;
      for (std::int64_t c = begin; c < end && within && !full_; ++c) {
        low[d] = c;
        high[d] = c + 1;
        within = add_box(low, high, d + 1);
      }
      low[d] = begin;
      high[d] = end;
      return within;
    }
    if (key_dims_.empty()) {
      full_ = true;
      keys_.assign(1, Run{0, 1});
      return true;
    }
    work_ += 1;
    for (auto& side : sides_) side = nullptr;
    narrowed_.clear();
    narrowed_.reserve(axes_.size());
    for (Axis& axis : axes_) {
      const std::vector<Run>& runs = axis.image(low[axis.from_dim], high[axis.from_dim], work_);
      if (runs.empty()) return work_ <= kMaxWork;
      const std::vector<Run>*& side = sides_[key_of_dim_[axis.to_dim]];
      if (side == nullptr) {
        side = &runs;
      } else {
        narrowed_.push_back(intersect_runs(*side, runs));
        side = &narrowed_.back();
      }
    }
    add_keys(0, 0);
    if (keys_.size() > kMaxKeyRuns) {
      sort_runs(keys_);
      if (keys_.size() > kMaxKeyRuns / 2) return false;
    }
    if (!keys_.empty() && keys_.back().begin == 0 && keys_.back().end == key_block_[0]) full_ = true;
    return work_ <= kMaxWork;
  }

  void add_keys(std::size_t k, std::int64_t base) {
    const bool last = k + 1 == key_dims_.size();
    // Everything further in is whole: one run a range of coordinates.
    bool whole = true;
    for (std::size_t j = k + 1; j < key_dims_.size() && whole; ++j) {
      const std::vector<Run>& runs = *sides_[j];
      whole = runs.size() == 1 && runs[0].begin == 0 && runs[0].end == to_[key_dims_[j]];
    }
    for (const Run& run : *sides_[k]) {
      if (last || whole) {
        push_run(keys_, base + run.begin * key_block_[k + 1], base + run.end * key_block_[k + 1]);
        ++work_;
        continue;
      }
      for (std::int64_t c = run.begin; c < run.end && work_ <= kMaxWork; ++c)
        add_keys(k + 1, base + c * key_block_[k + 1]);
    }
  }

  bool has_key(std::int64_t key) const {
    auto after = std::upper_bound(keys_.begin(), keys_.end(), key,
                                  [](std::int64_t value, const Run& run) { return value < run.begin; });
    return after != keys_.begin() && key < std::prev(after)->end;
  }

  ElementSet look_up(const ElementSet& candidates, std::int64_t tail) const {
    ElementSet result;
    for (const Run& run : candidates.runs()) {
      for (std::int64_t begin = run.begin; begin < run.end;) {
        const std::int64_t end = std::min(run.end, (begin / tail + 1) * tail);
        std::int64_t rest = begin;
        std::int64_t key = 0;
        std::int64_t weight = 1;
        for (std::size_t d = to_.size(); d-- > 0;) {
          if (key_of_dim_[d] >= 0) {
            key += rest % to_[d] * weight;
            weight *= to_[d];
          }
          rest /= to_[d];
        }
        if (has_key(key)) result.append(begin, end);
        begin = end;
      }
    }
    if (candidates.coarse()) result.mark_coarse();
    return result;
  }

  // Appends the elements below this prefix of coordinates, in order. `base` is the prefix's linear index and `key` its
  // key, both in units of the dimensions so far; `k` counts the tied ones among them.
  void write_out(std::size_t dim, std::size_t k, std::int64_t base, std::int64_t key) {
    std::int64_t block = 1;
    for (std::size_t d = dim; d < to_.size(); ++d) block *= to_[d];
    const std::int64_t keys_begin = key * key_block_[k];
    const std::int64_t keys_end = keys_begin + key_block_[k];
    auto run = std::upper_bound(keys_.begin(), keys_.end(), keys_begin,
                                [](std::int64_t value, const Run& r) { return value < r.end; });
    if (run == keys_.end() || run->begin >= keys_end) return;
    if (run->begin <= keys_begin && run->end >= keys_end) {
      elements_.append(base * block, (base + 1) * block);
      return;
    }
    if (key_of_dim_[dim] < 0) {
      for (std::int64_t c = 0; c < to_[dim]; ++c) write_out(dim + 1, k, base * to_[dim] + c, key);
      return;
    }
    const std::int64_t unit = key_block_[k + 1];
    std::int64_t c = 0;
    while (run != keys_.end() && run->begin < keys_end && c < to_[dim]) {
      c = std::max(c, (run->begin - keys_begin) / unit);
      const std::int64_t whole_end = std::min((run->end - keys_begin) / unit, to_[dim]);
      if (run->begin <= keys_begin + c * unit && whole_end > c) {  // whole coordinates side by side
        const std::int64_t inner = block / to_[dim];
        elements_.append((base * to_[dim] + c) * inner, (base * to_[dim] + whole_end) * inner);
        c = whole_end;
      } else {
        write_out(dim + 1, k + 1, base * to_[dim] + c, key * to_[dim] + c);
        ++c;
      }
      while (run != keys_.end() && run->end <= keys_begin + c * unit) ++run;
    }
  }

  Shape from_;
  Shape to_;
  std::deque<Axis> axes_;
  std::vector<int> key_of_dim_;  // position among the tied dimensions of `to`; -1: free
  std::vector<int> key_dims_;
  Sizes key_block_;
  std::vector<bool> shared_;  // dimensions of `from` with more than one link
  std::vector<const std::vector<Run>*> sides_;
  std::vector<std::vector<Run>> narrowed_;
  std::vector<Run> keys_;
  ElementSet elements_;
  std::int64_t work_ = 0;
  bool full_ = false;
};

}  // namespace

ElementSet relation_image(const std::vector<Link>& links, std::span<const std::int64_t> from,
                          std::span<const std::int64_t> to, bool to_input, const ElementSet& given,
                          const ElementSet& candidates) {
  if (given.empty() || candidates.empty()) return {};
  auto exists = [](int dim, std::span<const std::int64_t> shape) {
    return dim >= 0 && static_cast<std::size_t>(dim) < shape.size();
  };
  for (const Link& link : links) {  // a call that its map does not fit: too much rather than too little
    if (!exists(link.out_dim, to_input ? from : to) || !exists(link.in_dim, to_input ? to : from)) return candidates;
  }
  Image image(links, from, to, to_input);
  ElementSet result = candidates;
  if (image.add(given)) {
    result = image.collect(candidates);
    if (given.coarse()) result.mark_coarse();
  } else {
    result.mark_coarse();
  }
  return result;
}

}  // namespace sherlorch
