#include "core/scan/format.h"

#include <bit>
#include <cmath>
#include <limits>

namespace sherlorch::scan {
namespace {

// Sign, exponent, mantissa; `bias` of the exponent; subnormals. For finite patterns only.
double decode_finite(std::uint64_t bits, int exponent_bits, int mantissa_bits, int bias) noexcept {
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << mantissa_bits) - 1);
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((std::uint64_t{1} << exponent_bits) - 1));
  const bool negative = (bits >> (mantissa_bits + exponent_bits)) & 1;
  const std::uint64_t implicit_one = exponent == 0 ? 0 : std::uint64_t{1} << mantissa_bits;
  const double magnitude =
      std::ldexp(static_cast<double>(implicit_one + mantissa), (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
  return negative ? -magnitude : magnitude;
}

}  // namespace

double decode_part(std::uint64_t bits, DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return std::bit_cast<double>(bits);
    case DType::kFloat32:
    case DType::kComplex64:
      return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
    case DType::kBFloat16:
      return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)};
    default:
      break;
  }
  const Format& format = format_of(dtype);
  if (format.part_size == 0) return 0.0;
  if (((bits ^ format.flip) & format.mask) > format.nan_above) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (format.has_infinity) {
    if (bits == format.pos_inf) return std::numeric_limits<double>::infinity();
    if (bits == format.neg_inf) return -std::numeric_limits<double>::infinity();
  }
  switch (dtype) {
    case DType::kFloat8E4M3FN:
      return decode_finite(bits, 4, 3, 7);
    case DType::kFloat8E4M3FNUZ:
      return decode_finite(bits, 4, 3, 8);
    case DType::kFloat8E5M2:
      return decode_finite(bits, 5, 2, 15);
    case DType::kFloat8E5M2FNUZ:
      return decode_finite(bits, 5, 2, 16);
    case DType::kFloat8E8M0FNU:
      return std::ldexp(1.0, static_cast<int>(bits) - 127);
    default:  // float16, complex32
      return decode_finite(bits, 5, 10, 15);
  }
}

}  // namespace sherlorch::scan
