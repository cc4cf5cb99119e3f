#include "core/record/recorder.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "core/base/count_allocations.h"
#include "core/graph/graph_test_support.h"

namespace sherlorch {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<OpSeq> g_introduced;
std::deque<test::FakeStorage> g_storages;

// A vector of floats that pretends to be a tensor.
struct Fake {
  explicit Fake(std::vector<float> v) : values(std::move(v)), size(static_cast<std::int64_t>(values.size())) {
    storage.data = values.data();
    storage.bytes = static_cast<std::int64_t>(4 * values.size());
  }
  ~Fake() {
    storage.alive = false;
    storage.data = nullptr;
  }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;
  CallTensor tensor(TensorRole role, std::int64_t first = 0, std::int64_t count = -1) {
    length = count < 0 ? size - first : count;
    CallTensor t;
    t.storage = reinterpret_cast<StorageKey>(&storage);
    t.handle = &storage;
    t.data = values.data() + first;
    t.offset = 4 * first;
    t.sizes = &length;
    t.strides = &stride;
    t.numel = length;
    t.item_size = 4;
    t.dims = 1;
    t.dtype = DType::kFloat32;
    t.role = role;
    t.contiguous = true;
    t.whole_storage = length == size;
    t.fresh_return = role == TensorRole::kWrite;
    return t;
  }
  std::vector<float> values;
  std::int64_t size;
  std::int64_t length = 0;
  std::int64_t stride = 1;
  // As a real one does, what the guards see stays when the tensor goes.
  test::FakeStorage& storage = g_storages.emplace_back();
};

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() : recorder_(hooks()) {
    g_introduced.clear();
    recorder_.begin_recording();
  }
  static RecorderHooks hooks() {
    RecorderHooks hooks;
    hooks.guards = test::fake_guards();
    hooks.acquire_guard = [](void* handle) noexcept -> void* {
      ++static_cast<test::FakeStorage*>(handle)->guards;
      return handle;
    };
    hooks.on_introduced = [](OpSeq seq) noexcept { g_introduced.push_back(seq); };
    return hooks;
  }
  OperatorId op(const char* name, std::vector<std::string> tensors) {
    OperatorInfo info;
    info.name = name;
    for (std::string& each : tensors) info.arguments.push_back({std::move(each), true, false, false});
    traits_ = operator_traits(info);
    return recorder_.graph().tables.operators.add(std::move(info));
  }
  OpSeq run(OperatorId op, std::vector<CallTensor> inputs, std::vector<CallTensor> outputs,
            std::vector<CallScalar> scalars = {}) {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].arg = static_cast<std::uint16_t>(i);
    OpCall call;
    call.op = op;
    call.traits = &traits_;
    call.inputs = inputs;
    call.outputs = outputs;
    call.scalars = scalars;
    for (const CallScalar& scalar : scalars) {
      call.has_nonfinite_scalar |= scalar.kind == CallScalar::Kind::kDouble && !std::isfinite(scalar.number);
    }
    return recorder_.record(call);
  }
  const OpRecord* newest() { return recorder_.graph().store.newest_op(); }

  Recorder recorder_;
  OperatorTraits traits_;
};

TEST_F(RecorderTest, FiniteOpsLeaveNothingButASlotAndAllocateNothing) {
  Fake x({1, 2}), y({3, 4});
  const OperatorId add = op("aten::add", {"self", "other"});
  std::array<CallTensor, 1> inputs = {x.tensor(TensorRole::kRead)};
  std::array<CallTensor, 1> outputs = {y.tensor(TensorRole::kWrite)};
  OpCall call;
  call.op = add;
  call.traits = &traits_;
  call.inputs = inputs;
  call.outputs = outputs;
  const std::uint64_t before = allocations_of_this_thread();
  const OpSeq seq = recorder_.record(call);
  EXPECT_EQ(allocations_of_this_thread(), before);
  EXPECT_FALSE(recorder_.has_shadows());
  EXPECT_EQ(recorder_.graph().store.size(), 0u);
  FlightOp flight;
  ASSERT_TRUE(recorder_.graph().flight.read(seq, &flight));
  EXPECT_FALSE(flight.nonfinite);
  EXPECT_EQ(flight.largest, 4.0f);
}

TEST_F(RecorderTest, AnOpThatMakesInfinityOutOfFiniteValuesIntroducesIt) {
  Fake x({0, 1}), y({-kInf, 0});
  const OpSeq seq = run(op("aten::log", {"self"}), {x.tensor(TensorRole::kRead)}, {y.tensor(TensorRole::kWrite)});
  ASSERT_NE(newest(), nullptr);
  EXPECT_EQ(newest()->outputs[0].introduced, ElementSet::range(0, 1));
  EXPECT_EQ(g_introduced, std::vector<OpSeq>{seq});
  ASSERT_EQ(newest()->witness.size(), 1u);
  EXPECT_EQ(newest()->witness[0].operands[0].value, 0.0);
  EXPECT_TRUE(recorder_.has_shadows());
}

TEST_F(RecorderTest, WhatIsCarriedOnIsNotIntroduced) {
  Fake x({0, 1}), y({-kInf, 0}), z({-kInf, kNaN});
  run(op("aten::log", {"self"}), {x.tensor(TensorRole::kRead)}, {y.tensor(TensorRole::kWrite)});
  const OpRecord* log = newest();
  run(op("aten::mul", {"self", "other"}), {y.tensor(TensorRole::kRead)}, {z.tensor(TensorRole::kWrite)});
  EXPECT_EQ(newest()->inputs[0].edges[0].writer, log);
  EXPECT_EQ(newest()->outputs[0].introduced, ElementSet::range(1, 2));  // its operand was finite there
}

TEST_F(RecorderTest, AMaskIsDeliberateUntilSomethingElseIsMadeOfIt) {
  Fake scores({1, 2}), masked({-kInf, -kInf}), weights({kNaN, kNaN});
  CallScalar value;
  value.arg = 2;
  value.kind = CallScalar::Kind::kDouble;
  value.number = -kInf;
  run(op("aten::masked_fill", {"self", "mask"}), {scores.tensor(TensorRole::kRead)},
      {masked.tensor(TensorRole::kWrite)}, {value});
  EXPECT_TRUE(g_introduced.empty());
  EXPECT_EQ(newest()->outputs[0].deliberate, ElementSet::range(0, 2));
  run(op("aten::softmax", {"self"}), {masked.tensor(TensorRole::kRead)}, {weights.tensor(TensorRole::kWrite)});
  EXPECT_EQ(g_introduced.size(), 1u);
  EXPECT_EQ(newest()->outputs[0].converted, ElementSet::range(0, 2));
}

TEST_F(RecorderTest, ABadTensorThatNobodyWroteIsAnInput) {
  Fake x({kNaN, 1}), y({kNaN, 2});
  run(op("aten::mul", {"self", "other"}), {x.tensor(TensorRole::kRead)}, {y.tensor(TensorRole::kWrite)});
  const ReadEdge& edge = newest()->inputs[0].edges[0];
  EXPECT_EQ(edge.writer->kind, OpKind::kOrigin);
  EXPECT_EQ(edge.writer->origin, OriginKind::kInput);
  EXPECT_TRUE(newest()->outputs[0].introduced.empty());
}

TEST_F(RecorderTest, MemoryThatWasNeverWrittenIsUninitialized) {
  Fake x({kNaN, 1}), y({kNaN, 2});
  run(op("aten::empty", {}), {}, {x.tensor(TensorRole::kUninitialized)});
  run(op("aten::mul", {"self", "other"}), {x.tensor(TensorRole::kRead)}, {y.tensor(TensorRole::kWrite)});
  EXPECT_EQ(newest()->inputs[0].edges[0].writer->origin, OriginKind::kUninitialized);
}

TEST_F(RecorderTest, MemoryChangedBehindTorchsBackIsAnExternalWrite) {
  Fake x({1, 1}), y({kNaN, 2});
  const OpSeq made = run(op("aten::ones", {}), {}, {x.tensor(TensorRole::kWrite)});
  x.values[0] = kNaN;
  run(op("aten::mul", {"self", "other"}), {x.tensor(TensorRole::kRead)}, {y.tensor(TensorRole::kWrite)});
  const OpRecord* origin = newest()->inputs[0].edges[0].writer;
  EXPECT_EQ(origin->origin, OriginKind::kExternal);
  EXPECT_EQ(origin->last_writer, made);
}

TEST_F(RecorderTest, BitsOfAnotherTypeAreTheirWritersDoing) {
  Fake x({1, 1}), y({kNaN, 2});
  CallTensor bits = x.tensor(TensorRole::kWrite);
  run(op("aten::ones", {}), {}, {bits});
  EXPECT_TRUE(recorder_.known(bits.storage));
  bits.dtype = DType::kOther;
  const OpSeq made = run(op("aten::fill_", {"self"}), {}, {bits});
  EXPECT_FALSE(recorder_.known(bits.storage));
  x.values[0] = kNaN;
  run(op("aten::mul", {"self", "other"}), {x.tensor(TensorRole::kRead)}, {y.tensor(TensorRole::kWrite)});
  const OpRecord* writer = newest()->inputs[0].edges[0].writer;
  EXPECT_EQ(writer->kind, OpKind::kOp);
  EXPECT_TRUE(writer->reinterpreted);
  EXPECT_EQ(writer->seq, made);
}

TEST_F(RecorderTest, AWriteOfAPartMakesNoStorageKnown) {
  Fake x({1, 1, 1});
  const CallTensor part = x.tensor(TensorRole::kWrite, 1, 1);
  run(op("aten::zero_", {"self"}), {}, {part});
  EXPECT_FALSE(recorder_.known(part.storage));
  EXPECT_TRUE(recorder_.written(part.storage));
}

// However many storages the last one has written.
TEST_F(RecorderTest, ANewRecordingKnowsNoStorage) {
  const OperatorId ones = op("aten::ones", {});
  for (const std::size_t storages : {1u, 900u, 5000u}) {
    Fake x({1, 1});
    std::vector<StorageKey> keys;
    for (std::size_t i = 0; i < storages; ++i) {
      CallTensor written = x.tensor(TensorRole::kWrite);
      written.storage = 0x1000 + 64 * i;
      keys.push_back(written.storage);
      run(ones, {}, {written});
    }
    for (const StorageKey key : keys) ASSERT_TRUE(recorder_.known(key) && recorder_.written(key));
    recorder_.begin_recording();
    for (const StorageKey key : keys) ASSERT_FALSE(recorder_.known(key) || recorder_.written(key)) << storages;
  }
}

// finite * 2 is no NaN: what the op overwrote was bad already.
TEST_F(RecorderTest, ANaNThatTheOpCannotMakeWasThere) {
  Fake x({kNaN, kInf});
  run(op("aten::ones", {}), {}, {x.tensor(TensorRole::kWrite)});
  recorder_.clear();
  CallTensor written = x.tensor(TensorRole::kWrite);
  written.fresh_return = false;
  run(op("aten::mul_", {"self"}), {x.tensor(TensorRole::kRead)}, {written});
  const OpRecord* record = newest();
  EXPECT_EQ(record->outputs[0].introduced, ElementSet::range(1, 2));  // it may have been too large
  ASSERT_EQ(record->inputs[0].edges.size(), 1u);
  EXPECT_EQ(record->inputs[0].edges[0].writer->origin, OriginKind::kExternal);
}

TEST_F(RecorderTest, ARepairEmptiesTheShadow) {
  Fake x({0, 1}), y({-kInf, 0});
  run(op("aten::log", {"self"}), {x.tensor(TensorRole::kRead)}, {y.tensor(TensorRole::kWrite)});
  y.values[0] = 0;
  CallTensor written = y.tensor(TensorRole::kWrite);
  written.fresh_return = false;
  run(op("aten::nan_to_num_", {"self"}), {y.tensor(TensorRole::kRead)}, {written});
  EXPECT_FALSE(recorder_.has_shadows());
  EXPECT_EQ(recorder_.graph().store.size(), 0u);
  EXPECT_EQ(y.storage.guards, 0);
}

TEST_F(RecorderTest, AnErrorInsideIsCountedAndGoesNoFurther) {
  Fake x({0, 1}), y({-kInf, 0});
  recorder_.inject_failures(1);
  const OpSeq seq = run(op("aten::log", {"self"}), {x.tensor(TensorRole::kRead)}, {y.tensor(TensorRole::kWrite)});
  EXPECT_EQ(recorder_.blind_count(Blind::kRecorderError), 1u);
  FlightOp flight;
  EXPECT_TRUE(recorder_.graph().flight.read(seq, &flight));  // the flight recorder has it all the same
}

}  // namespace
}  // namespace sherlorch
