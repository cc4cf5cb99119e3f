#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/scan/census_collector.h"
#include "core/scan/format.h"
#include "core/scan/scan.h"

namespace sherlorch {
namespace scan {
namespace {

struct Dim {
  std::int64_t size;
  std::int64_t stride;  // bytes
};

// A dimension of stride 0: `times` copies of blocks of `inner` logical elements.
struct Repeat {
  std::int64_t inner;
  std::int64_t times;
};

// Rows below this are gathered into a buffer, so that short ones fill whole words.
constexpr std::int64_t kDirectRow = 256;

// The dimensions that move, outermost first, neighbours merged where a step of the outer one continues the inner one.
// `repeats` are the others, innermost first.
struct Base {
  std::vector<Dim> dims;
  std::vector<Repeat> repeats;
};

Base base_of(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, std::int64_t item_size) {
  Base base;
  std::int64_t inner = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const std::int64_t size = sizes[i];
    const std::int64_t stride = strides[i] * item_size;
    if (size == 1) continue;
    if (stride == 0) {
      if (!base.repeats.empty() && base.repeats.back().inner * base.repeats.back().times == inner) {
        base.repeats.back().times *= size;
      } else {
        base.repeats.push_back({inner, size});
      }
    } else if (!base.dims.empty() && stride == base.dims.back().size * base.dims.back().stride) {
      base.dims.back().size *= size;
    } else {
      base.dims.push_back({size, stride});
    }
    inner *= size;
  }
  if (base.dims.empty()) base.dims.push_back({1, item_size});
  return {{base.dims.rbegin(), base.dims.rend()}, base.repeats};
}

template <std::size_t kItemSize>
void gather(unsigned char* to, const unsigned char* from, std::int64_t count, std::int64_t stride) noexcept {
  for (std::int64_t i = 0; i < count; ++i, to += kItemSize) {
    std::memcpy(to, from + i * stride, kItemSize);
  }
}

void gather(unsigned char* to, const unsigned char* from, std::int64_t count, std::int64_t stride,
            std::int64_t item_size) noexcept {
  switch (item_size) {
    case 1:
      return gather<1>(to, from, count, stride);
    case 2:
      return gather<2>(to, from, count, stride);
    case 4:
      return gather<4>(to, from, count, stride);
    case 8:
      return gather<8>(to, from, count, stride);
    default:
      return gather<16>(to, from, count, stride);
  }
}

// Feeds the rows of a base to the collector in row-major order.
class RowReader {
 public:
  RowReader(CensusCollector& collector, std::int64_t item_size) noexcept
      : collector_(collector), item_size_(item_size) {}

  void read(const unsigned char* data, std::span<const Dim> dims) {
    if (dims.size() == 1) {
      read_row(data, dims[0]);
      return;
    }
    for (std::int64_t i = 0; i < dims[0].size; ++i, data += dims[0].stride) {
      read(data, dims.subspan(1));
    }
  }

  void flush() {
    collector_.take(buffer_.data(), static_cast<std::size_t>(buffered_));
    buffered_ = 0;
  }

 private:
  // Chosen: enough to make up for the call, few enough that they stay in L1.
  static constexpr std::int64_t kCapacity = 1024;

  void read_row(const unsigned char* data, Dim row) {
    if (row.stride == item_size_ && row.size >= kDirectRow) {
      flush();
      collector_.take(data, static_cast<std::size_t>(row.size));
      return;
    }
    for (std::int64_t left = row.size; left > 0;) {
      const std::int64_t now = std::min(left, kCapacity - buffered_);
      gather(buffer_.data() + buffered_ * item_size_, data, now, row.stride, item_size_);
      data += now * row.stride;
      left -= now;
      buffered_ += now;
      if (buffered_ == kCapacity) flush();
    }
  }

  CensusCollector& collector_;
  std::int64_t item_size_;
  std::int64_t buffered_ = 0;
  alignas(64) std::array<unsigned char, 16 * kCapacity> buffer_;
};

void apply(const Repeat& repeat, std::int64_t& count, std::int64_t& first, ElementSet& set) {
  if (count == 0) return;
  count *= repeat.times;
  first += first / repeat.inner * repeat.inner * (repeat.times - 1);
  set = repeat_blocks(set, repeat.inner, repeat.times);
}

}  // namespace
}  // namespace scan

Census take_census(const void* data, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                   DType dtype) {
  Census census;
  for (const std::int64_t size : sizes) {
    if (size <= 0) return census;
  }
  census.numel = 1;
  for (const std::int64_t size : sizes) census.numel *= size;
  const std::int64_t item_size = element_size(dtype);
  if (item_size == 0) return census;

  const scan::Base base = scan::base_of(sizes, strides, item_size);
  scan::CensusCollector collector(dtype, census);
  scan::RowReader reader(collector, item_size);
  reader.read(static_cast<const unsigned char*>(data), base.dims);
  reader.flush();
  collector.finish();
  for (const scan::Repeat& repeat : base.repeats) {
    scan::apply(repeat, census.nan, census.first_nan, census.nan_at);
    scan::apply(repeat, census.pos_inf, census.first_pos_inf, census.pos_inf_at);
    scan::apply(repeat, census.neg_inf, census.first_neg_inf, census.neg_inf_at);
  }
  return census;
}

}  // namespace sherlorch
