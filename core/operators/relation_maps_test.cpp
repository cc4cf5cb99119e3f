// The maps of operators, one call each. tests/python/test_element_maps.py holds them against torch.
#include <gtest/gtest.h>

#include <set>

#include "core/operators/relation.h"
#include "core/operators/relation_test_support.h"

namespace sherlorch {
namespace {

// One call, put together argument by argument.
class CallBuilder {
 public:
  explicit CallBuilder(std::string name, std::string overload = "") {
    op.name = "aten::" + std::move(name);
    op.overload = std::move(overload);
  }
  CallBuilder& tensor(const char* name, Sizes shape, Sizes values = {}, bool written = false) {
    add_tensor(argument(name, true, written), 0, std::move(shape), std::move(values));
    return *this;
  }
  CallBuilder& list(const char* name, const std::vector<Sizes>& shapes, bool written = false) {
    const std::uint16_t index = argument(name, true, written);
    op.arguments.back().is_list = true;
    for (std::size_t k = 0; k < shapes.size(); ++k) add_tensor(index, static_cast<std::uint16_t>(k), shapes[k], {});
    return *this;
  }
  CallBuilder& scalar(const char* name, std::int64_t value) {
    ScalarArg arg;
    arg.arg = argument(name, false, false);
    arg.kind = ScalarArg::Kind::kInt;
    arg.i = value;
    record.args.push_back(arg);
    return *this;
  }
  CallBuilder& ints(const char* name, Sizes values) {
    ScalarArg arg;
    arg.arg = argument(name, false, false);
    arg.kind = ScalarArg::Kind::kIntList;
    arg.list = std::move(values);
    record.args.push_back(arg);
    return *this;
  }
  CallBuilder& returns(Sizes shape, std::uint16_t index = 0) {
    OutputRecord output;
    output.facts.arg = index;
    output.facts.geometry = contiguous_geometry(shape, 4);
    record.outputs.push_back(std::move(output));
    return *this;
  }
  CallBuilder& writes(std::uint16_t arg, Sizes shape, std::uint16_t list_index = 0) {
    returns(std::move(shape), arg);
    record.outputs.back().facts.list_index = list_index;
    record.outputs.back().facts.written_arg = true;
    return *this;
  }

  Sizes sources(std::int64_t element, std::size_t input, std::size_t output = 0) {
    bool mapped = false;
    const Relation relation = relate(op, record, output, input, &mapped);
    EXPECT_TRUE(mapped) << op.full_name();
    const DimArray& in = record.inputs[input].facts.geometry.sizes;
    return listed(
        relation.sources(ElementSet::of({element}), all(in), record.outputs[output].facts.geometry.sizes, in));
  }

  OperatorInfo op;
  OpRecord record;

 private:
  std::uint16_t argument(const char* name, bool is_tensor, bool written) {
    ArgumentInfo info;
    info.name = name;
    info.is_tensor = is_tensor;
    info.is_written = written;
    op.arguments.push_back(std::move(info));
    return static_cast<std::uint16_t>(op.arguments.size() - 1);
  }
  void add_tensor(std::uint16_t arg, std::uint16_t list_index, Sizes shape, Sizes values) {
    InputRecord input;
    input.facts.arg = arg;
    input.facts.list_index = list_index;
    input.facts.geometry = contiguous_geometry(shape, 4);
    input.facts.scalar_type = 4;  // c10::ScalarType::Long
    input.facts.integer_values = std::move(values);
    record.inputs.push_back(std::move(input));
  }
};

TEST(RelateTest, PointwiseOfOneShapeIsTheIdentity) {
  CallBuilder call("mul_", "Tensor");
  call.tensor("self", {2, 3}, {}, true).tensor("other", {2, 3}).writes(0, {2, 3});
  bool mapped = false;
  EXPECT_TRUE(relate(call.op, call.record, 0, 0, &mapped).is_identity());
  EXPECT_TRUE(relate(call.op, call.record, 0, 1, &mapped).is_identity());
  EXPECT_TRUE(mapped);
}

TEST(RelateTest, AnOutArgumentIsNotRead) {
  CallBuilder call("add", "out");
  call.tensor("self", {3}).tensor("other", {3}).tensor("out", {3}, {}, true).writes(2, {3});
  EXPECT_EQ(call.sources(1, 0), Sizes{1});
  EXPECT_TRUE(call.sources(1, 2).empty());
}

TEST(RelateTest, CopyForgetsWhatWasThere) {
  CallBuilder call("copy_");
  call.tensor("self", {2, 3}, {}, true).tensor("src", {3}).writes(0, {2, 3});
  EXPECT_TRUE(call.sources(4, 0).empty());
  EXPECT_EQ(call.sources(4, 1), Sizes{1});
}

TEST(RelateTest, WhereReadsTheChosenSide) {
  CallBuilder call("where", "self");
  call.tensor("condition", {3}, {1, 0, 1}).tensor("self", {2, 3}).tensor("other", {1}).returns({2, 3});
  EXPECT_EQ(call.sources(3, 1), Sizes{3});
  EXPECT_TRUE(call.sources(4, 1).empty());
  EXPECT_EQ(call.sources(4, 2), Sizes{0});
  EXPECT_TRUE(call.sources(3, 2).empty());
}

TEST(RelateTest, SoftmaxIsALineAlongANegativeDim) {
  CallBuilder call("softmax", "int");
  call.tensor("self", {2, 2, 2}).scalar("dim", -2).returns({2, 2, 2});
  EXPECT_EQ(call.sources(5, 0), (Sizes{5, 7}));
}

TEST(RelateTest, SumDropsItsDimensions) {
  CallBuilder call("sum", "dim_IntList");
  call.tensor("self", {2, 3, 2}).ints("dim", {0, -1}).returns({3});
  EXPECT_EQ(call.sources(1, 0), (Sizes{2, 3, 8, 9}));
}

TEST(RelateTest, MatmulOfAMatrixAndAVector) {
  CallBuilder call("matmul");
  call.tensor("self", {2, 3}).tensor("other", {3}).returns({2});
  EXPECT_EQ(call.sources(1, 0), (Sizes{3, 4, 5}));
  EXPECT_EQ(call.sources(1, 1), (Sizes{0, 1, 2}));
}

TEST(RelateTest, LayerNormKeepsRowsApart) {
  CallBuilder call("layer_norm");
  call.tensor("input", {2, 3}).ints("normalized_shape", {3}).tensor("weight", {3}).returns({2, 3});
  EXPECT_EQ(call.sources(4, 0), (Sizes{3, 4, 5}));
  EXPECT_EQ(call.sources(4, 1), Sizes{1});
}

TEST(RelateTest, IndexPartedBySlicesPutsItsDimensionInFront) {
  // x [2, 3, 2], x[[1, 0], :, [0, 1]] has shape [2, 3]
  CallBuilder call("index", "Tensor");
  call.tensor("self", {2, 3, 2}).list("indices", {{2}, {2}, {2}}).returns({2, 3});
  call.record.inputs[1].facts.integer_values = {1, 0};
  call.record.inputs[3].facts.list_index = 2;
  call.record.inputs[3].facts.integer_values = {0, 1};
  call.record.inputs.erase(call.record.inputs.begin() + 2);  // a slice is no tensor
  EXPECT_EQ(call.sources(0, 0), Sizes{6});                   // x[1, 0, 0]
  EXPECT_EQ(call.sources(5, 0), Sizes{5});                   // x[0, 2, 1]
}

TEST(RelateTest, IndexWithoutValuesTakesWholeLines) {
  CallBuilder call("index", "Tensor");
  call.tensor("self", {3, 2}).list("indices", {{5}}).returns({5, 2});
  EXPECT_EQ(call.sources(9, 0), (Sizes{1, 3, 5}));
}

TEST(RelateTest, IndexPutLeavesTheOtherPlaces) {
  CallBuilder call("index_put_");
  call.tensor("self", {3, 2}, {}, true)
      .list("indices", {{1}})
      .tensor("values", {2})
      .scalar("accumulate", 0)
      .writes(0, {3, 2});
  call.record.inputs[1].facts.integer_values = {-1};
  EXPECT_EQ(call.sources(1, 0), Sizes{1});
  EXPECT_TRUE(call.sources(5, 0).empty());
  EXPECT_EQ(call.sources(5, 2), Sizes{1});
  EXPECT_TRUE(call.sources(1, 2).empty());
}

TEST(RelateTest, EmbeddingBackwardGathersTheRowsOfAnIndex) {
  CallBuilder call("embedding_dense_backward");
  call.tensor("grad_output", {3, 2}).tensor("indices", {3}, {1, 0, 1}).scalar("padding_idx", -1).returns({2, 2});
  EXPECT_EQ(call.sources(2, 0), (Sizes{0, 4}));
  EXPECT_EQ(call.sources(1, 0), Sizes{3});
}

TEST(RelateTest, CatKnowsWhereAnEntryStarts) {
  CallBuilder call("cat");
  call.list("tensors", {{2, 1}, {2, 2}}).scalar("dim", 1).returns({2, 3});
  EXPECT_EQ(call.sources(4, 1), Sizes{2});
  EXPECT_TRUE(call.sources(3, 1).empty());
  EXPECT_EQ(call.sources(3, 0), Sizes{1});
}

TEST(RelateTest, ForeachEntriesMeetTheirOwnKind) {
  CallBuilder call("_foreach_mul_", "List");
  call.list("self", {{2}, {3}}, true).list("other", {{2}, {3}}).writes(0, {2}).writes(0, {3}, 1);
  EXPECT_EQ(call.sources(1, 3, 1), Sizes{1});
  EXPECT_TRUE(call.sources(1, 2, 1).empty());
}

TEST(RelateTest, FusedAdamWMomentsDoNotReadTheParameter) {
  CallBuilder call("_fused_adamw_");
  call.list("self", {{2}}, true).list("grads", {{2}}, true).list("exp_avgs", {{2}}, true);
  call.writes(0, {2}).writes(1, {2}).writes(2, {2});
  EXPECT_EQ(call.sources(1, 1, 0), Sizes{1});
  EXPECT_TRUE(call.sources(1, 0, 2).empty());
  EXPECT_EQ(call.sources(1, 1, 2), Sizes{1});
}

TEST(RelateTest, BatchNormWritesItsStatisticsByChannel) {
  CallBuilder call("_native_batch_norm_legit");
  call.tensor("input", {2, 2}).tensor("weight", {2}).tensor("running_mean", {2}, {}, true).scalar("training", 1);
  call.writes(2, {2}).returns({2, 2});
  EXPECT_EQ(call.sources(1, 0, 0), (Sizes{1, 3}));
  EXPECT_EQ(call.sources(1, 2, 0), Sizes{1});
  EXPECT_TRUE(call.sources(1, 1, 0).empty());
  EXPECT_EQ(call.sources(2, 0, 1), (Sizes{0, 2}));
  EXPECT_TRUE(call.sources(2, 2, 1).empty());
}

TEST(RelateTest, NllReadsTheTargetClassesOnly) {
  CallBuilder call("nll_loss_nd");
  call.tensor("self", {3, 2}).tensor("target", {3}, {1, 0, -100}).scalar("reduction", 1).scalar("ignore_index", -100);
  call.returns({});
  EXPECT_EQ(call.sources(0, 0), (Sizes{1, 2}));
}

TEST(RelateTest, AViewIsReadOffTheMemory) {
  CallBuilder call("as_strided");
  call.tensor("self", {2, 3}).returns({2});
  call.record.inputs[0].facts.storage = call.record.outputs[0].facts.storage = 9;
  call.record.outputs[0].facts.geometry.offset = 4;
  call.record.outputs[0].facts.geometry.strides = {12};
  EXPECT_EQ(call.sources(1, 0), Sizes{4});
}

TEST(RelateTest, AnUnknownOperatorSaysEverythingAndSaysSo) {
  CallBuilder call("an_operator_of_tomorrow");
  call.tensor("self", {2}).returns({2});
  bool mapped = true;
  EXPECT_TRUE(relate(call.op, call.record, 0, 0, &mapped).is_everything());
  EXPECT_FALSE(mapped);
  call.op.name = "mylib::add";
  EXPECT_TRUE(relate(call.op, call.record, 0, 0, &mapped).is_everything());
  EXPECT_FALSE(mapped);
}

// Whatever is in the record, no map may read out of bounds: shapes that torch would refuse, arguments missing.
TEST(RelateTest, RecordsThatMakeNoSenseAreAnsweredAllTheSame) {
  Random random{std::mt19937(3)};
  const char* tensors[] = {"self",   "input",       "weight", "bias",         "other", "index",  "indices", "mask",
                           "target", "grad_output", "grad",   "grad_out",     "query", "key",    "value",   "mat1",
                           "mat2",   "vec",         "batch1", "batch2",       "src",   "source", "tensors", "repeats",
                           "x1",     "condition",   "q",      "running_mean", "mean"};
  const char* scalars[] = {"dim",
                           "reduction",
                           "groups",
                           "index",
                           "start",
                           "end",
                           "step",
                           "accumulate",
                           "k",
                           "diagonal",
                           "num_groups",
                           "group",
                           "upscale_factor",
                           "downscale_factor",
                           "dim0",
                           "dim1",
                           "dim2",
                           "offset",
                           "transposed",
                           "training",
                           "ignore_index",
                           "padding_idx",
                           "axis0",
                           "axis1",
                           "dimension",
                           "n"};
  const char* lists[] = {"dims",     "normalized_shape", "kernel_size", "stride",     "padding",     "pad", "shifts",
                         "dilation", "output_size",      "dims_self",   "dims_other", "destination", "s"};
  for (const std::string& name : mapped_operators()) {
    for (int round = 0; round < 12; ++round) {
      CallBuilder call(random.below(4) == 0 ? name + "_" : name);
      for (const char* tensor : tensors) {
        if (random.below(3) == 0) continue;
        Sizes shape = random_shape(random);
        Sizes values(random.below(2) * count_of(shape));
        for (std::int64_t& value : values) value = random.below(9) - 4;
        call.tensor(tensor, shape, values, random.below(6) == 0);
        call.record.inputs.back().facts.scalar_type = random.below(2) == 0 ? 11 : 4;
      }
      for (const char* scalar : scalars) {
        if (random.below(3) != 0) call.scalar(scalar, random.below(9) - 4);
      }
      for (const char* list : lists) {
        if (random.below(3) != 0) call.ints(list, Sizes(random.below(4), random.below(5) - 2));
      }
      call.returns(random_shape(random), static_cast<std::uint16_t>(random.below(3)));
      for (std::size_t i = 0; i < call.record.inputs.size(); ++i) {
        const DimArray& in = call.record.inputs[i].facts.geometry.sizes;
        const DimArray& out = call.record.outputs[0].facts.geometry.sizes;
        const Relation relation = relate(call.op, call.record, 0, i, nullptr);
        const ElementSet found = relation.sources(ElementSet::of({0}), all(in), out, in);
        EXPECT_EQ(set_difference(found, all(in)).count(), 0) << name;
        relation.reached(all(out), ElementSet::of({0}), out, in);
      }
    }
  }
}

TEST(RelateTest, OnlyIndicesAndMasksAreKept) {
  CallBuilder call("index_select");
  call.tensor("self", {2}).scalar("dim", 0).tensor("index", {2});
  EXPECT_FALSE(needs_integer_values(call.op, 0));
  EXPECT_FALSE(needs_integer_values(call.op, 1));
  EXPECT_TRUE(needs_integer_values(call.op, 2));
  EXPECT_FALSE(needs_integer_values(call.op, 9));
  CallBuilder inplace("masked_fill_", "Scalar");
  inplace.tensor("self", {2}, {}, true).tensor("mask", {2});
  EXPECT_TRUE(needs_integer_values(inplace.op, 1));
}

TEST(RelateTest, NoOperatorIsListedTwice) {
  const std::vector<std::string> names = mapped_operators();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_GT(names.size(), 800U);
}

}  // namespace
}  // namespace sherlorch
