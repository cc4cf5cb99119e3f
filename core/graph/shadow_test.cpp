#include "core/graph/shadow.h"

#include <gtest/gtest.h>

#include "core/graph/graph_test_support.h"

namespace sherlorch {
namespace {

using test::FakeStorage;
using test::floats;

class ShadowTest : public ::testing::Test {
 protected:
  // `record` becomes the shadow's alone.
  OpRecord* write(StorageKey storage, OpSeq seq, const Geometry& geometry, const ElementSet& bad) {
    OpRecord* record = test::add_record(store_, seq, geometry, bad);
    ++storage_.guards;
    shadow_.open(storage, &storage_, seq);
    shadow_.write(storage, geometry, record, 0, bad);
    store_.release(record);
    return record;
  }
  ReadEdges read(StorageKey storage, const Geometry& geometry, const ElementSet& bad) {
    return shadow_.attribute(storage, geometry, bad, &unexplained_);
  }

  // Before `shadow_`, which lets its guards go when it ends.
  FakeStorage storage_, other_;
  OpStore store_;
  Shadow shadow_{&store_, test::fake_guards()};
  ElementSet unexplained_;
};

TEST_F(ShadowTest, AnUnknownStorageHasNoShadow) {
  EXPECT_FALSE(shadow_.maybe_shadowed(42));
  EXPECT_TRUE(read(42, floats({4}), ElementSet::range(0, 1)).empty());
  EXPECT_EQ(unexplained_, ElementSet::range(0, 1));
}

TEST_F(ShadowTest, AReadThroughAViewFindsTheWriter) {
  OpRecord* writer = write(1, 10, floats({3, 2}), ElementSet::range(2, 4));
  Geometry column;  // column 1 of the 3 x 2 matrix
  column.offset = 4;
  column.item_size = 4;
  column.sizes = {3};
  column.strides = {8};
  const auto edges = read(1, column, ElementSet::range(1, 2));
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(edges[0].writer, writer);
  EXPECT_EQ(edges[0].elements, ElementSet::range(1, 2));
  EXPECT_TRUE(unexplained_.empty());
}

TEST_F(ShadowTest, AWriteThatCoversReplacesAndOneThatOverlapsStandsBeside) {
  OpRecord* old_writer = write(1, 10, floats({6}), ElementSet::range(0, 6));
  OpRecord* new_writer = write(1, 11, floats({2}, 2), ElementSet::range(0, 1));  // element 2 bad, element 3 good
  const auto edges = read(1, floats({6}), ElementSet::range(0, 6));
  ASSERT_EQ(edges.size(), 2u);
  for (const ReadEdge& edge : edges) {
    if (edge.writer == new_writer) {
      EXPECT_EQ(edge.elements, ElementSet::range(2, 3));
    } else {
      EXPECT_EQ(edge.writer, old_writer);
      EXPECT_EQ(edge.elements, set_union(ElementSet::range(0, 2), ElementSet::range(4, 6)));
    }
  }
  EXPECT_EQ(unexplained_, ElementSet::range(3, 4));
}

TEST_F(ShadowTest, ARepairEndsTheShadowAndLetsGoOfEverything) {
  write(1, 10, floats({4}), ElementSet::range(1, 2));
  EXPECT_TRUE(shadow_.maybe_shadowed(1));
  shadow_.erase(1, floats({4}));
  EXPECT_FALSE(shadow_.maybe_shadowed(1));
  EXPECT_EQ(store_.size(), 0u);
  EXPECT_EQ(storage_.guards, 0);
}

TEST_F(ShadowTest, AStridedRepairTakesOnlyItsOwnBytes) {
  OpRecord* writer = write(1, 10, floats({2, 2}), ElementSet::range(0, 4));
  Geometry diagonal;
  diagonal.item_size = 4;
  diagonal.sizes = {2};
  diagonal.strides = {12};
  shadow_.erase(1, diagonal);
  const auto edges = read(1, floats({4}), ElementSet::range(0, 4));
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(edges[0].writer, writer);
  EXPECT_EQ(edges[0].elements, ElementSet::range(1, 3));
}

TEST_F(ShadowTest, ElementsOfAnotherWidthAnswerByTheirBytes) {
  Geometry complex_pair = contiguous_geometry(std::vector<std::int64_t>{2}, 8);
  OpRecord* writer = write(1, 10, complex_pair, ElementSet::range(1, 2));
  const auto edges = read(1, floats({4}), ElementSet::range(2, 3));  // the real part of element 1
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(edges[0].writer, writer);
}

TEST_F(ShadowTest, ADeadStorageIsSweptAway) {
  write(1, 10, floats({4}), ElementSet::range(0, 4));
  storage_.alive = false;
  shadow_.sweep();
  EXPECT_TRUE(shadow_.empty());
  EXPECT_EQ(store_.size(), 0u);
  EXPECT_EQ(storage_.guards, 0);
}

TEST_F(ShadowTest, AViewIsFoundByItsGeometryIfItIsNewer) {
  write(1, 10, floats({6}), ElementSet::range(0, 6));
  OpRecord* view = test::add_record(store_, 12, floats({2, 3}), {});
  shadow_.add_view(1, view);
  store_.release(view);
  EXPECT_EQ(shadow_.find_view(1, floats({2, 3}), 10), view);
  EXPECT_EQ(shadow_.find_view(1, floats({2, 3}), 12), nullptr);
  EXPECT_EQ(shadow_.find_view(1, floats({3, 2}), 10), nullptr);
}

TEST_F(ShadowTest, AnotherStorageOverTheSameMemoryAdoptsTheWriters) {
  float memory[8] = {};
  storage_.data = memory;
  storage_.bytes = sizeof(memory);
  OpRecord* writer = write(1, 10, floats({8}), ElementSet::range(5, 6));
  std::int64_t offset = 0;
  ASSERT_EQ(shadow_.find_by_address(memory + 4, 16, 2, &offset), 1u);
  EXPECT_EQ(offset, 16);
  other_.guards = 1;
  shadow_.open(2, &other_, 11);
  shadow_.adopt(2, 1, offset, floats({4}));
  const auto edges = read(2, floats({4}), ElementSet::range(1, 2));
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(edges[0].writer, writer);
  EXPECT_EQ(edges[0].delta, 16);
}

// 10,000 rows written one by one: each write looks at its neighbours only.
TEST_F(ShadowTest, ManyRowsKeepTheirOwnWriters) {
  constexpr std::int64_t kRows = 10000;
  for (std::int64_t row = 0; row < kRows; ++row) write(1, 100 + row, floats({4}, 4 * row), ElementSet::range(0, 1));
  const auto edges = read(1, floats({4}, 4 * 777), ElementSet::range(0, 1));
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(edges[0].writer->seq, 877u);
  EXPECT_EQ(store_.size(), static_cast<std::size_t>(kRows));
}

TEST_F(ShadowTest, AViewIsCurrentUntilOneOfItsBytesIsWritten) {
  write(1, 10, floats({8}), ElementSet::range(0, 8));
  EXPECT_EQ(shadow_.current_view(1, floats({4})), nullptr);
  OpRecord* view = test::add_record(store_, 11, floats({4}), {});
  shadow_.add_view(1, view);
  store_.release(view);
  EXPECT_EQ(shadow_.current_view(1, floats({4})), view);
  write(1, 12, floats({2}, 6), ElementSet::range(0, 1));
  EXPECT_EQ(shadow_.current_view(1, floats({4})), view);
  write(1, 13, floats({2}, 2), ElementSet::range(0, 1));
  EXPECT_EQ(shadow_.current_view(1, floats({4})), nullptr);
}

// A cache that began as one bad whole and is filled row by row: bad rows are their writers', good rows nobody's.
TEST_F(ShadowTest, RowsWrittenIntoABadWholeTakeTheirBytes) {
  constexpr std::int64_t kRows = 10000;
  OpRecord* whole = write(1, 10, floats({kRows, 4}), ElementSet::range(0, 4 * kRows));
  for (std::int64_t row = 0; row < kRows; row += 2) {
    write(1, 100 + row, floats({4}, 4 * row), row % 4 == 0 ? ElementSet::range(1, 2) : ElementSet());
  }
  const auto edges = read(1, floats({4, 4}, 4 * 400), ElementSet::of({1, 5, 8, 13}));
  ASSERT_EQ(edges.size(), 2u);
  EXPECT_EQ(unexplained_, ElementSet::of({8}));  // row 402 was written with good values
  const ReadEdge& row = edges[0].writer == whole ? edges[1] : edges[0];
  const ReadEdge& rest = edges[0].writer == whole ? edges[0] : edges[1];
  EXPECT_EQ(row.writer->seq, 500u);
  EXPECT_EQ(row.elements, ElementSet::of({1}));
  EXPECT_EQ(rest.writer, whole);
  EXPECT_EQ(rest.elements, ElementSet::of({5, 13}));
}

}  // namespace
}  // namespace sherlorch
