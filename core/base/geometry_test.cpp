#include "core/base/geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace sherlorch {
namespace {

using Dims = std::vector<std::int64_t>;

Geometry strided(const Dims& sizes, const Dims& strides, std::uint32_t item_size = 4, std::int64_t offset = 0) {
  return {offset, item_size, {sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}};
}

// Every answer that depends on a byte, against a walk over all elements.
void expect_agrees_with_walk(const Geometry& geometry) {
  const std::int64_t numel = geometry.numel();
  std::vector<std::int64_t> bytes;
  for (std::int64_t linear = 0; linear < numel; ++linear) {
    const Dims index = geometry.index_of(linear);
    std::int64_t byte = geometry.offset;
    for (std::size_t k = 0; k < index.size(); ++k) byte += index[k] * geometry.strides[k];
    ASSERT_EQ(geometry.byte_of(linear), byte);
    bytes.push_back(byte);
  }
  std::int64_t begin = geometry.offset;
  std::int64_t end = geometry.offset;
  if (numel > 0) {
    begin = *std::min_element(bytes.begin(), bytes.end());
    end = *std::max_element(bytes.begin(), bytes.end()) + geometry.item_size;
  }
  EXPECT_EQ(geometry.begin_byte(), begin);
  EXPECT_EQ(geometry.end_byte(), end);
  for (std::int64_t byte = begin - 20; byte < end + 20; ++byte) {
    std::int64_t starting = -1;
    std::int64_t containing = -1;
    for (std::int64_t linear = numel; linear-- > 0;) {
      const std::int64_t start = bytes[static_cast<std::size_t>(linear)];
      if (start == byte) starting = linear;
      if (start <= byte && byte < start + geometry.item_size) containing = linear;
    }
    ASSERT_EQ(geometry.linear_of_byte(byte), starting) << "byte " << byte;
    ASSERT_EQ(geometry.linear_containing(byte), containing) << "byte " << byte;
  }
}

TEST(GeometryTest, ContiguousGeometryIsContiguous) {
  const Geometry geometry = contiguous_geometry(Dims{2, 3, 4}, 4, 16);
  EXPECT_EQ(geometry.strides, (DimArray{48, 16, 4}));
  EXPECT_TRUE(geometry.contiguous());
  EXPECT_EQ(geometry.numel(), 24);
  EXPECT_EQ(geometry.begin_byte(), 16);
  EXPECT_EQ(geometry.end_byte(), 16 + 96);
  expect_agrees_with_walk(geometry);
}

TEST(GeometryTest, ZeroDimTensorIsOneElement) {
  const Geometry geometry = strided({}, {}, 8, 24);
  EXPECT_EQ(geometry.numel(), 1);
  EXPECT_TRUE(geometry.contiguous());
  EXPECT_EQ(geometry.linear_of_byte(24), 0);
  EXPECT_TRUE(geometry.index_of(0).empty());
  expect_agrees_with_walk(geometry);
}

TEST(GeometryTest, EmptyTensorHoldsNoByte) {
  const Geometry geometry = strided({3, 0, 2}, {8, 8, 4}, 4, 100);
  EXPECT_EQ(geometry.numel(), 0);
  EXPECT_TRUE(geometry.contiguous());
  EXPECT_EQ(geometry.begin_byte(), geometry.end_byte());
  EXPECT_EQ(geometry.linear_of_byte(100), -1);
  expect_agrees_with_walk(geometry);
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(contiguous_geometry(Dims{huge, huge, 0}, 4).numel(), 0);
}

TEST(GeometryTest, StridesOfUnitDimensionsDoNotMatter) {
  EXPECT_TRUE(strided({1, 3, 1}, {999, 4, -7}).contiguous());
  expect_agrees_with_walk(strided({1, 3, 1}, {999, 4, -7}));
}

TEST(GeometryTest, TransposedSlicedAndFlippedViewsAgreeWithAWalk) {
  expect_agrees_with_walk(strided({4, 3}, {4, 16}));
  expect_agrees_with_walk(strided({3, 5}, {40, 8}, 4, 12));
  expect_agrees_with_walk(strided({3, 5}, {-40, 8}, 4, 200));
  expect_agrees_with_walk(strided({2, 3, 4}, {4, 32, 8}));
  EXPECT_FALSE(strided({4, 3}, {4, 16}).contiguous());
}

TEST(GeometryTest, ExpandedByteBelongsToItsFirstElement) {
  const Geometry geometry = strided({5, 3, 2}, {0, 4, 0});
  EXPECT_EQ(geometry.linear_of_byte(4), 2);
  expect_agrees_with_walk(geometry);
  const Geometry scalar = strided({std::int64_t{1} << 20, 1 << 20}, {0, 0});
  EXPECT_EQ(scalar.linear_of_byte(0), 0);
}

TEST(GeometryTest, OverlappingWindowsGiveTheFirstElement) {
  expect_agrees_with_walk(strided({6, 4}, {4, 4}));  // unfold(size 4, step 1)
  expect_agrees_with_walk(strided({4, 4}, {8, 4}));  // step 2
  expect_agrees_with_walk(strided({3, 4, 2}, {8, 12, 4}));
  expect_agrees_with_walk(strided({6, 4}, {-4, 4}, 4, 80));
  expect_agrees_with_walk(strided({3, 3}, {2, 6}, 4));  // elements that share some bytes
}

TEST(GeometryTest, RandomGeometriesAgreeWithAWalk) {
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    Geometry geometry;
    geometry.item_size = 1u << (random() % 5);
    geometry.offset = random() % 50;
    const unsigned ndim = random() % 5;
    for (unsigned k = 0; k < ndim; ++k) {
      geometry.sizes.push_back(static_cast<std::int64_t>(random() % 5));
      const auto stride = static_cast<std::int64_t>(random() % 24);
      geometry.strides.push_back(random() % 5 == 0 ? -stride : stride);
    }
    ASSERT_NO_FATAL_FAILURE(expect_agrees_with_walk(geometry));
  }
}

TEST(GeometryTest, LargeOrdinaryViewIsAnsweredByDivision) {
  const std::int64_t n = std::int64_t{1} << 20;
  const Geometry transposed = strided({n, n}, {4, 4 * n});
  for (const std::int64_t linear : {std::int64_t{0}, n - 1, n * n / 3, n * n - 1}) {
    EXPECT_EQ(transposed.linear_of_byte(transposed.byte_of(linear)), linear);
    EXPECT_EQ(transposed.linear_containing(transposed.byte_of(linear) + 3), linear);
    EXPECT_EQ(transposed.linear_of_byte(transposed.byte_of(linear) + 1), -1);
  }
}

TEST(GeometryTest, ManyDimensionsAgreeWithAWalk) {
  Dims sizes(40, 1);
  Dims strides(40, 3);
  for (const std::size_t k : {2u, 9u, 17u, 30u}) sizes[k] = 2;
  strides[2] = 8;
  strides[9] = 64;
  strides[17] = 16;
  strides[30] = 4;
  expect_agrees_with_walk(strided(sizes, strides));
}

}  // namespace
}  // namespace sherlorch
