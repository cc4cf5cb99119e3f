// Looking at a part of a very large tensor (trace(sample=...)).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/scan/scan.h"

namespace sherlorch {

// Smaller tensors are always scanned whole. Chosen: what an op has just written is still in the last cache up to about
// this size, and reading it there costs little beside writing it.
constexpr std::int64_t kSampledFromBytes = std::int64_t{16} << 20;
// One page: the processor fetches ahead within it.
constexpr std::int64_t kSampleBlockBytes = 4096;

// Scans the first of each `every` blocks, and the last block: the same ones each time. Bad values that fill more than
// every - 1 blocks without a gap are never missed; a single one is seen with a chance of 1 / every. `every` of 1: all.
ScanResult scan_sample(const void* data, std::size_t count, DType dtype, std::uint32_t every) noexcept;

}  // namespace sherlorch
