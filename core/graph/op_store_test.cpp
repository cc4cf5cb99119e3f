#include "core/graph/op_store.h"

#include <gtest/gtest.h>

#include "core/graph/graph_test_support.h"

namespace sherlorch {
namespace {

using test::floats;

// A record that read everything bad of `writer` and carried it on.
OpRecord* add_reader(OpStore& store, OpSeq seq, OpRecord* writer) {
  auto record = std::make_unique<OpRecord>();
  record->seq = seq;
  InputRecord input;
  input.facts.geometry = floats({2});
  input.bad.nan = ElementSet::range(0, 1);
  ReadEdge edge;
  edge.writer = writer;
  edge.elements = ElementSet::range(0, 1);
  input.edges.push_back(edge);
  record->inputs.push_back(input);
  OutputRecord output;
  output.facts.geometry = floats({2});
  output.bad.nan = ElementSet::range(0, 1);
  record->outputs.push_back(output);
  return store.add(std::move(record));
}

TEST(OpStoreTest, ARecordLivesAsLongAsSomethingDescendsFromIt) {
  OpStore store;
  OpRecord* culprit = test::add_record(store, 1, floats({2}), ElementSet::range(0, 1));
  OpRecord* reader = add_reader(store, 2, culprit);
  store.release(culprit);
  EXPECT_EQ(store.size(), 2u);
  EXPECT_EQ(store.find(1), culprit);
  store.release(reader);
  EXPECT_EQ(store.size(), 0u);
  EXPECT_EQ(store.find(1), nullptr);
}

TEST(OpStoreTest, AChainOfOpsIsFreedWithoutRecursion) {
  // Of this many frames none could be smaller than 40 bytes, and a stack is 8 MiB.
  constexpr std::size_t kOps = 200'000;
  OpStore store(2 * kOps);
  OpRecord* last = test::add_record(store, 1, floats({2}), ElementSet::range(0, 1));
  for (OpSeq seq = 2; seq <= kOps; ++seq) {
    OpRecord* next = add_reader(store, seq, last);
    store.release(last);
    last = next;
  }
  EXPECT_EQ(store.size(), kOps);
  store.release(last);
  EXPECT_EQ(store.size(), 0u);
}

TEST(OpStoreTest, ALongHistoryIsFoldedButItsCulpritStays) {
  OpStore store(1000);
  OpRecord* culprit = test::add_record(store, 1, floats({2}), ElementSet::range(0, 1));
  OpRecord* last = culprit;
  for (OpSeq seq = 2; seq <= 100'000; ++seq) {
    OpRecord* next = add_reader(store, seq, last);
    store.release(last);
    last = next;
  }
  EXPECT_LE(store.size(), 1000u);
  EXPECT_GT(store.folded(), 90'000u);
  std::uint64_t ops = 1;
  const OpRecord* record = last;
  while (!record->inputs.empty()) {
    ops += 1 + record->inputs[0].edges[0].folded;
    record = record->inputs[0].edges[0].writer;
  }
  EXPECT_EQ(record, culprit);
  EXPECT_EQ(ops, 100'000u);
  store.release(last);
  EXPECT_EQ(store.size(), 0u);
}

}  // namespace
}  // namespace sherlorch
