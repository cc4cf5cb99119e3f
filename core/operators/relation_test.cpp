#include "core/operators/relation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/operators/relation_test_support.h"

namespace sherlorch {
namespace {

// --- the set algebra ---

TEST(RelationTest, IdentityIntersects) {
  const Relation relation = Relation::identity();
  EXPECT_TRUE(relation.is_identity());
  EXPECT_EQ(listed(relation.sources(ElementSet::of({1, 3}), ElementSet::of({3, 4}), Sizes{5}, Sizes{5})), Sizes{3});
}

TEST(RelationTest, NothingAndEverythingNeedNoShapes) {
  const ElementSet some = ElementSet::of({1, 7});
  EXPECT_TRUE(Relation::nothing().sources(some, some, Sizes{8}, Sizes{8}).empty());
  EXPECT_EQ(Relation::everything().sources(some, ElementSet::of({0, 2}), Sizes{8}, Sizes{8}), ElementSet::of({0, 2}));
  EXPECT_TRUE(Relation::everything().sources({}, some, Sizes{8}, Sizes{8}).empty());
}

TEST(RelationTest, BoxWithAFreeDimensionTakesWholeRows) {
  const Relation rows = Relation::box({0, Relation::kAny});
  EXPECT_EQ(listed(rows.sources(ElementSet::of({4}), all({2, 3}), Sizes{2, 3}, Sizes{2, 3})), (Sizes{3, 4, 5}));
  EXPECT_EQ(listed(rows.reached(ElementSet::of({0, 1, 5}), ElementSet::of({2}), Sizes{2, 3}, Sizes{2, 3})),
            (Sizes{0, 1}));
}

TEST(RelationTest, BoxClipsABroadcastDimensionToZero) {
  const Relation bias = Relation::box({0, 1});
  EXPECT_EQ(listed(bias.sources(ElementSet::of({4}), all({1, 3}), Sizes{2, 3}, Sizes{1, 3})), Sizes{1});
  EXPECT_EQ(listed(bias.reached(all({2, 3}), ElementSet::of({1}), Sizes{2, 3}, Sizes{1, 3})), (Sizes{1, 4}));
}

TEST(RelationTest, BoxMayUseAnOutputDimensionTwice) {
  const Relation diagonal = Relation::box({0, 0});
  EXPECT_EQ(listed(diagonal.sources(all({3}), all({3, 3}), Sizes{3}, Sizes{3, 3})), (Sizes{0, 4, 8}));
  EXPECT_EQ(listed(diagonal.reached(all({3}), ElementSet::of({1, 8}), Sizes{3}, Sizes{3, 3})), Sizes{2});
}

TEST(RelationTest, FunctionGoesBothWaysAndMayRepeat) {
  const Relation gather = Relation::function({2, 2, -1, 0});
  EXPECT_EQ(listed(gather.sources(ElementSet::of({0, 2}), all({3}), Sizes{4}, Sizes{3})), Sizes{2});
  EXPECT_EQ(listed(gather.reached(all({4}), ElementSet::of({2}), Sizes{4}, Sizes{3})), (Sizes{0, 1}));
  EXPECT_TRUE(gather.sources(ElementSet::of({2}), all({3}), Sizes{4}, Sizes{3}).empty());
}

TEST(RelationTest, RestrictionsHoldInBothDirections) {
  const Relation masked = Relation::identity().restrict_outputs(ElementSet::of({0, 2}));
  EXPECT_FALSE(masked.is_identity());
  EXPECT_EQ(listed(masked.sources(all({3}), all({3}), Sizes{3}, Sizes{3})), (Sizes{0, 2}));
  EXPECT_EQ(listed(masked.reached(all({3}), ElementSet::of({1, 2}), Sizes{3}, Sizes{3})), Sizes{2});
  const Relation picked = Relation::everything().restrict_inputs(ElementSet::of({1}));
  EXPECT_FALSE(picked.is_everything());
  EXPECT_EQ(listed(picked.sources(all({2}), all({3}), Sizes{2}, Sizes{3})), Sizes{1});
  EXPECT_TRUE(picked.reached(all({2}), ElementSet::of({0, 2}), Sizes{2}, Sizes{3}).empty());
}

TEST(RelationTest, ViewsThatDoNotFitTheShapesSayEverything) {
  const Relation relation = Relation::product({Link{}}, {2, 2}, {4});
  EXPECT_EQ(relation.sources(ElementSet::of({0}), all({9}), Sizes{9}, Sizes{9}), all({9}));
  Link beyond;
  beyond.in_dim = 3;
  EXPECT_EQ(Relation::product({beyond}, {}, {}).sources(ElementSet::of({0}), all({9}), Sizes{9}, Sizes{9}), all({9}));
}

TEST(RelationTest, LargeSetsOfFewRunsCostNoTimeAnElement) {
  const Sizes big{100'000, 1'000};
  const Relation row = Relation::box({0, Relation::kAny});
  const Relation bias = Relation::box({1});
  EXPECT_EQ(row.sources(all(big), all(big), big, big), all(big));
  EXPECT_EQ(row.sources(ElementSet::range(1'500, 99'999'500), all(big), big, big),
            ElementSet::range(1'000, 100'000'000));
  EXPECT_EQ(bias.sources(ElementSet::range(0, 99'999'999), all({1'000}), big, Sizes{1'000}), all({1'000}));
  EXPECT_EQ(bias.reached(ElementSet::of({5, 1'007, 99'999'007}), ElementSet::of({7}), big, Sizes{1'000}),
            ElementSet::of({1'007, 99'999'007}));
}

TEST(RelationTest, TooMuchWorkGivesTheCandidatesMarkedCoarse) {
  const Sizes sizes{5'000'000, 2};
  Link link;
  link.kind = Link::Kind::kPairs;
  link.a.resize(5'000'000);
  for (std::size_t k = 0; k < link.a.size(); ++k) link.a[k] = static_cast<std::int64_t>((k * 7'919) % link.a.size());
  link.b = link.a;
  const Relation relation = Relation::product({link}, sizes, sizes);
  const ElementSet found = relation.sources(ElementSet::range(2, 9'999'998), all(sizes), sizes, sizes);
  EXPECT_EQ(found, all(sizes));
  EXPECT_TRUE(found.coarse());
}

TEST(RelationTest, ACoarseQuestionGetsACoarseAnswer) {
  ElementSet wanted = ElementSet::of({4});
  wanted.mark_coarse();
  EXPECT_TRUE(Relation::box({0, Relation::kAny}).sources(wanted, all({2, 3}), Sizes{2, 3}, Sizes{2, 3}).coarse());
}

// --- against an oracle that looks at every pair of elements ---

Link random_link(Random& random, int out_dim, std::int64_t out, int in_dim, std::int64_t in) {
  Link link;
  link.out_dim = out_dim;
  link.in_dim = in_dim;
  link.kind = static_cast<Link::Kind>(random.below(5));
  auto target = [&](std::int64_t bound) { return random.below(8) == 0 ? Link::kAll : random.below(bound + 1) - 1; };
  switch (link.kind) {
    case Link::Kind::kSame:
      break;
    case Link::Kind::kPoints:
      for (std::int64_t c = 0; c < out; ++c) link.a.push_back(target(in));
      break;
    case Link::Kind::kScatter:
      for (std::int64_t c = 0; c < in; ++c) link.a.push_back(target(out));
      break;
    case Link::Kind::kWindow:
      for (std::int64_t c = 0; c < out; ++c) {
        link.a.push_back((c > 0 ? link.a.back() : 0) + random.below(2));
        link.b.push_back(std::max(c > 0 ? link.b.back() : 0, link.a.back() + random.below(3)));
      }
      break;
    case Link::Kind::kPairs:
      for (std::int64_t k = random.below(6); k > 0; --k) {
        link.a.push_back(random.below(out));
        link.b.push_back(random.below(in));
      }
      break;
  }
  return link;
}

bool tied(const Link& link, std::int64_t out, std::int64_t in) {
  switch (link.kind) {
    case Link::Kind::kSame:
      return out == in;
    case Link::Kind::kPoints:
      return link.a[out] == Link::kAll || link.a[out] == in;
    case Link::Kind::kScatter:
      return link.a[in] == Link::kAll || link.a[in] == out;
    case Link::Kind::kWindow:
      return link.a[out] <= in && in < link.b[out];
    case Link::Kind::kPairs:
      for (std::size_t k = 0; k < link.a.size(); ++k) {
        if (link.a[k] == out && link.b[k] == in) return true;
      }
      return false;
  }
  return false;
}

std::int64_t coordinate(const Sizes& shape, std::int64_t linear, int dim) {
  for (std::size_t d = shape.size() - 1; d > static_cast<std::size_t>(dim); --d) linear /= shape[d];
  return linear % shape[dim];
}

ElementSet random_set(Random& random, std::int64_t count) {
  Sizes elements;
  const std::int64_t density = 1 + random.below(5);
  for (std::int64_t k = 0; k < count; ++k) {
    if (random.below(5) < density) elements.push_back(k);
  }
  return ElementSet::of(elements);
}

TEST(RelationTest, ProductsAgreeWithLookingAtEveryPair) {
  Random random{std::mt19937(7)};
  for (int round = 0; round < 20'000; ++round) {
    const Sizes out = random_shape(random);
    const Sizes in = random_shape(random);
    std::vector<Link> links;
    if (!out.empty() && !in.empty()) {
      for (std::int64_t k = random.below(4); k > 0; --k) {
        const auto o = static_cast<int>(random.below(static_cast<std::int64_t>(out.size())));
        const auto i = static_cast<int>(random.below(static_cast<std::int64_t>(in.size())));
        links.push_back(random_link(random, o, out[o], i, in[i]));
      }
    }
    auto related = [&](std::int64_t o, std::int64_t i) {
      for (const Link& link : links) {
        if (!tied(link, coordinate(out, o, link.out_dim), coordinate(in, i, link.in_dim))) return false;
      }
      return true;
    };
    // An empty view stands for the flat tensor: give rank 0 as one dimension of one element.
    const Relation relation = Relation::product(links, out.empty() ? Sizes{1} : out, in.empty() ? Sizes{1} : in);
    const ElementSet outputs = random_set(random, count_of(out));
    const ElementSet inputs = random_set(random, count_of(in));
    Sizes sources, reached;
    for (std::int64_t i : listed(inputs)) {
      bool any = false;
      for (std::int64_t o : listed(outputs)) any = any || related(o, i);
      if (any) sources.push_back(i);
    }
    for (std::int64_t o : listed(outputs)) {
      bool any = false;
      for (std::int64_t i : listed(inputs)) any = any || related(o, i);
      if (any) reached.push_back(o);
    }
    ASSERT_EQ(listed(relation.sources(outputs, inputs, out, in)), sources) << "round " << round;
    ASSERT_EQ(listed(relation.reached(outputs, inputs, out, in)), reached) << "round " << round;
  }
}

}  // namespace
}  // namespace sherlorch
