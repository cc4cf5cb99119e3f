#include "core/base/element_set.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

namespace sherlorch {
namespace {

std::set<std::int64_t> members(const ElementSet& set) {
  std::set<std::int64_t> result;
  set.for_each([&](std::int64_t index) {
    result.insert(index);
    return true;
  });
  return result;
}

// Sorted, disjoint, non-adjacent, non-empty.
void expect_well_formed(const ElementSet& set) {
  std::int64_t previous_end = -1;
  for (const Run& run : set.runs()) {
    EXPECT_LT(previous_end, run.begin);
    EXPECT_LT(run.begin, run.end);
    previous_end = run.end;
  }
  EXPECT_LE(set.runs().size(), ElementSet::kMaxRuns);
}

TEST(ElementSetTest, EmptySetHasNoFirstAndNoMembers) {
  const ElementSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.first(), -1);
  EXPECT_EQ(set.count(), 0);
  EXPECT_FALSE(set.contains(0));
  EXPECT_TRUE(ElementSet::range(5, 5).empty());
  EXPECT_TRUE(ElementSet::range(5, 4).empty());
}

TEST(ElementSetTest, AppendMergesAdjacentRuns) {
  ElementSet set;
  set.append(1, 3);
  set.append(3, 4);
  set.append(5, 6);
  EXPECT_EQ(set.runs().size(), 2u);
  EXPECT_EQ(set.runs()[0], (sherlorch::Run{1, 4}));
  EXPECT_EQ(set.count(), 4);
  EXPECT_FALSE(set.coarse());
}

TEST(ElementSetTest, AppendingEdgesIsAppendingTheirRuns) {
  std::mt19937 random(3);
  for (const bool full : {false, true}) {
    ElementSet one_by_one;
    ElementSet at_once;
    std::int64_t at = 0;
    // The second round passes the bound within a batch and goes on in a coarse set.
    for (int batch = 0; batch < (full ? 400 : 20); ++batch) {
      std::vector<std::int64_t> edges;
      for (unsigned i = random() % (full ? 1000 : 5); i > 0; --i) {
        // The first of a batch may begin where the one before it ended.
        if (!edges.empty() || random() % 2 == 0) at += 1 + static_cast<std::int64_t>(random() % 9);
        edges.push_back(at);
        edges.push_back(at += 1 + static_cast<std::int64_t>(random() % 9));
        one_by_one.append(edges[edges.size() - 2], edges.back());
      }
      at_once.append_edges(edges);
      ASSERT_EQ(at_once, one_by_one);
      ASSERT_EQ(at_once.coarse(), one_by_one.coarse());
    }
    expect_well_formed(at_once);
    EXPECT_EQ(at_once.coarse(), full);
  }
}

TEST(ElementSetTest, RemoveIsTheDifferenceWithARun) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    ElementSet set;
    for (std::int64_t i = 0; i < 40; ++i) {
      if (random() % 2 == 0) set.append(i, i + 1);
    }
    const auto begin = static_cast<std::int64_t>(random() % 42);
    const std::int64_t end = begin + static_cast<std::int64_t>(random() % 20);
    const ElementSet expected = set_difference(set, ElementSet::range(begin, end));
    set.remove(begin, end);
    EXPECT_EQ(set, expected);
    expect_well_formed(set);
  }
}

TEST(ElementSetTest, OfSortsAndDropsRepetitions) {
  const ElementSet set = ElementSet::of({7, 3, 4, 3, 9, 8});
  EXPECT_EQ(members(set), (std::set<std::int64_t>{3, 4, 7, 8, 9}));
  EXPECT_EQ(set.runs().size(), 2u);
}

TEST(ElementSetTest, ContainsIsHalfOpen) {
  ElementSet set = ElementSet::range(10, 20);
  set.append(30, 31);
  EXPECT_FALSE(set.contains(9));
  EXPECT_TRUE(set.contains(10));
  EXPECT_TRUE(set.contains(19));
  EXPECT_FALSE(set.contains(20));
  EXPECT_TRUE(set.contains(30));
  EXPECT_FALSE(set.contains(31));
}

TEST(ElementSetTest, ForEachStopsWhenToldTo) {
  int calls = 0;
  ElementSet::range(0, 100).for_each([&](std::int64_t) { return ++calls < 3; });
  EXPECT_EQ(calls, 3);
}

TEST(ElementSetTest, AlgebraAgreesWithStdSet) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::int64_t> a_items;
    std::vector<std::int64_t> b_items;
    for (auto* items : {&a_items, &b_items}) {
      const unsigned n = random() % 20;
      for (unsigned i = 0; i < n; ++i) items->push_back(random() % 30);
    }
    const ElementSet a = ElementSet::of(a_items);
    const ElementSet b = ElementSet::of(b_items);
    const std::set<std::int64_t> in_a(a_items.begin(), a_items.end());
    const std::set<std::int64_t> in_b(b_items.begin(), b_items.end());
    std::set<std::int64_t> both = in_a;
    both.insert(in_b.begin(), in_b.end());
    std::set<std::int64_t> common;
    std::set<std::int64_t> only_a;
    for (const auto i : in_a) (in_b.count(i) ? common : only_a).insert(i);
    EXPECT_EQ(members(set_union(a, b)), both);
    EXPECT_EQ(members(set_intersection(a, b)), common);
    EXPECT_EQ(members(set_difference(a, b)), only_a);
    EXPECT_EQ(a.intersects(b), !common.empty());
    for (std::int64_t i = -1; i < 31; ++i) EXPECT_EQ(a.contains(i), in_a.count(i) == 1);
    EXPECT_EQ(a.count(), static_cast<std::int64_t>(in_a.size()));
    expect_well_formed(set_union(a, b));
    expect_well_formed(set_intersection(a, b));
    expect_well_formed(set_difference(a, b));
  }
}

TEST(ElementSetTest, SetOfExactlyMaxRunsStaysExact) {
  ElementSet set;
  for (std::size_t i = 0; i < ElementSet::kMaxRuns; ++i) {
    set.append(static_cast<std::int64_t>(2 * i), static_cast<std::int64_t>(2 * i + 1));
  }
  EXPECT_FALSE(set.coarse());
  EXPECT_EQ(set.count(), static_cast<std::int64_t>(ElementSet::kMaxRuns));
}

TEST(ElementSetTest, CoarseSetLosesNothingAndStaysBetweenFirstAndLast) {
  std::mt19937 random(2);
  for (const int spread : {3, 50, 5000}) {
    ElementSet set;
    std::vector<std::int64_t> put;
    std::int64_t index = 5;
    for (int i = 0; i < 400'000; ++i) {
      index += 2 + static_cast<std::int64_t>(random() % static_cast<unsigned>(spread));
      put.push_back(index);
      set.append(index, index + 1);
    }
    EXPECT_TRUE(set.coarse());
    expect_well_formed(set);
    EXPECT_EQ(set.first(), put.front());
    EXPECT_EQ(set.runs().back().end, put.back() + 1);
    for (const std::int64_t i : put) ASSERT_TRUE(set.contains(i)) << i;
    // Coarse, not careless: the spread of the elements bounds what was added.
    EXPECT_LE(set.bytes(), 4 * ElementSet::kMaxRuns * sizeof(sherlorch::Run));
  }
}

TEST(ElementSetTest, CoarsenToKeepsEveryElementDownToASingleRun) {
  ElementSet set = ElementSet::of({3, 9, 100, 1000, 1002, 100'000});
  set.coarsen_to(6);
  EXPECT_FALSE(set.coarse());
  set.coarsen_to(3);
  EXPECT_TRUE(set.coarse());
  EXPECT_LE(set.runs().size(), 3u);
  for (const int i : {3, 9, 100, 1000, 1002, 100'000}) EXPECT_TRUE(set.contains(i));
  set.coarsen_to(0);
  ASSERT_EQ(set.runs().size(), 1u);
  EXPECT_EQ(set.runs()[0], (sherlorch::Run{3, 100'001}));
}

TEST(ElementSetTest, IndicesNearTheEndOfInt64DoNotOverflow) {
  const std::int64_t end = std::numeric_limits<std::int64_t>::max();
  ElementSet set = ElementSet::range(0, 1);
  set.append(end - 10, end - 9);
  set.append(end - 1, end);
  set.coarsen_to(2);
  EXPECT_TRUE(set.contains(end - 1));
  set.coarsen_to(1);
  EXPECT_TRUE(set.contains(end - 10));
  EXPECT_EQ(set.runs().back().end, end);
  set = ElementSet::of({0, 2, 4});
  set.coarsen_to(1);
  set.append(end - 1, end);
  EXPECT_TRUE(set.contains(end - 1));
}

TEST(ElementSetTest, CoarsenessIsInherited) {
  ElementSet a = ElementSet::range(0, 4);
  a.mark_coarse();
  const ElementSet b = ElementSet::range(2, 8);
  EXPECT_TRUE(set_union(a, b).coarse());
  EXPECT_TRUE(set_intersection(b, a).coarse());
  EXPECT_TRUE(set_difference(b, a).coarse());
  EXPECT_FALSE(set_union(b, b).coarse());
}

TEST(ElementSetTest, UnionOfTwoFullSetsFitsAndLosesNothing) {
  ElementSet even;
  ElementSet odd;
  for (std::int64_t i = 0; i < 60'000; ++i) {
    even.append(8 * i, 8 * i + 1);
    odd.append(8 * i + 4, 8 * i + 5);
  }
  const ElementSet all = set_union(even, odd);
  EXPECT_TRUE(all.coarse());
  expect_well_formed(all);
  for (std::int64_t i = 0; i < 120'000; ++i) ASSERT_TRUE(all.contains(4 * i));
}

}  // namespace
}  // namespace sherlorch
