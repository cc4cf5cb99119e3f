// For tests: what the scan must answer, one element at a time, written from the formats' definitions and sharing
// nothing with the code under test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <random>
#include <set>
#include <vector>

#include "core/scan/scan.h"

namespace sherlorch {

inline constexpr DType kAllDTypes[] = {
    DType::kFloat16,    DType::kBFloat16,       DType::kFloat32,        DType::kFloat64,
    DType::kComplex32,  DType::kComplex64,      DType::kComplex128,     DType::kFloat8E4M3FN,
    DType::kFloat8E5M2, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2FNUZ, DType::kFloat8E8M0FNU,
};

inline void PrintTo(DType dtype, std::ostream* out) { *out << dtype_name(dtype); }

namespace oracle {

inline int parts_of(DType dtype) { return is_complex(dtype) ? 2 : 1; }
inline int part_size(DType dtype) { return static_cast<int>(element_size(dtype)) / parts_of(dtype); }

inline double decode(std::uint64_t bits, DType dtype) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  bool has_infinity = true;
  switch (dtype) {
    case DType::kFloat16:
    case DType::kComplex32:
      exponent_bits = 5, mantissa_bits = 10, bias = 15;
      break;
    case DType::kBFloat16:
      exponent_bits = 8, mantissa_bits = 7, bias = 127;
      break;
    case DType::kFloat32:
    case DType::kComplex64:
      exponent_bits = 8, mantissa_bits = 23, bias = 127;
      break;
    case DType::kFloat64:
    case DType::kComplex128:
      exponent_bits = 11, mantissa_bits = 52, bias = 1023;
      break;
    case DType::kFloat8E5M2:
      exponent_bits = 5, mantissa_bits = 2, bias = 15;
      break;
    case DType::kFloat8E4M3FN:
      if (bits == 0x7f || bits == 0xff) return kNan;
      exponent_bits = 4, mantissa_bits = 3, bias = 7, has_infinity = false;
      break;
    case DType::kFloat8E4M3FNUZ:
      if (bits == 0x80) return kNan;
      exponent_bits = 4, mantissa_bits = 3, bias = 8, has_infinity = false;
      break;
    case DType::kFloat8E5M2FNUZ:
      if (bits == 0x80) return kNan;
      exponent_bits = 5, mantissa_bits = 2, bias = 16, has_infinity = false;
      break;
    case DType::kFloat8E8M0FNU:
      return bits == 0xff ? kNan : std::ldexp(1.0, static_cast<int>(bits) - 127);
    default:
      return 0.0;
  }
  const double mantissa = static_cast<double>(bits % (1ull << mantissa_bits));
  const auto exponent = static_cast<int>((bits >> mantissa_bits) % (1ull << exponent_bits));
  const double sign = (bits >> (mantissa_bits + exponent_bits)) % 2 != 0 ? -1.0 : 1.0;
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  if (has_infinity && exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? kNan : sign * std::numeric_limits<double>::infinity();
  }
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias) : sign * std::ldexp(1.0 + fraction, exponent - bias);
}

inline double part(const unsigned char* element, int index, DType dtype) {
  std::uint64_t bits = 0;
  const int size = part_size(dtype);
  std::memcpy(&bits, element + index * size, static_cast<std::size_t>(size));  // little endian
  return decode(bits, dtype);
}

struct Answer {
  ScanResult scan;
  std::set<std::int64_t> nan, pos_inf, neg_inf;
  std::int64_t numel = 0;
};

inline void add_element(Answer& answer, const unsigned char* element, DType dtype) {
  double first_infinite = 0;
  bool nan = false;
  for (int i = 0; i < parts_of(dtype); ++i) {
    const double value = part(element, i, dtype);
    if (std::isnan(value)) nan = true;
    if (std::isinf(value) && first_infinite == 0) first_infinite = value;
    const double magnitude = std::isnan(value) ? std::numeric_limits<double>::infinity() : std::abs(value);
    float narrowed = std::numeric_limits<float>::infinity();
    if (!std::isinf(magnitude)) {
      narrowed = static_cast<float>(std::min(magnitude, double{std::numeric_limits<float>::max()}));
    }
    answer.scan.largest = std::max(answer.scan.largest, narrowed);
  }
  if (nan) {
    answer.nan.insert(answer.numel);
  } else if (first_infinite != 0) {
    (first_infinite > 0 ? answer.pos_inf : answer.neg_inf).insert(answer.numel);
  }
  answer.scan.nonfinite |= nan || first_infinite != 0;
  ++answer.numel;
}

inline Answer ask(const unsigned char* data, const std::vector<std::int64_t>& sizes,
                  const std::vector<std::int64_t>& strides, DType dtype) {
  Answer answer;
  std::vector<std::int64_t> index(sizes.size(), 0);
  for (const std::int64_t size : sizes) {
    if (size == 0) return answer;
  }
  const auto item_size = static_cast<std::int64_t>(element_size(dtype));
  for (;;) {
    std::int64_t at = 0;
    for (std::size_t k = 0; k < sizes.size(); ++k) at += index[k] * strides[k];
    add_element(answer, data + at * item_size, dtype);
    std::size_t k = sizes.size();
    while (k > 0 && ++index[k - 1] == sizes[k - 1]) index[--k] = 0;
    if (k == 0) return answer;
  }
}

// An IEEE format's infinity, as bits; 0 for the others.
inline std::uint64_t infinity_bits(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kComplex32:
      return 0x7c00;
    case DType::kBFloat16:
      return 0x7f80;
    case DType::kFloat32:
    case DType::kComplex64:
      return 0x7f800000;
    case DType::kFloat64:
    case DType::kComplex128:
      return 0x7ffull << 52;
    case DType::kFloat8E5M2:
      return 0x7c;
    default:
      return 0;
  }
}

// The pattern of a finite part, or of a non-finite one: infinities and NaN of all payloads and signs.
inline std::uint64_t random_bits(std::mt19937_64& random, DType dtype, bool bad) {
  const std::uint64_t mask = ~0ull >> (64 - 8 * part_size(dtype));
  if (bad && infinity_bits(dtype) == 0) {
    if (dtype == DType::kFloat8E4M3FN) return random() % 2 ? 0x7f : 0xff;
    return dtype == DType::kFloat8E8M0FNU ? 0xff : 0x80;
  }
  for (;;) {
    std::uint64_t bits = random() & mask;
    const std::uint64_t sign = bits & ~(mask >> 1);
    if (bad) bits = random() % 2 ? infinity_bits(dtype) | sign : bits | infinity_bits(dtype);
    if (std::isfinite(decode(bits, dtype)) != bad) return bits;
  }
}

inline void fill(unsigned char* data, std::size_t elements, DType dtype, double bad_share, std::mt19937_64& random) {
  const auto size = static_cast<std::size_t>(part_size(dtype));
  const std::size_t parts = elements * static_cast<std::size_t>(parts_of(dtype));
  std::uniform_real_distribution<double> share(0.0, 1.0);
  for (std::size_t i = 0; i < parts; ++i) {
    const std::uint64_t bits = random_bits(random, dtype, share(random) < bad_share);
    std::memcpy(data + i * size, &bits, size);
  }
}

inline std::set<std::int64_t> members(const ElementSet& set) {
  std::set<std::int64_t> result;
  set.for_each([&](std::int64_t index) {
    result.insert(index);
    return true;
  });
  return result;
}

}  // namespace oracle
}  // namespace sherlorch
