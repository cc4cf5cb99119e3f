#include "core/scan/sample.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace sherlorch {
namespace {

constexpr std::size_t kBlock = kSampleBlockBytes / sizeof(float);
constexpr std::uint32_t kEvery = 8;

bool seen_at(std::size_t count, std::size_t begin, std::size_t length, std::uint32_t every = kEvery) {
  std::vector<float> values(count, 1.0f);
  for (std::size_t i = begin; i < begin + length; ++i) values[i] = std::numeric_limits<float>::quiet_NaN();
  return scan_sample(values.data(), count, DType::kFloat32, every).nonfinite;
}

TEST(SampleTest, ABlockInSoManyIsReadAndTheLastOne) {
  constexpr std::size_t kCount = 20 * kBlock + 5;
  EXPECT_TRUE(seen_at(kCount, 0, 1));
  EXPECT_TRUE(seen_at(kCount, kBlock - 1, 1));
  EXPECT_FALSE(seen_at(kCount, kBlock, 1));
  EXPECT_FALSE(seen_at(kCount, kEvery * kBlock - 1, 1));
  EXPECT_TRUE(seen_at(kCount, kEvery * kBlock, 1));
  EXPECT_TRUE(seen_at(kCount, kCount - 1, 1));
}

TEST(SampleTest, ARunLongerThanTheGapIsNeverMissed) {
  constexpr std::size_t kCount = 40 * kBlock;
  constexpr std::size_t kRun = (kEvery - 1) * kBlock + 1;
  for (std::size_t begin = 0; begin + kRun <= kCount; begin += 97) EXPECT_TRUE(seen_at(kCount, begin, kRun)) << begin;
}

TEST(SampleTest, EveryBlockIsTheWholeTensor) {
  EXPECT_TRUE(seen_at(5 * kBlock, 2 * kBlock + 7, 1, 1));
  EXPECT_TRUE(seen_at(3, 1, 1, 1000));  // shorter than a block
}

TEST(SampleTest, TheLargestMagnitudeIsOfWhatWasRead) {
  std::vector<double> values(1 << 14, 2.0);
  values[0] = -7.0;
  values[3000] = 9.0;  // in block 5 of 4 KiB
  EXPECT_EQ(scan_sample(values.data(), values.size(), DType::kFloat64, 16).largest, 7.0f);
  EXPECT_EQ(scan_sample(values.data(), values.size(), DType::kFloat64, 5).largest, 9.0f);
}

TEST(SampleTest, NothingAndTypesThatHoldNoNaNAreFinite) {
  EXPECT_FALSE(scan_sample(nullptr, 0, DType::kFloat32, 4).nonfinite);
  const int value = -1;
  EXPECT_FALSE(scan_sample(&value, 1, DType::kOther, 4).nonfinite);
}

}  // namespace
}  // namespace sherlorch
