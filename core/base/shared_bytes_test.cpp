#include "core/base/shared_bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace sherlorch {
namespace {

Geometry view(std::int64_t offset, std::uint32_t item, std::vector<std::int64_t> sizes,
              std::vector<std::int64_t> strides) {
  Geometry geometry;
  geometry.offset = offset;
  geometry.item_size = item;
  geometry.sizes.assign(sizes.begin(), sizes.end());
  geometry.strides.assign(strides.begin(), strides.end());
  return geometry;
}

ElementSet all_of(const Geometry& geometry) { return ElementSet::range(0, geometry.numel()); }

// Byte by byte.
ElementSet oracle(const Geometry& from, const ElementSet& elements, const Geometry& to, const ElementSet& candidates) {
  std::set<std::int64_t> bytes;
  elements.for_each([&](std::int64_t i) {
    for (std::int64_t b = 0; b < from.item_size; ++b) bytes.insert(from.byte_of(i) + b);
    return true;
  });
  ElementSet shared;
  candidates.for_each([&](std::int64_t i) {
    for (std::int64_t b = 0; b < to.item_size; ++b) {
      if (bytes.count(to.byte_of(i) + b) != 0) {
        shared.append(i, i + 1);
        break;
      }
    }
    return true;
  });
  return shared;
}

TEST(SharingBytesTest, AgreesWithBytesOnRandomViews) {
  std::mt19937 random(3);
  auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  auto some = [&](const Geometry& geometry) {
    ElementSet set;
    for (std::int64_t i = 0; i < geometry.numel(); ++i) {
      if (random() % 3 != 0) set.append(i, i + 1);
    }
    return set;
  };
  auto any_view = [&] {
    const auto item = static_cast<std::uint32_t>(1 << (1 + below(3)));
    const std::int64_t rows = 1 + below(4), columns = 1 + below(5);
    const std::int64_t column = (1 + below(2)) * item;
    const std::int64_t row = column * columns + below(3) * item;  // no two elements in one place
    return view(8 * below(4), item, {rows, columns}, {row, column});
  };
  for (int round = 0; round < 3000; ++round) {
    const Geometry from = any_view(), to = any_view();
    const ElementSet elements = some(from), candidates = some(to);
    const ElementSet expected = oracle(from, elements, to, candidates);
    EXPECT_EQ(sharing_bytes(from, elements, to, candidates), expected);
    EXPECT_EQ(sharing_bytes(from, elements, to, candidates, true), expected);
  }
}

TEST(SharingBytesTest, ExpandedElementsAreAllFound) {
  const Geometry row = view(0, 4, {3}, {4});
  const Geometry expanded = view(0, 4, {2, 3}, {0, 4});
  EXPECT_EQ(sharing_bytes(row, ElementSet::range(1, 2), expanded, all_of(expanded)), ElementSet::of({1, 4}));
}

TEST(SharingBytesTest, ExpandedWithGapsAreAllFound) {
  const Geometry matrix = view(0, 4, {3, 3}, {12, 4});
  const Geometry diagonals = view(0, 4, {2, 3}, {0, 16});
  EXPECT_EQ(sharing_bytes(matrix, ElementSet::of({4}), diagonals, all_of(diagonals)), ElementSet::of({1, 4}));
}

TEST(SharingBytesTest, HundredsOfMillionsOfElementsAreARunOrCoarse) {
  const std::int64_t numel = 300'000'000;
  const Geometry whole = view(0, 4, {numel}, {4});
  const Geometry half = view(4 * (numel / 2), 4, {numel / 2}, {4});
  const ElementSet shared = sharing_bytes(whole, all_of(whole), half, all_of(half));
  EXPECT_EQ(shared, all_of(half));
  EXPECT_FALSE(shared.coarse());
  const Geometry evens = view(0, 4, {numel / 2}, {8});
  EXPECT_TRUE(sharing_bytes(whole, all_of(whole), evens, all_of(evens)).coarse());
}

}  // namespace
}  // namespace sherlorch
