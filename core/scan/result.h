// From the largest bit pattern to the answer. Internal to core/scan.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "core/scan/format.h"
#include "core/scan/scan.h"

namespace sherlorch::scan {

// The slower half of result_of.
float widen_to_float(std::uint64_t bits, DType dtype) noexcept;

inline ScanResult result_of(std::uint64_t bits, DType dtype) noexcept {
  if (bits >= format_of(dtype).nonfinite_from) return {true, std::numeric_limits<float>::infinity()};
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return {false, std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
    case DType::kBFloat16:
      return {false, std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)};
    default:
      return {false, widen_to_float(bits, dtype)};
  }
}

}  // namespace sherlorch::scan
