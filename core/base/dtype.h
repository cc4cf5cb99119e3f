// Element types, as far as finiteness cares about them.
#pragma once

#include <cstdint>
#include <string_view>

namespace sherlorch {

// kOther stands for every type that cannot hold a NaN or an infinity (integers, bool, float4) and for types that
// cannot be read element by element (quantized).
enum class DType : std::uint8_t {
  kOther = 0,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex32,       // pairs of float16
  kComplex64,       // pairs of float32
  kComplex128,      // pairs of float64
  kFloat8E4M3FN,    // NaN: 0x7f and 0xff; no infinity
  kFloat8E5M2,      // IEEE-like: infinity 0x7c, NaN above
  kFloat8E4M3FNUZ,  // NaN: 0x80 alone; no infinity
  kFloat8E5M2FNUZ,  // NaN: 0x80 alone; no infinity
  kFloat8E8M0FNU,   // NaN: 0xff alone; no infinity, no sign
  kNumDTypes,
};

// True for the types that can hold a NaN or an infinity.
constexpr bool can_be_nonfinite(DType dtype) noexcept { return dtype != DType::kOther; }

constexpr bool is_complex(DType dtype) noexcept {
  return dtype == DType::kComplex32 || dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

// Bytes an element takes (a complex element counts both parts); 0 for kOther.
std::uint32_t element_size(DType dtype) noexcept;

// The torch name without its prefix: "float32", "bfloat16", "float8_e4m3fn", ...; "other" for kOther.
std::string_view dtype_name(DType dtype) noexcept;

// Largest finite magnitude of the type (of one part of a complex type), e.g. 65504 for float16. 0 for kOther.
double largest_finite(DType dtype) noexcept;

}  // namespace sherlorch
