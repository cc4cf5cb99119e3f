#include "core/base/dtype.h"

#include <array>
#include <cstddef>

namespace sherlorch {
namespace {

struct Facts {
  DType dtype;
  std::uint32_t size;
  std::string_view name;
  double largest;
};

// Largest magnitudes by definition of the formats, as significand times a power of two.
constexpr double kLargestFloat16 = 65504.0;
constexpr double kLargestBFloat16 = 0x1.fep127;
constexpr double kLargestFloat32 = 0x1.fffffep127;
constexpr double kLargestFloat64 = 0x1.fffffffffffffp1023;

// In the order of the enumeration, so that a dtype is its own index.
constexpr std::array<Facts, static_cast<std::size_t>(DType::kNumDTypes)> kFacts = {{
    {DType::kOther, 0, "other", 0.0},
    {DType::kFloat16, 2, "float16", kLargestFloat16},
    {DType::kBFloat16, 2, "bfloat16", kLargestBFloat16},
    {DType::kFloat32, 4, "float32", kLargestFloat32},
    {DType::kFloat64, 8, "float64", kLargestFloat64},
    {DType::kComplex32, 4, "complex32", kLargestFloat16},
    {DType::kComplex64, 8, "complex64", kLargestFloat32},
    {DType::kComplex128, 16, "complex128", kLargestFloat64},
    {DType::kFloat8E4M3FN, 1, "float8_e4m3fn", 448.0},
    {DType::kFloat8E5M2, 1, "float8_e5m2", 57344.0},
    {DType::kFloat8E4M3FNUZ, 1, "float8_e4m3fnuz", 240.0},
    {DType::kFloat8E5M2FNUZ, 1, "float8_e5m2fnuz", 57344.0},
    {DType::kFloat8E8M0FNU, 1, "float8_e8m0fnu", 0x1p127},
}};

constexpr bool in_enum_order() {
  for (std::size_t i = 0; i < kFacts.size(); ++i) {
    if (static_cast<std::size_t>(kFacts[i].dtype) != i) return false;
  }
  return true;
}
static_assert(in_enum_order());

const Facts& facts(DType dtype) noexcept {
  const auto index = static_cast<std::size_t>(dtype);
  return kFacts[index < kFacts.size() ? index : 0];
}

}  // namespace

std::uint32_t element_size(DType dtype) noexcept { return facts(dtype).size; }

std::string_view dtype_name(DType dtype) noexcept { return facts(dtype).name; }

double largest_finite(DType dtype) noexcept { return facts(dtype).largest; }

}  // namespace sherlorch
