#include "core/base/dtype.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

namespace sherlorch {
namespace {

TEST(DTypeTest, NamesAreTorchNamesAndDistinct) {
  EXPECT_EQ(dtype_name(DType::kOther), "other");
  EXPECT_EQ(dtype_name(DType::kFloat32), "float32");
  EXPECT_EQ(dtype_name(DType::kBFloat16), "bfloat16");
  EXPECT_EQ(dtype_name(DType::kComplex128), "complex128");
  EXPECT_EQ(dtype_name(DType::kFloat8E4M3FN), "float8_e4m3fn");
  EXPECT_EQ(dtype_name(DType::kFloat8E8M0FNU), "float8_e8m0fnu");
  std::set<std::string> names;
  for (int i = 0; i < static_cast<int>(DType::kNumDTypes); ++i) {
    names.emplace(dtype_name(static_cast<DType>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(DType::kNumDTypes));
}

TEST(DTypeTest, SizesCountBothPartsOfAComplexElement) {
  EXPECT_EQ(element_size(DType::kOther), 0u);
  EXPECT_EQ(element_size(DType::kFloat16), 2u);
  EXPECT_EQ(element_size(DType::kFloat64), 8u);
  EXPECT_EQ(element_size(DType::kComplex32), 4u);
  EXPECT_EQ(element_size(DType::kComplex64), 8u);
  EXPECT_EQ(element_size(DType::kComplex128), 16u);
  EXPECT_EQ(element_size(DType::kFloat8E5M2FNUZ), 1u);
}

TEST(DTypeTest, LargestFiniteIsTheFormatsMaximum) {
  EXPECT_EQ(largest_finite(DType::kOther), 0.0);
  EXPECT_EQ(largest_finite(DType::kFloat16), 65504.0);
  EXPECT_EQ(largest_finite(DType::kBFloat16), 3.3895313892515355e38);
  EXPECT_EQ(largest_finite(DType::kFloat32), double{std::numeric_limits<float>::max()});
  EXPECT_EQ(largest_finite(DType::kFloat64), std::numeric_limits<double>::max());
  EXPECT_EQ(largest_finite(DType::kFloat8E4M3FN), 448.0);
  EXPECT_EQ(largest_finite(DType::kFloat8E4M3FNUZ), 240.0);
  EXPECT_EQ(largest_finite(DType::kComplex64), largest_finite(DType::kFloat32));
}

TEST(DTypeTest, ValueOutsideTheEnumIsTreatedAsOther) {
  EXPECT_EQ(dtype_name(DType::kNumDTypes), "other");
  EXPECT_EQ(element_size(DType::kNumDTypes), 0u);
}

}  // namespace
}  // namespace sherlorch
