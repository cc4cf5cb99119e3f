#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "core/base/count_allocations.h"
#include "core/scan/random_view.h"
#include "core/scan/scan.h"
#include "core/scan/scan_oracle.h"

namespace sherlorch {
namespace {

using Dims = std::vector<std::int64_t>;

class ScanStridedTest : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryDType, ScanStridedTest, testing::ValuesIn(kAllDTypes),
                         [](const auto& p) { return std::string(dtype_name(p.param)); });

TEST_P(ScanStridedTest, RandomViewsAgreeWithTheOracle) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 500; ++round) {
    const oracle::View view = oracle::random_view(random, GetParam(), round % 2 ? 0.0 : 0.02);
    const oracle::Answer answer = oracle::ask(view.data(), view.sizes, view.strides, GetParam());
    const ScanResult result = scan_strided(view.data(), view.sizes, view.strides, GetParam());
    ASSERT_EQ(result.nonfinite, answer.scan.nonfinite) << view.text();
    ASSERT_EQ(result.largest, answer.scan.largest) << view.text();
  }
}

ScanResult scan_floats(const std::vector<float>& data, const Dims& sizes, const Dims& strides) {
  return scan_strided(data.data(), sizes, strides, DType::kFloat32);
}

TEST(ScanStridedFloatTest, BadElementBetweenTheRowsOfASliceIsNotSeen) {
  std::vector<float> data(100, 1.0f);
  data[15] = NAN;  // column 5 of a 10 x 10 matrix
  EXPECT_FALSE(scan_floats(data, {10, 5}, {10, 1}).nonfinite);
  EXPECT_TRUE(scan_floats(data, {10, 6}, {10, 1}).nonfinite);
  EXPECT_FALSE(scan_floats(data, {50}, {2}).nonfinite);
  data[4] = INFINITY;
  EXPECT_TRUE(scan_floats(data, {50}, {2}).nonfinite);
}

TEST(ScanStridedFloatTest, ZeroDimensionalTensorIsOneElement) {
  EXPECT_EQ(scan_floats({-7.0f}, {}, {}).largest, 7.0f);
  EXPECT_TRUE(scan_floats({NAN}, {}, {}).nonfinite);
}

TEST(ScanStridedFloatTest, TensorWithoutElementsIsNeverRead) {
  const Dims sizes = {3, 0, 5};
  const Dims strides = {5, 5, 1};
  EXPECT_FALSE(scan_strided(nullptr, sizes, strides, DType::kFloat32).nonfinite);
}

TEST(ScanStridedFloatTest, HugeExpandCostsWhatItsBaseCosts) {
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_TRUE(scan_floats({NAN}, {huge}, {0}).nonfinite);
  EXPECT_EQ(scan_floats({1.0f, 2.0f}, {huge, 2, 1024}, {0, 1, 0}).largest, 2.0f);
}

TEST(ScanStridedFloatTest, OverlappingWindowsAreReadOnce) {
  // A million windows of a million elements each over two million: 10^12 reads if each window were read.
  const std::int64_t n = 1'000'000;
  std::vector<float> data(2 * n, 1.0f);
  EXPECT_FALSE(scan_floats(data, {n, n}, {1, 1}).nonfinite);
  data[2 * n - 2] = NAN;
  EXPECT_TRUE(scan_floats(data, {n, n}, {1, 1}).nonfinite);
}

TEST(ScanStridedFloatTest, ManyDimensionsAreScanned) {
  std::vector<float> data(1 << 20, 1.0f);
  Dims sizes;
  Dims strides;
  for (int k = 0; k < 20; ++k) {  // bits in a shuffled order, and unit dimensions between
    sizes.insert(sizes.end(), {2, 1});
    strides.insert(strides.end(), {std::int64_t{1} << (k * 7 % 20), 12345});
  }
  EXPECT_FALSE(scan_floats(data, sizes, strides).nonfinite);
  data[777777] = NAN;
  EXPECT_TRUE(scan_floats(data, sizes, strides).nonfinite);
  // With gaps, so that nothing merges.
  std::vector<float> sparse(2 << 16, NAN);
  sizes.assign(16, 2);
  strides.clear();
  std::int64_t stride = 1;
  for (int k = 0; k < 16; ++k) {
    strides.push_back(stride);
    stride = k % 3 == 2 ? stride * 2 + 1 : stride * 2;
  }
  const std::int64_t end = std::accumulate(strides.begin(), strides.end(), std::int64_t{1});
  sparse.assign(static_cast<std::size_t>(end), 3.0f);
  EXPECT_EQ(scan_floats(sparse, sizes, strides).largest, 3.0f);
  sparse.back() = -INFINITY;
  EXPECT_TRUE(scan_floats(sparse, sizes, strides).nonfinite);
}

TEST(ScanStridedFloatTest, AllocatesNothing) {
  const std::vector<float> data(1 << 16, 1.0f);
  const Dims sizes(16, 2);
  Dims strides(16);
  for (int k = 0; k < 16; ++k) strides[static_cast<std::size_t>(k)] = std::int64_t{1} << (k * 5 % 16);
  const Dims slice = {100, 3, 7};
  const Dims slice_strides = {500, 60, 2};
  const std::uint64_t before = allocations_of_this_thread();
  scan_floats(data, sizes, strides);
  scan_floats(data, slice, slice_strides);
  EXPECT_EQ(allocations_of_this_thread(), before);
}

}  // namespace
}  // namespace sherlorch
