#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/scan/format.h"
#include "core/scan/kernels.h"
#include "core/scan/result.h"
#include "core/scan/scan.h"

namespace sherlorch {
namespace scan {

float widen_to_float(std::uint64_t bits, DType dtype) noexcept {
  if (dtype == DType::kFloat16 || dtype == DType::kComplex32) {
    // Without the sign, half the format is a float's with a shorter exponent: shift it in place and scale.
    // 2^112 is the ratio of the two biases; it is exact for subnormals too.
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 13) * 0x1p112f;
  }
  constexpr double kLargestFloat = std::numeric_limits<float>::max();
  return static_cast<float>(std::min(decode_part(bits, dtype), kLargestFloat));
}

namespace {

// Chosen: from 1 MiB on, a block in 64 KiB is asked for its result, so that a tensor full of NaN costs one block. The
// asking costs some 20 cycles in the 1,000 or more that such a block takes.
constexpr std::size_t kEarlyStopBytes = std::size_t{1} << 20;
constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

// Chosen: up to here a cache may still hold the end of what was just written, and no more the beginning. Read from its
// last block to its first, such a buffer leaves the beginning in the cache, where the next op reads first. Measured for
// a sum of 2 MiB, L2 of 2 MiB: with its scan 1.17 times the sum alone, in the other order 1.29 (just_written in
// bench/core/scan_benchmark.cpp).
constexpr std::size_t kBackwardBytes = std::size_t{1} << 25;

std::uint64_t max_bits_in_blocks(const unsigned char* data, std::size_t size, const Format& format,
                                 DType dtype) noexcept {
  const std::size_t blocks = (size + kBlockBytes - 1) / kBlockBytes;
  const bool backward = size <= kBackwardBytes;
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < blocks && largest < format.nonfinite_from; ++i) {
    const std::size_t at = (backward ? blocks - 1 - i : i) * kBlockBytes;
    largest = std::max(largest, max_bits(data + at, std::min(kBlockBytes, size - at) / format.part_size, dtype));
  }
  return largest;
}

}  // namespace
}  // namespace scan

ScanResult scan_contiguous(const void* data, std::size_t count, DType dtype) noexcept {
  const scan::Format& format = scan::format_of(dtype);
  if (count == 0 || format.part_size == 0) return {};
  const std::size_t parts = count * format.parts;
  const std::size_t size = parts * format.part_size;
  const std::uint64_t largest =
      size < scan::kEarlyStopBytes
          ? scan::max_bits(data, parts, dtype)
          : scan::max_bits_in_blocks(static_cast<const unsigned char*>(data), size, format, dtype);
  return scan::result_of(largest, dtype);
}

}  // namespace sherlorch
