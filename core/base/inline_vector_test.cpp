#include "core/base/inline_vector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/element_set.h"

namespace sherlorch {
namespace {

using testing::ElementsAre;
using Vector = InlineVector<std::int64_t, 2>;

Vector counted(std::int64_t count) {
  Vector vector;
  for (std::int64_t i = 0; i < count; ++i) vector.push_back(i);
  return vector;
}

TEST(InlineVectorTest, IsAsSmallAsPromised) {
  EXPECT_EQ(sizeof(InlineVector<sherlorch::Run, 1>), 24u);
  EXPECT_EQ(sizeof(InlineVector<std::int64_t, 4>), 40u);
}

TEST(InlineVectorTest, KeepsItsFirstElementsInItself) {
  Vector vector;
  EXPECT_TRUE(vector.empty());
  vector.push_back(4);
  vector.push_back(5);
  EXPECT_THAT(vector, ElementsAre(4, 5));
  EXPECT_EQ(vector.heap_bytes(), 0u);
  const auto at = reinterpret_cast<std::uintptr_t>(vector.data());
  const auto self = reinterpret_cast<std::uintptr_t>(&vector);
  EXPECT_TRUE(self <= at && at < self + sizeof(vector));
  vector.push_back(6);
  EXPECT_THAT(vector, ElementsAre(4, 5, 6));
  EXPECT_EQ(vector.heap_bytes(), vector.capacity() * sizeof(std::int64_t));
  EXPECT_EQ(vector.front(), 4);
  EXPECT_EQ(vector.back(), 6);
}

TEST(InlineVectorTest, ElementsSmallerThanAnAddress) {
  InlineVector<char, 1> vector;
  for (char c = 'a'; c <= 'z'; ++c) vector.push_back(c);
  EXPECT_EQ(vector.size(), 26u);
  EXPECT_EQ(vector[25], 'z');
}

TEST(InlineVectorTest, CopiesAreIndependentAndOfTheirContentsSize) {
  for (const std::int64_t count : {0, 1, 2, 3, 9}) {
    Vector vector = counted(count);
    Vector copy(vector);
    EXPECT_EQ(copy, vector);
    EXPECT_EQ(copy.capacity(), static_cast<std::size_t>(std::max<std::int64_t>(count, 2)));
    vector.push_back(7);
    EXPECT_EQ(copy, counted(count));
    for (const std::int64_t before : {0, 2, 5, 20}) {
      Vector assigned = counted(before);
      assigned = copy;
      EXPECT_EQ(assigned, copy);
    }
  }
  Vector long_once = counted(9);
  long_once.resize(1);
  EXPECT_EQ(Vector(long_once).heap_bytes(), 0u);
}

TEST(InlineVectorTest, MovingLeavesNothingBehind) {
  for (const std::int64_t count : {0, 1, 2, 3, 9}) {
    Vector vector = counted(count);
    Vector moved(std::move(vector));
    EXPECT_EQ(moved, counted(count));
    EXPECT_TRUE(vector.empty());
    EXPECT_EQ(vector.heap_bytes(), 0u);
    vector.push_back(1);
    EXPECT_THAT(vector, ElementsAre(1));
    for (const std::int64_t before : {0, 2, 5}) {
      Vector from = counted(count);
      Vector to = counted(before);
      to = std::move(from);
      EXPECT_EQ(to, counted(count));
      EXPECT_TRUE(from.empty());
    }
  }
}

TEST(InlineVectorTest, AssignedToItselfItStays) {
  for (const std::int64_t count : {1, 5}) {
    Vector vector = counted(count);
    Vector& same = vector;
    vector = same;
    EXPECT_EQ(vector, counted(count));
    vector = std::move(same);
    EXPECT_EQ(vector, counted(count));
  }
}

TEST(InlineVectorTest, AppendsItsOwnElementWhileItGrows) {
  Vector vector{3, 4};
  vector.push_back(vector[0]);
  EXPECT_THAT(vector, ElementsAre(3, 4, 3));
  while (vector.size() < vector.capacity()) vector.push_back(9);
  vector.push_back(vector[1]);
  EXPECT_EQ(vector.back(), 4);
  Vector full{3, 4};
  full.insert(full.begin(), full[1]);
  EXPECT_THAT(full, ElementsAre(4, 3, 4));
}

TEST(InlineVectorTest, ResizeFillsWithNothing) {
  Vector vector{3, 4};
  vector.resize(1);
  vector.resize(4);
  EXPECT_THAT(vector, ElementsAre(3, 0, 0, 0));
}

TEST(InlineVectorTest, ErasesTheWholeAndNothing) {
  Vector vector = counted(5);
  EXPECT_EQ(vector.erase(vector.begin() + 2, vector.begin() + 2), vector.begin() + 2);
  EXPECT_EQ(vector.size(), 5u);
  vector.erase(vector.begin() + 1, vector.end());
  EXPECT_THAT(vector, ElementsAre(0));
  vector.erase(vector.begin(), vector.end());
  EXPECT_TRUE(vector.empty());
}

TEST(InlineVectorTest, IsASpan) {
  const Vector vector{1, 2, 3};
  const std::span<const std::int64_t> span = vector;
  EXPECT_EQ(span.data(), vector.data());
  EXPECT_EQ(span.size(), 3u);
}

TEST(InlineVectorTest, TooLongIsAnError) {
  Vector vector{1};
  EXPECT_THROW(vector.reserve(std::size_t{1} << 32), std::length_error);
  EXPECT_THAT(vector, ElementsAre(1));
}

// `make` gives an element for a number.
template <typename T, typename Make>
void expect_what_a_vector_does(Make&& make) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    InlineVector<T, 2> vector;
    std::vector<T> expected;
    for (int step = 0; step < 60; ++step) {
      const T value = make(random() % 100);
      const std::size_t at = random() % (expected.size() + 1);
      const std::size_t to = at + random() % (expected.size() - at + 1);
      switch (random() % 8) {
        case 0:
        case 1:
          vector.push_back(value);
          expected.push_back(value);
          break;
        case 2:
          EXPECT_EQ(*vector.insert(vector.begin() + at, value), value);
          expected.insert(expected.begin() + at, value);
          break;
        case 3:
          EXPECT_EQ(vector.erase(vector.begin() + at, vector.begin() + to), vector.begin() + at);
          expected.erase(expected.begin() + at, expected.begin() + to);
          break;
        case 4:
          vector.resize(to);
          expected.resize(to);
          break;
        case 5: {
          InlineVector<T, 2> moved(std::move(vector));
          EXPECT_TRUE(vector.empty());
          if (random() % 2 == 0) vector.push_back(value);
          vector = std::move(moved);
          break;
        }
        case 6: {
          const InlineVector<T, 2> copy(vector);
          vector.push_back(value);
          vector = copy;
          break;
        }
        default:
          vector.assign(expected.begin(), expected.end());
      }
      ASSERT_TRUE(std::equal(vector.begin(), vector.end(), expected.begin(), expected.end()));
    }
  }
}

TEST(InlineVectorTest, DoesWhatAVectorDoes) {
  expect_what_a_vector_does<std::int64_t>([](unsigned number) { return std::int64_t{number}; });
}

// Each of them in a block of its own, which the sanitizer counts.
TEST(InlineVectorTest, DoesWhatAVectorDoesWithElementsThatOwnSomething) {
  expect_what_a_vector_does<std::string>(
      [](unsigned number) { return std::string(100, 'a') + std::to_string(number); });
}

TEST(InlineVectorTest, ElementsThatCannotBeCopiedAreMoved) {
  InlineVector<std::unique_ptr<int>, 1> vector;
  for (int i = 0; i < 5; ++i) vector.push_back(std::make_unique<int>(i));
  InlineVector<std::unique_ptr<int>, 1> moved(std::move(vector));
  EXPECT_TRUE(vector.empty());
  ASSERT_EQ(moved.size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(*moved[i], i);
}

}  // namespace
}  // namespace sherlorch
