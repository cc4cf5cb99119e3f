#include "core/base/geometry.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <numeric>

namespace sherlorch {
namespace {

// Every dimension kept has at least two elements at distinct places, and numel fits 63 bits: 62 would do.
constexpr std::size_t kMaxKept = 64;

struct Dim {
  std::int64_t size;
  std::int64_t stride;  // bytes, positive
  std::int64_t weight;  // linear index gained by a step; negative where the view runs backwards
  std::int64_t reach() const noexcept { return (size - 1) * stride; }
};

// A geometry as bytes above its lowest element: strides are positive, and the dimensions that move nothing are gone
// (their first coordinate, 0, is the answer there).
class Walk {
 public:
  explicit Walk(const Geometry& geometry) noexcept : origin_(geometry.offset) {
    std::int64_t weight = 1;
    for (std::size_t i = geometry.sizes.size(); i-- > 0;) {
      const std::int64_t size = geometry.sizes[i];
      std::int64_t stride = geometry.strides[i];
      if (size > 1 && stride != 0 && count_ < kMaxKept) {
        std::int64_t step = weight;
        if (stride < 0) {
          origin_ += (size - 1) * stride;
          base_linear_ += (size - 1) * weight;
          stride = -stride;
          step = -step;
        }
        dims_[count_++] = {size, stride, step};
      }
      weight *= size;
    }
    std::reverse(dims_.begin(), dims_.begin() + count_);
  }

  std::int64_t origin() const noexcept { return origin_; }

  // Largest stride first, then the linear index of the element that `rel` falls in by division. Leaves the byte within
  // that element in `rest`. REQUIRES: separable().
  std::int64_t divide(std::int64_t rel, std::int64_t& rest) const noexcept {
    std::int64_t linear = base_linear_;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::int64_t at = std::min(rel / dims_[i].stride, dims_[i].size - 1);
      linear += at * dims_[i].weight;
      rel -= at * dims_[i].stride;
    }
    rest = rel;
    return linear;
  }

  void sort_by_stride() noexcept {
    std::sort(dims_.begin(), dims_.begin() + count_, [](const Dim& a, const Dim& b) { return a.stride > b.stride; });
  }

  // True if, sorted by stride, each step passes all that the smaller strides can reach, the last element's own
  // `width` bytes included: then the division above is the only answer.
  bool separable(std::int64_t width) const noexcept {
    std::int64_t reach = width - 1;
    for (std::size_t i = count_; i-- > 0;) {
      if (dims_[i].stride <= reach) return false;
      reach += dims_[i].reach();
    }
    return true;
  }

  // The smallest linear index of an element that starts at `rel`, or -1. For the dimensions in logical order.
  std::int64_t search(std::int64_t rel) noexcept {
    reach_[count_] = 0;
    divisor_[count_] = 0;
    for (std::size_t i = count_; i-- > 0;) {
      reach_[i] = reach_[i + 1] + dims_[i].reach();
      divisor_[i] = std::gcd(divisor_[i + 1], dims_[i].stride);
    }
    return search_from(0, rel, base_linear_);
  }

 private:
  // Tries coordinates in the order of the linear index, so the first hit is the smallest. What the inner dimensions
  // can reach bounds the coordinates worth a try, and their common divisor cuts off most of those.
  std::int64_t search_from(std::size_t i, std::int64_t rel, std::int64_t linear) const noexcept {
    if (i == count_) return rel == 0 ? linear : -1;
    if (rel < 0 || rel > reach_[i] || rel % divisor_[i] != 0) return -1;
    const Dim& dim = dims_[i];
    const std::int64_t beyond = rel - reach_[i + 1];
    const std::int64_t low = beyond <= 0 ? 0 : (beyond + dim.stride - 1) / dim.stride;
    const std::int64_t high = std::min(rel / dim.stride, dim.size - 1);
    for (std::int64_t n = 0; n <= high - low; ++n) {
      const std::int64_t at = dim.weight > 0 ? low + n : high - n;
      const std::int64_t found = search_from(i + 1, rel - at * dim.stride, linear + at * dim.weight);
      if (found >= 0) return found;
    }
    return -1;
  }

  std::int64_t origin_;
  std::int64_t base_linear_ = 0;
  std::size_t count_ = 0;
  std::array<Dim, kMaxKept> dims_;
  std::array<std::int64_t, kMaxKept + 1> reach_;
  std::array<std::int64_t, kMaxKept + 1> divisor_;
};

bool inside(const Geometry& geometry, std::int64_t byte) noexcept {
  return byte >= geometry.begin_byte() && byte < geometry.end_byte();
}

}  // namespace

std::int64_t Geometry::numel() const noexcept {
  // A zero first: the other sizes of an empty tensor may have a product beyond 63 bits.
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

bool Geometry::contiguous() const noexcept {
  if (numel() == 0) return true;
  std::int64_t expected = item_size;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

std::int64_t Geometry::begin_byte() const noexcept {
  std::int64_t byte = offset;
  if (numel() == 0) return byte;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] < 0) byte += (sizes[i] - 1) * strides[i];
  }
  return byte;
}

std::int64_t Geometry::end_byte() const noexcept {
  std::int64_t byte = offset;
  if (numel() == 0) return byte;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] > 0) byte += (sizes[i] - 1) * strides[i];
  }
  return byte + item_size;
}

std::int64_t Geometry::byte_of(std::int64_t linear) const noexcept {
  std::int64_t byte = offset;
  for (std::size_t i = sizes.size(); i-- > 0 && linear > 0;) {
    byte += linear % sizes[i] * strides[i];
    linear /= sizes[i];
  }
  return byte;
}

std::vector<std::int64_t> Geometry::index_of(std::int64_t linear) const {
  std::vector<std::int64_t> index(sizes.size(), 0);
  for (std::size_t i = sizes.size(); i-- > 0 && linear > 0;) {
    index[i] = linear % sizes[i];
    linear /= sizes[i];
  }
  return index;
}

std::int64_t Geometry::linear_of_byte(std::int64_t byte) const noexcept {
  if (!inside(*this, byte)) return -1;
  Walk walk(*this);
  const std::int64_t rel = byte - walk.origin();
  walk.sort_by_stride();
  if (!walk.separable(1)) return Walk(*this).search(rel);
  std::int64_t rest = 0;
  const std::int64_t linear = walk.divide(rel, rest);
  return rest == 0 ? linear : -1;
}

std::int64_t Geometry::linear_containing(std::int64_t byte) const noexcept {
  if (!inside(*this, byte)) return -1;
  Walk walk(*this);
  walk.sort_by_stride();
  if (walk.separable(item_size)) {
    std::int64_t rest = 0;
    const std::int64_t linear = walk.divide(byte - walk.origin(), rest);
    return rest < static_cast<std::int64_t>(item_size) ? linear : -1;
  }
  std::int64_t first = -1;
  for (std::int64_t back = 0; back < static_cast<std::int64_t>(item_size); ++back) {
    const std::int64_t linear = linear_of_byte(byte - back);
    if (linear >= 0 && (first < 0 || linear < first)) first = linear;
  }
  return first;
}

Geometry contiguous_geometry(std::span<const std::int64_t> sizes, std::uint32_t item_size, std::int64_t offset) {
  Geometry geometry;
  geometry.offset = offset;
  geometry.item_size = item_size;
  geometry.sizes.assign(sizes.begin(), sizes.end());
  geometry.strides.resize(sizes.size());
  // Unsigned, because the strides of an empty tensor may wrap without harm. As in torch, a size of 0 counts as 1.
  std::uint64_t stride = item_size;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    geometry.strides[i] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(std::max<std::int64_t>(sizes[i], 1));
  }
  return geometry;
}

}  // namespace sherlorch
