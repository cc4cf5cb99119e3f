#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/scan/format.h"
#include "core/scan/kernels.h"
#include "core/scan/max_loop.h"
#include "core/scan/result.h"
#include "core/scan/scan.h"

namespace sherlorch {
namespace scan {
namespace {

// Rows shorter than this are read in line: a call and a reduction cost more than they do.
constexpr std::size_t kShortRowBytes = 32;

template <typename U, typename Key>
U max_of_row(const unsigned char* p, std::size_t count, std::size_t step, Key key) noexcept {
  U even = 0;
  U odd = 0;
  U bits;
  for (; count >= 2; count -= 2, p += 2 * step) {
    load_key(bits, p, key);
    even = std::max(even, bits);
    load_key(bits, p + step, key);
    odd = std::max(odd, bits);
  }
  if (count == 1) {
    load_key(bits, p, key);
    even = std::max(even, bits);
  }
  return std::max(even, odd);
}

template <typename U, typename Key>
std::uint64_t max_of_plane(const Plane& plane, Key key) noexcept {
  U largest = 0;
  const unsigned char* p = plane.data;
  for (std::size_t row = 0; row < plane.rows; ++row, p += plane.row_step) {
    largest = std::max(largest, max_of_row<U>(p, plane.count, plane.step, key));
  }
  return largest;
}

struct Dim {
  std::size_t size;
  std::size_t step;  // bytes
};

// Each dimension kept has two elements or more at distinct places, so a tensor whose numel fits 63 bits has at most 62
// of them, however many dimensions it has; and one more for the parts of a complex element.
constexpr std::size_t kMaxDims = 64;

// The bytes of a strided tensor without its order: its dimensions by growing step, those merged that together are
// evenly spaced. Overlapping windows merge as well, so no byte of theirs is read twice.
class Layout {
 public:
  // REQUIRES: no size is 0.
  Layout(const void* data, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
         const Format& format) noexcept
      : data_(static_cast<const unsigned char*>(data)) {
    const std::size_t item_size = std::size_t{format.part_size} * format.parts;
    dims_[0] = {format.parts, format.part_size};
    count_ = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      if (sizes[i] == 1 || strides[i] == 0 || count_ == kMaxDims) continue;
      std::int64_t step = strides[i] * static_cast<std::int64_t>(item_size);
      if (step < 0) {
        data_ += (sizes[i] - 1) * step;
        step = -step;
      }
      insert({static_cast<std::size_t>(sizes[i]), static_cast<std::size_t>(step)});
    }
    merge();
  }

  ScanResult scan(DType dtype, const Format& format) const noexcept {
    if (count_ == 1 && dims_[0].step == format.part_size) {
      return scan_contiguous(data_, dims_[0].size / format.parts, dtype);
    }
    return result_of(max_bits(dtype, format.nonfinite_from), dtype);
  }

 private:
  // Stops early once the answer is known.
  std::uint64_t max_bits(DType dtype, std::uint64_t stop_from) const noexcept {
    Plane plane = {.data = data_, .count = dims_[0].size, .step = dims_[0].step};
    if (count_ > 1) {
      plane.rows = dims_[1].size;
      plane.row_step = dims_[1].step;
    }
    std::array<std::size_t, kMaxDims> index;
    for (std::size_t i = 2; i < count_; ++i) index[i] = 0;
    std::uint64_t largest = 0;
    for (;;) {
      largest = std::max(largest, scan::max_bits(plane, dtype));
      if (largest >= stop_from) return largest;
      std::size_t i = 2;
      for (; i < count_; ++i) {
        plane.data += dims_[i].step;
        if (++index[i] < dims_[i].size) break;
        plane.data -= dims_[i].size * dims_[i].step;
        index[i] = 0;
      }
      if (i >= count_) return largest;
    }
  }

  // Sorted from the start: a row-major tensor arrives in order, so this is a single comparison for each dimension.
  void insert(Dim dim) noexcept {
    std::size_t at = count_++;
    for (; at > 1 && dims_[at - 1].step > dim.step; --at) dims_[at] = dims_[at - 1];
    dims_[at] = dim;
  }

  void merge() noexcept {
    std::size_t last = 0;
    for (std::size_t i = 1; i < count_; ++i) {
      Dim& inner = dims_[last];
      const Dim outer = dims_[i];
      if (inner.size == 1) {
        inner = outer;
      } else if (outer.step % inner.step == 0 && outer.step <= inner.size * inner.step) {
        inner.size += (outer.size - 1) * (outer.step / inner.step);
      } else {
        dims_[++last] = outer;
      }
    }
    count_ = last + 1;
  }

  const unsigned char* data_;
  std::size_t count_ = 0;
  std::array<Dim, kMaxDims> dims_;
};

// True if the elements lie side by side in row-major order. REQUIRES: no size is 0.
bool is_contiguous(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) noexcept {
  std::int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

}  // namespace

std::uint64_t max_bits(const Plane& plane, DType dtype) noexcept {
  const std::size_t part_size = format_of(dtype).part_size;
  if (plane.step == part_size && plane.count * part_size >= kShortRowBytes) {
    std::uint64_t largest = 0;
    const unsigned char* p = plane.data;
    for (std::size_t row = 0; row < plane.rows; ++row, p += plane.row_step) {
      largest = std::max(largest, max_bits(p, plane.count, dtype));
    }
    return largest;
  }
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return max_of_plane<std::uint32_t>(plane, kUnsigned<std::uint32_t>);
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kComplex32:
      return max_of_plane<std::uint16_t>(plane, kUnsigned<std::uint16_t>);
    case DType::kFloat64:
    case DType::kComplex128:
      return max_of_plane<std::uint64_t>(plane, kUnsigned<std::uint64_t>);
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
      return max_of_plane<std::uint8_t>(plane, MaskKey<std::uint8_t>{0x7f});
    case DType::kFloat8E8M0FNU:
      return max_of_plane<std::uint8_t>(plane, MaskKey<std::uint8_t>{0xff});
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
      return max_of_plane<std::uint8_t>(plane, FnuzKey{});
    case DType::kOther:
    case DType::kNumDTypes:
      break;
  }
  return 0;
}

}  // namespace scan

ScanResult scan_strided(const void* data, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                        DType dtype) noexcept {
  const scan::Format& format = scan::format_of(dtype);
  if (format.part_size == 0) return {};
  for (const std::int64_t size : sizes) {
    if (size <= 0) return {};
  }
  if (scan::is_contiguous(sizes, strides)) {
    std::size_t count = 1;
    for (const std::int64_t size : sizes) count *= static_cast<std::size_t>(size);
    return scan_contiguous(data, count, dtype);
  }
  const scan::Layout layout(data, sizes, strides, format);
  return layout.scan(dtype, format);
}

}  // namespace sherlorch
