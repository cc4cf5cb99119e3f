// How each dtype spells NaN and infinity in bits. Internal to core/scan.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace sherlorch::scan {

// The parts of an element (one, or two of a complex type) as bit patterns.
struct Format {
  std::uint8_t part_size = 0;  // bytes
  std::uint8_t parts = 0;      // an element
  // The key of a part is (bits ^ flip) & mask, unsigned. From bad_from on it is non-finite, above nan_above NaN: the
  // two are the same number where there are infinities.
  std::uint64_t flip = 0;
  std::uint64_t mask = 0;
  std::uint64_t bad_from = 0;
  std::uint64_t nan_above = 0;
  bool has_infinity = false;
  std::uint64_t pos_inf = 0;  // patterns
  std::uint64_t neg_inf = 0;
  // What max_bits() returns is non-finite from here on.
  std::uint64_t nonfinite_from = 0;
};

namespace internal {

constexpr Format ieee(std::uint8_t part_size, std::uint8_t parts, std::uint64_t infinity) {
  const std::uint64_t sign = std::uint64_t{1} << (8 * part_size - 1);
  return {part_size, parts, 0, sign - 1, infinity, infinity, true, infinity, infinity | sign, infinity};
}

constexpr Format define_format(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return ieee(2, 1, 0x7c00);
    case DType::kComplex32:
      return ieee(2, 2, 0x7c00);
    case DType::kBFloat16:
      return ieee(2, 1, 0x7f80);
    case DType::kFloat32:
      return ieee(4, 1, 0x7f800000);
    case DType::kComplex64:
      return ieee(4, 2, 0x7f800000);
    case DType::kFloat64:
      return ieee(8, 1, 0x7ff0000000000000);
    case DType::kComplex128:
      return ieee(8, 2, 0x7ff0000000000000);
    case DType::kFloat8E5M2:
      return ieee(1, 1, 0x7c);
    case DType::kFloat8E4M3FN:  // 0x7f and 0xff
      return {1, 1, 0, 0x7f, 0x7f, 0x7e, false, 0, 0, 0x7f};
    case DType::kFloat8E4M3FNUZ:  // 0x80, the one pattern that 0x7f turns into 0xff
    case DType::kFloat8E5M2FNUZ:
      return {1, 1, 0x7f, 0xff, 0xff, 0xfe, false, 0, 0, 0x80};
    case DType::kFloat8E8M0FNU:  // 0xff
      return {1, 1, 0, 0xff, 0xff, 0xfe, false, 0, 0, 0xff};
    case DType::kOther:
    case DType::kNumDTypes:
      break;
  }
  return {};
}

inline constexpr auto kFormats = [] {
  std::array<Format, static_cast<std::size_t>(DType::kNumDTypes)> formats;
  for (std::size_t i = 0; i < formats.size(); ++i) formats[i] = define_format(static_cast<DType>(i));
  return formats;
}();

}  // namespace internal

// A table look-up, because a scan of a few elements costs little more.
inline const Format& format_of(DType dtype) noexcept {
  const auto index = static_cast<std::size_t>(dtype);
  return internal::kFormats[index < internal::kFormats.size() ? index : 0];
}

// The value of one part.
double decode_part(std::uint64_t bits, DType dtype) noexcept;

}  // namespace sherlorch::scan
