#include "core/graph/flight_recorder.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "core/base/count_allocations.h"

namespace sherlorch {
namespace {

OpSeq record(FlightRecorder& flight, ThreadId thread, std::uint32_t sequence, std::uint32_t nodes,
             const std::vector<FlightTensor>& tensors = {}, bool nested = false) {
  FlightHeader header;
  header.seq = flight.take_ticket(tensors.size());
  header.op = 7;
  header.site = 9;
  header.module = 11;
  header.thread = thread;
  header.phase = Phase::kBackward;
  header.sequence_end = sequence + nodes;
  header.nested = nested;
  header.nodes = nodes;
  header.node_sequence = 13;
  header.node_thread = 2;
  header.largest = 2.5f;
  header.nonfinite = true;
  flight.write(header, tensors.size(), [&](std::size_t i) { return tensors[i]; });
  return header.seq;
}

FlightTensor tensor(StorageKey storage, std::int64_t begin, std::int64_t end, TensorRole role) {
  FlightTensor t;
  t.storage = storage;
  t.begin = begin;
  t.end = end;
  t.role = role;
  t.dtype = DType::kFloat8E8M0FNU;
  t.tag = 0xa5;
  return t;
}

TEST(FlightRecorderTest, AnOpComesBackAsItWasWritten) {
  FlightRecorder flight(64);
  const OpSeq seq = record(flight, 3, 100, 2, {tensor(0x7fff12345678, 16, 4096, TensorRole::kUninitialized)});
  FlightOp op;
  ASSERT_TRUE(flight.read(seq, &op));
  EXPECT_EQ(op.seq, seq);
  EXPECT_EQ(op.op, 7u);
  EXPECT_EQ(op.site, 9u);
  EXPECT_EQ(op.module, 11u);
  EXPECT_EQ(op.thread, 3u);
  EXPECT_EQ(op.phase, Phase::kBackward);
  EXPECT_EQ(op.sequence_end, 102u);
  EXPECT_FALSE(op.nested);
  EXPECT_EQ(op.nodes, 2u);
  EXPECT_EQ(op.node_sequence, 13u);
  EXPECT_EQ(op.node_thread, 2u);
  EXPECT_EQ(op.largest, 2.5f);
  EXPECT_TRUE(op.nonfinite);
  EXPECT_FALSE(op.absorbed);
  ASSERT_EQ(op.tensors.size(), 1u);
  EXPECT_EQ(op.tensors[0].storage, 0x7fff12345678u);
  EXPECT_EQ(op.tensors[0].begin, 16);
  EXPECT_EQ(op.tensors[0].end, 4096);
  EXPECT_EQ(op.tensors[0].role, TensorRole::kUninitialized);
  EXPECT_EQ(op.tensors[0].dtype, DType::kFloat8E8M0FNU);
  EXPECT_EQ(op.tensors[0].tag, 0xa5);
}

TEST(FlightRecorderTest, ManyTensorsTakeMoreSlotsAndAllComeBack) {
  FlightRecorder flight(256);
  std::vector<FlightTensor> tensors;
  for (int i = 0; i < 150; ++i) tensors.push_back(tensor(1000 + i, i, i + 1, TensorRole::kRead));
  const OpSeq seq = record(flight, 1, 0, 0, tensors);
  EXPECT_EQ(record(flight, 1, 0, 0), seq + FlightRecorder::slots_for(150));
  FlightOp op;
  ASSERT_TRUE(flight.read(seq, &op));
  ASSERT_EQ(op.tensors.size(), 150u);
  for (int i = 0; i < 150; ++i) EXPECT_EQ(op.tensors[i].storage, 1000u + i);
  EXPECT_FALSE(flight.read(seq + 1, &op));  // the middle of an op is no op
}

TEST(FlightRecorderTest, RangesPastFourGibibytesNeverShrink) {
  FlightRecorder flight(64);
  const std::int64_t begin = (std::int64_t{5} << 30) + 3;
  const std::int64_t end = (std::int64_t{6} << 30) + 5;
  FlightOp op;
  ASSERT_TRUE(flight.read(record(flight, 1, 0, 0, {tensor(1, begin, end, TensorRole::kWrite)}), &op));
  EXPECT_LE(op.tensors[0].begin, begin);
  EXPECT_GE(op.tensors[0].end, end);
  EXPECT_LT(begin - op.tensors[0].begin, 16);
  EXPECT_LT(op.tensors[0].end - end, 16);
}

TEST(FlightRecorderTest, OldOpsAreOverwrittenAndSayNothing) {
  FlightRecorder flight(8);
  const OpSeq first = record(flight, 1, 0, 0);
  for (int i = 0; i < 8; ++i) record(flight, 1, 0, 0);
  FlightOp op;
  EXPECT_FALSE(flight.read(first, &op));
  EXPECT_GT(flight.first(), first);
  int seen = 0;
  flight.backwards(0, flight.end(), [&](const FlightOp&) { return ++seen > 0; });
  EXPECT_EQ(seen, 8);
}

TEST(FlightRecorderTest, TheForwardOpOfANodeIsFoundAmongOtherThreads) {
  FlightRecorder flight(4096);
  std::vector<OpSeq> made(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    made[i] = record(flight, 1, 2 * i, i % 3 == 0 ? 2 : 0);
    record(flight, 2, 5000 + i, 1);  // another thread has its own numbers
  }
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const OpSeq expected = i % 3 == 0 ? made[i] : 0;
    EXPECT_EQ(flight.find_forward(1, 2 * i, flight.end()), expected);
    EXPECT_EQ(flight.find_forward(1, 2 * i + 1, flight.end()), expected);
  }
  EXPECT_EQ(flight.find_forward(1, 600, made[300]), 0u);  // only what came before
  EXPECT_EQ(flight.find_forward(3, 0, flight.end()), 0u);
}

// Handlers of the user's (__torch_dispatch__) call ops inside ops: the inner ones are recorded first.
TEST(FlightRecorderTest, TheForwardOpIsFoundAmongNestedOnes) {
  FlightRecorder flight(8192);
  for (std::uint32_t before = 0; before < 60; ++before) {
    const std::uint32_t base = before * 1000;
    for (std::uint32_t i = 0; i < before; ++i) record(flight, 1, base, 0);
    record(flight, 1, base + 1, 0, {}, true);                      // inside the one that made node 0
    const OpSeq outer = record(flight, 1, base, 1);                // made node 0
    const OpSeq inner = record(flight, 1, base + 1, 1, {}, true);  // made node 1, and ran inside
    record(flight, 2, base, 50);
    record(flight, 1, base + 3, 0, {}, true);
    const OpSeq around = record(flight, 1, base + 1, 2);  // this one, which made node 2
    const OpSeq many = record(flight, 1, base + 3, 300);
    EXPECT_EQ(flight.find_forward(1, base, flight.end()), outer) << before;
    EXPECT_EQ(flight.find_forward(1, base + 1, flight.end()), inner) << before;
    EXPECT_EQ(flight.find_forward(1, base + 2, flight.end()), around) << before;
    EXPECT_EQ(flight.find_forward(1, base + 3, flight.end()), many) << before;
    EXPECT_EQ(flight.find_forward(1, base + 302, flight.end()), many) << before;
    EXPECT_EQ(flight.find_forward(1, base + 303, flight.end()), 0u) << before;
    EXPECT_EQ(flight.find_forward(1, base + 999, flight.end()), 0u) << before;
  }
}

// Else a backward whose forward op was not recorded would look at all that came after.
TEST(FlightRecorderTest, TheSearchEndsAtAnOpThatRanInsideNoOther) {
  FlightRecorder flight(64);
  record(flight, 1, 10, 1);
  record(flight, 1, 5, 100);  // claims number 7, but after an op that it cannot have contained
  EXPECT_EQ(flight.find_forward(1, 7, flight.end()), 0u);
}

// Numbers that were given while nothing was recorded are nobody's, however many the next op takes.
TEST(FlightRecorderTest, AnOpOfManyNodesClaimsNoOthers) {
  FlightRecorder flight(64);
  record(flight, 1, 10, 1);
  std::uint32_t begin = 11;
  for (const std::uint32_t nodes : {254u, 255u, 300u, 2047u, 2048u, 5000u, 130'000u, 500'000u}) {
    begin += 1000;
    const OpSeq op = record(flight, 1, begin, nodes);
    EXPECT_EQ(flight.find_forward(1, begin - 1, flight.end()), 0u) << nodes;
    EXPECT_EQ(flight.find_forward(1, begin + nodes - 1, flight.end()), op) << nodes;
    if (nodes <= 131'000) {
      EXPECT_EQ(flight.find_forward(1, begin + (nodes < 2048 ? 0 : 63), flight.end()), op) << nodes;
    }
    begin += nodes;
  }
}

TEST(FlightRecorderTest, ReadersNeverSeeAMixOfTwoOps) {
  FlightRecorder flight(64);  // small, so that writers overtake readers all the time
  std::atomic<bool> stop{false};
  constexpr OpSeq kDone = ~OpSeq{0};
  std::array<std::atomic<OpSeq>, 2> written{};
  auto write = [&](std::uint32_t thread) {
    for (std::uint32_t i = 0; i < 20000; ++i) {
      // No writer gets a lap ahead of the other, which may sleep in the middle of a slot (see flight_recorder.h).
      while (flight.end() > written[2 - thread].load() && flight.end() - written[2 - thread].load() > 24) {
        std::this_thread::yield();
      }
      FlightHeader header;
      header.seq = flight.take_ticket(6);
      header.op = static_cast<OperatorId>(header.seq);
      header.thread = thread;
      header.module = static_cast<ModuleId>(header.seq);
      flight.write(header, 6, [&](std::size_t) { return tensor(header.seq, 0, 1, TensorRole::kRead); });
      written[thread - 1].store(header.seq);
    }
    written[thread - 1].store(kDone);
  };
  std::thread one(write, 1), two(write, 2);
  std::thread reader([&] {
    FlightOp op;
    while (!stop.load()) {
      const OpSeq end = flight.end();
      for (OpSeq seq = flight.first(); seq < end; ++seq) {
        if (!flight.read(seq, &op)) continue;
        ASSERT_EQ(op.op, static_cast<OperatorId>(seq));
        ASSERT_EQ(op.module, static_cast<ModuleId>(seq));
        for (const FlightTensor& t : op.tensors) ASSERT_EQ(t.storage, seq);
      }
    }
  });
  one.join();
  two.join();
  stop.store(true);
  reader.join();
}

TEST(FlightRecorderTest, WritingNeverAllocates) {
  FlightRecorder flight(64);
  const std::uint64_t before = allocations_of_this_thread();
  FlightHeader header;
  header.seq = flight.take_ticket(20);
  flight.write(header, 20, [](std::size_t i) { return tensor(i, 0, 1, TensorRole::kRead); });
  EXPECT_EQ(allocations_of_this_thread(), before);
}

TEST(FlightRecorderTest, TheDefaultKeepsItsPromiseOfSize) {
  EXPECT_LT(FlightRecorder::kBytesPerSlot, 128u);
  EXPECT_LT(FlightRecorder::kDefaultCapacity * FlightRecorder::kBytesPerSlot, 32u << 20);
}

}  // namespace
}  // namespace sherlorch
