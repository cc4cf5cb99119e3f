#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "core/scan/census_collector.h"
#include "core/scan/random_view.h"
#include "core/scan/scan.h"
#include "core/scan/scan_oracle.h"

namespace sherlorch {
namespace {

using Dims = std::vector<std::int64_t>;
using Members = std::set<std::int64_t>;

std::int64_t first_of(const Members& members) { return members.empty() ? -1 : *members.begin(); }

void expect_census(const Census& census, const oracle::Answer& answer) {
  ASSERT_EQ(census.numel, answer.numel);
  ASSERT_EQ(census.nan, static_cast<std::int64_t>(answer.nan.size()));
  ASSERT_EQ(census.pos_inf, static_cast<std::int64_t>(answer.pos_inf.size()));
  ASSERT_EQ(census.neg_inf, static_cast<std::int64_t>(answer.neg_inf.size()));
  ASSERT_EQ(census.first_nan, first_of(answer.nan));
  ASSERT_EQ(census.first_pos_inf, first_of(answer.pos_inf));
  ASSERT_EQ(census.first_neg_inf, first_of(answer.neg_inf));
  ASSERT_EQ(oracle::members(census.nan_at), answer.nan);
  ASSERT_EQ(oracle::members(census.pos_inf_at), answer.pos_inf);
  ASSERT_EQ(oracle::members(census.neg_inf_at), answer.neg_inf);
  ASSERT_FALSE(census.nan_at.coarse() || census.pos_inf_at.coarse() || census.neg_inf_at.coarse());
}

class CensusTest : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryDType, CensusTest, testing::ValuesIn(kAllDTypes),
                         [](const auto& p) { return std::string(dtype_name(p.param)); });

TEST_P(CensusTest, BuffersOfEveryLengthAgreeWithTheOracle) {
  std::mt19937_64 random(7);
  for (const double bad_share : {0.02, 0.5, 1.0}) {
    for (std::int64_t count = 0; count <= 200; ++count) {
      std::vector<unsigned char> data(static_cast<std::size_t>(count) * element_size(GetParam()));
      oracle::fill(data.data(), static_cast<std::size_t>(count), GetParam(), bad_share, random);
      const Dims sizes = {count};
      const Dims strides = {1};
      ASSERT_NO_FATAL_FAILURE(expect_census(take_census(data.data(), sizes, strides, GetParam()),
                                            oracle::ask(data.data(), sizes, strides, GetParam())));
    }
  }
}

TEST_P(CensusTest, CleanAndBadStretchesOfALargeBufferAgreeWithTheOracle) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 5; ++round) {
    std::int64_t count = 0;
    std::vector<unsigned char> data;
    for (const double bad_share : {0.0, 1.0, 0.0, 0.001, 0.5, 0.0}) {
      const std::size_t stretch = random() % 20'000;
      const std::size_t at = data.size();
      data.resize(at + stretch * element_size(GetParam()));
      oracle::fill(data.data() + at, stretch, GetParam(), bad_share, random);
      count += static_cast<std::int64_t>(stretch);
    }
    const Dims sizes = {count};
    const Dims strides = {1};
    ASSERT_NO_FATAL_FAILURE(expect_census(take_census(data.data(), sizes, strides, GetParam()),
                                          oracle::ask(data.data(), sizes, strides, GetParam())));
  }
}

// Runs that end at, begin at or reach across the borders at which the census takes a step.
TEST_P(CensusTest, RunsAtTheBordersOfWordsAndStepsAgreeWithTheOracle) {
  std::mt19937_64 random(10);
  const auto item_size = static_cast<std::size_t>(element_size(GetParam()));
  for (int round = 0; round < 40; ++round) {
    const std::size_t count = 3 * 8192 / item_size + random() % 130;
    std::vector<unsigned char> data(count * item_size);
    oracle::fill(data.data(), count, GetParam(), 0.0, random);
    for (std::size_t border = 64; border < count; border += random() % 2 ? 64 : 1024) {
      const std::size_t begin = border - random() % 3;
      const std::size_t length = std::min(random() % 4 == 0 ? 64 + random() % 70 : random() % 5, count - begin);
      // Of one class, as a rule: runs of random classes are short.
      oracle::fill(data.data() + begin * item_size, std::min<std::size_t>(length, 1), GetParam(), 1.0, random);
      for (std::size_t i = 1; i < length; ++i) {
        std::memcpy(data.data() + (begin + i) * item_size, data.data() + begin * item_size, item_size);
      }
    }
    const Dims sizes = {static_cast<std::int64_t>(count)};
    const Dims strides = {1};
    ASSERT_NO_FATAL_FAILURE(expect_census(take_census(data.data(), sizes, strides, GetParam()),
                                          oracle::ask(data.data(), sizes, strides, GetParam())));
  }
}

TEST_P(CensusTest, RandomViewsAgreeWithTheOracle) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 400; ++round) {
    const oracle::View view = oracle::random_view(random, GetParam(), round % 3 ? 0.05 : 0.9);
    SCOPED_TRACE(view.text());
    ASSERT_NO_FATAL_FAILURE(expect_census(take_census(view.data(), view.sizes, view.strides, GetParam()),
                                          oracle::ask(view.data(), view.sizes, view.strides, GetParam())));
  }
}

Census census_of(const std::vector<float>& data, const Dims& sizes, const Dims& strides) {
  return take_census(data.data(), sizes, strides, DType::kFloat32);
}

TEST(CensusFloatTest, WhollyBadTensorIsASingleRun) {
  const Census census = census_of(std::vector<float>(100'000, NAN), {100'000}, {1});
  EXPECT_EQ(census.nan, 100'000);
  ASSERT_EQ(census.nan_at.runs().size(), 1u);
  EXPECT_EQ(census.nan_at.count(), 100'000);
  EXPECT_EQ(census.bad(), 100'000);
}

TEST(CensusFloatTest, EveryOtherElementIsARunOfItsOwn) {
  std::vector<float> data(100'000, 1.0f);
  for (std::size_t i = 1; i < data.size(); i += 2) data[i] = i % 4 == 1 ? NAN : -INFINITY;
  const Census census = census_of(data, {100'000}, {1});
  EXPECT_EQ(census.nan, 25'000);
  EXPECT_EQ(census.neg_inf, 25'000);
  EXPECT_EQ(census.first_neg_inf, 3);
  ASSERT_EQ(census.nan_at.runs().size(), 25'000u);
  ASSERT_EQ(census.neg_inf_at.runs().size(), 25'000u);
  EXPECT_EQ(census.nan_at.runs().back(), (sherlorch::Run{99'997, 99'998}));
  EXPECT_EQ(census.neg_inf_at.runs().back(), (sherlorch::Run{99'999, 100'000}));
}

TEST(CensusFloatTest, StretchesOfOneClassThatTouchAreASingleRun) {
  // Uniform steps, steps with a clean element, and again uniform ones.
  std::vector<float> data(50'000, INFINITY);
  data[20'001] = 0.0f;
  const Census census = census_of(data, {50'000}, {1});
  EXPECT_EQ(census.pos_inf, 49'999);
  ASSERT_EQ(census.pos_inf_at.runs().size(), 2u);
  EXPECT_EQ(census.pos_inf_at.runs()[0], (sherlorch::Run{0, 20'001}));
  EXPECT_EQ(census.pos_inf_at.runs()[1], (sherlorch::Run{20'002, 50'000}));
}

TEST(CensusFloatTest, ExpandedElementIsASingleExactRun) {
  const std::int64_t huge = std::int64_t{1} << 28;
  const Census census = census_of({-INFINITY}, {huge, 16}, {0, 0});
  EXPECT_EQ(census.numel, 16 * huge);
  EXPECT_EQ(census.neg_inf, 16 * huge);
  EXPECT_EQ(census.first_neg_inf, 0);
  EXPECT_EQ(census.neg_inf_at, ElementSet::range(0, 16 * huge));
  EXPECT_FALSE(census.neg_inf_at.coarse());
  EXPECT_LE(census.neg_inf_at.bytes(), 64u);
}

TEST(CensusFloatTest, HugeExpandOfAPartlyBadRowCountsExactlyAndLosesNothing) {
  const std::int64_t huge = std::int64_t{1} << 28;
  const Census census = census_of({1, 2, NAN, 3}, {huge, 4}, {0, 1});
  EXPECT_EQ(census.nan, huge);
  EXPECT_EQ(census.first_nan, 2);
  EXPECT_TRUE(census.nan_at.coarse());
  EXPECT_EQ(census.nan_at.first(), 2);
  EXPECT_TRUE(census.nan_at.contains(4 * huge - 2));
  EXPECT_FALSE(census.nan_at.contains(4 * huge - 1));
}

TEST(CensusFloatTest, OnlyTheBadBlocksOfAHugeExpandAreCoarse) {
  const std::int64_t huge = std::int64_t{1} << 20;
  // Rows of two, each row repeated: blocks 0 and 3 hold a NaN.
  const Census census = census_of({NAN, 0, 0, 0, 0, 0, 0, NAN}, {4, huge, 2}, {2, 0, 1});
  EXPECT_EQ(census.nan, 2 * huge);
  EXPECT_TRUE(census.nan_at.contains(0));
  EXPECT_TRUE(census.nan_at.contains(8 * huge - 1));
  EXPECT_FALSE(census.nan_at.contains(2 * huge));
  EXPECT_FALSE(census.nan_at.contains(6 * huge - 1));
}

TEST(CensusFloatTest, ExpandWhoseRunsExceedTheBoundTurnsCoarseAndLosesNothing) {
  std::vector<float> row(1000, 0.0f);
  for (std::size_t i = 0; i < row.size(); i += 4) row[i] = NAN;
  const Census census = census_of(row, {2000, 1000}, {0, 1});
  EXPECT_EQ(census.nan, 500'000);
  EXPECT_TRUE(census.nan_at.coarse());
  EXPECT_LE(census.nan_at.runs().size(), ElementSet::kMaxRuns);
  for (std::int64_t i = 0; i < 2'000'000; i += 4) ASSERT_TRUE(census.nan_at.contains(i));
}

TEST(CensusFloatTest, ScatteredBadElementsBeyondTheBoundAreCountedExactly) {
  std::vector<float> data(1'000'000, 1.0f);
  for (std::size_t i = 7; i < data.size(); i += 5) data[i] = INFINITY;
  const Census census = census_of(data, {1'000'000}, {1});
  EXPECT_EQ(census.pos_inf, 199'999);
  EXPECT_EQ(census.first_pos_inf, 7);
  EXPECT_TRUE(census.pos_inf_at.coarse());
  for (std::int64_t i = 7; i < 1'000'000; i += 5) ASSERT_TRUE(census.pos_inf_at.contains(i));
}

TEST(CensusFloatTest, TransposedMatrixIsNumberedInItsOwnOrder) {
  std::vector<float> data(6 * 4, 0.0f);
  data[1 * 4 + 2] = NAN;  // row 1, column 2 of the 6 x 4 base: [2, 1] of the 4 x 6 view
  EXPECT_EQ(census_of(data, {4, 6}, {1, 4}).first_nan, 2 * 6 + 1);
}

TEST(CensusFloatTest, LargeTransposedMatrixAgreesWithItsBase) {
  const std::int64_t rows = 300;
  const std::int64_t columns = 1700;
  std::vector<float> data(static_cast<std::size_t>(rows * columns), 1.0f);
  std::mt19937_64 random(10);
  oracle::fill(reinterpret_cast<unsigned char*>(data.data()), data.size(), DType::kFloat32, 0.01, random);
  const Census base = census_of(data, {rows, columns}, {columns, 1});
  const Census transposed = census_of(data, {columns, rows}, {1, columns});
  EXPECT_EQ(transposed.nan, base.nan);
  EXPECT_EQ(transposed.pos_inf, base.pos_inf);
  Members moved;
  base.nan_at.for_each([&](std::int64_t i) {
    moved.insert(i % columns * rows + i / columns);
    return true;
  });
  EXPECT_EQ(oracle::members(transposed.nan_at), moved);
}

TEST(CensusFloatTest, ComplexElementIsNanBeforeInfiniteAndGoesByItsFirstInfinitePart) {
  const std::vector<float> data = {INFINITY, NAN, -INFINITY, INFINITY, 1, INFINITY, 2, -INFINITY, 3, 4};
  const Dims sizes = {5};
  const Dims strides = {1};
  const Census census = take_census(data.data(), sizes, strides, DType::kComplex64);
  EXPECT_EQ(oracle::members(census.nan_at), (Members{0}));
  EXPECT_EQ(oracle::members(census.neg_inf_at), (Members{1, 3}));
  EXPECT_EQ(oracle::members(census.pos_inf_at), (Members{2}));
}

TEST(CensusFloatTest, TensorsWithoutElementsAndOtherTypesAreNeverRead) {
  const Dims sizes = {2, 0};
  const Dims strides = {0, 1};
  EXPECT_EQ(take_census(nullptr, sizes, strides, DType::kFloat32).numel, 0);
  const Dims some = {2, 3};
  const Census census = take_census(nullptr, some, strides, DType::kOther);
  EXPECT_EQ(census.numel, 6);
  EXPECT_EQ(census.bad(), 0);
  EXPECT_EQ(census.first_nan, -1);
}

TEST(RepeatBlocksTest, AgreesWithCopyingEachBlock) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 2000; ++round) {
    const auto inner = static_cast<std::int64_t>(1 + random() % 6);
    const auto times = static_cast<std::int64_t>(1 + random() % 4);
    std::vector<std::int64_t> indices;
    for (int i = 0; i < 60; ++i) {
      if (random() % 4 != 0) indices.push_back(i);
    }
    Members expected;
    for (const std::int64_t i : indices) {
      for (std::int64_t copy = 0; copy < times; ++copy) {
        expected.insert((i / inner * times + copy) * inner + i % inner);
      }
    }
    const ElementSet result = scan::repeat_blocks(ElementSet::of(indices), inner, times);
    ASSERT_EQ(oracle::members(result), expected);
    ASSERT_FALSE(result.coarse());
  }
}

}  // namespace
}  // namespace sherlorch
