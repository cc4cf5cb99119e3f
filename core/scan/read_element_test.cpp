#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/scan/scan.h"
#include "core/scan/scan_oracle.h"

namespace sherlorch {
namespace {

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST(ReadElementTest, EveryShortPatternDecodesAsTheOracleSays) {
  for (const DType dtype : kAllDTypes) {
    if (oracle::part_size(dtype) > 2 || is_complex(dtype)) continue;
    for (std::uint32_t bits = 0; bits < (1u << (8 * oracle::part_size(dtype))); ++bits) {
      const ElementValue value = read_element(&bits, dtype);
      ASSERT_TRUE(same(value.real, oracle::decode(bits, dtype))) << dtype_name(dtype) << bits;
      ASSERT_EQ(value.imag, 0.0);
    }
  }
}

TEST(ReadElementTest, RandomElementsDecodeAsTheOracleSaysAtAnyAlignment) {
  std::mt19937_64 random(6);
  for (const DType dtype : kAllDTypes) {
    for (int round = 0; round < 1000; ++round) {
      std::vector<unsigned char> data(element_size(dtype) + 1);
      oracle::fill(data.data() + 1, 1, dtype, 0.3, random);
      const ElementValue value = read_element(data.data() + 1, dtype);
      ASSERT_TRUE(same(value.real, oracle::part(data.data() + 1, 0, dtype)));
      if (is_complex(dtype)) {
        ASSERT_TRUE(same(value.imag, oracle::part(data.data() + 1, 1, dtype)));
      }
    }
  }
}

TEST(ReadElementTest, LargestFiniteIsTheLargestThatAnyPatternDecodesTo) {
  for (const DType dtype : kAllDTypes) {
    if (oracle::part_size(dtype) > 2 || is_complex(dtype)) continue;
    double largest = 0;
    for (std::uint32_t bits = 0; bits < (1u << (8 * oracle::part_size(dtype))); ++bits) {
      const double value = read_element(&bits, dtype).real;
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    EXPECT_EQ(largest, largest_finite(dtype)) << dtype_name(dtype);
  }
}

TEST(ReadElementTest, OtherTypesReadAsZeroWithoutALook) { EXPECT_EQ(read_element(nullptr, DType::kOther).real, 0.0); }

}  // namespace
}  // namespace sherlorch
