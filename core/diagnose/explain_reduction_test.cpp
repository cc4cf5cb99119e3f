// One case a family at least: facts as the recorder fills them in from a real mistake, and what must be said about
// them.
#include <gtest/gtest.h>

#include "core/diagnose/explain_test_facts.h"

namespace sherlorch {
namespace {

using namespace explain_test;

TEST(ExplainReductionTest, SumsMeansSpreadsAndNorms) {
  check({"sum in half", op("sum", kInf, {slice("self", 59000, 61000, 65536, 3.9e9)}, kHalf), kOver,
         "sum of 65536 values in [59000, 61000] is inf (float16 ends at 65504)", "passes 65504", "float32"});
  check({"sum of both", op("sum", kNan, {[] {
                             Arg a = slice("self", 0, 1, 4, 2, 2, kInf);
                             a.operand.counts.pos_inf = a.operand.counts.neg_inf = 1;
                             return a;
                           }()}),
         kInvalid, "", "both signs", "infinities"});
  check({"mean of nothing", op("mean", kNan, {range("self", 0, 0, {0})}), kInvalid, "mean of no elements is nan",
         "mean of no elements is 0/0", "numel"});
  check({"mean of an empty slice", op("mean", kNan, {slice("self", 0, 0, 0)}), kInvalid, "mean of no elements is nan",
         "0/0", "Skip"});
  check({"running sum", op("cumsum", kInf, {slice("self", 5000, 10000, 32, 2.4e5)}, kHalf), kOver,
         "cumulative sum of 32 values in [5000, 10000] is inf (float16 ends at 65504)", "65504", "cumsum"});
  check({"likelihood ratio", op("prod", kInf, {slice("self", 1, 1000, 64)}), kOver, "", "product", "log domain"});
  check({"cumprod", op("cumprod", kInf, {slice("self", 10, 10, 6)}, kHalf), kOver, "", "product", "log domain"});
  check({"one sample", op("std", kNan, {slice("self", 2, 2, 1), scalar("correction", 1)}), kInvalid,
         "standard deviation of 1 value in [2, 2] is nan", "n - 1", "correction=0"});
  check({"var of a row", op("var", kNan, {slice("self", 2, 2, 1), scalar("unbiased", 1)}), kInvalid, "", "0/0",
         "drop_last"});
  check(
      {"var_mean", op("var_mean", kNan, {slice("self", 0, 1, 3, 1, 1, kInf)}), kInvalid, "", "inf - inf", "infinity"});
  check(
      {"var overflow", op("var", kInf, {slice("self", -1e20, 1e20, 8)}), kOver, "", "square of the distance", "wider"});
  check({"corrcoef", op("corrcoef", kNan, {range("self", 3, 3)}), kInvalid, "", "do not vary", "rows"});
  check({"norm in half", op("linalg_vector_norm", kInf, {slice("self", -60000, 60000, 4), scalar("ord", 2)}, kHalf),
         kOver, "", "The norm passes 65504", "float32"});
  check({"gradient norm", op("_foreach_norm", kInf, {slice("self", -1e20, 1e20, 4), scalar("ord", 2)}), kOver, "",
         "sum of the squares", "wider"});
}

TEST(ExplainSoftmaxTest, RowsOfScores) {
  const Arg dead = slice("self", 0, 0, 0, 0, 5, -kInf);
  check({"row masked whole", deliberate(op("_softmax", kNan, {dead})), Cause::kDeliberateInfinity,
         "softmax over a row of only -inf is nan", "Every score of the row is -inf", "unmasked"});
  check({"accidental", op("softmax", kNan, {dead}), kInvalid, "softmax over a row of only -inf is nan", "-inf - -inf",
         "unmasked"});
  check({"temperature 0", op("softmax", kNan, {slice("self", 0, 1, 4, 1, 1, kInf)}), kInvalid, "", "+inf",
         "temperature"});
  check({"log_softmax", op("_log_softmax", kNan, {dead}), kInvalid, "log_softmax over a row of only -inf is nan",
         "nothing to share out", "unmasked"});
  check({"wide row", op("log_softmax", -kInf, {slice("self", -60000, 60000, 4)}, kHalf), kOver, "",
         "span [-60000, 60000]", "float32"});
  check({"masked softmax", op("_masked_softmax", kNan, {slice("self", 0, 1, 4), range("mask", 1, 1)}), kInvalid, "",
         "hides every score", "unmasked"});
  check({"logsumexp", op("logsumexp", -kInf, {dead}), Cause::kUnknown, "logsumexp over only -inf is -inf",
         "nothing is possible", "finite"});
  check({"logcumsumexp", op("logcumsumexp", -kInf, {dead}), Cause::kUnknown, "logcumsumexp over only -inf is -inf",
         "nothing is possible", "finite"});
  check({"padding holds nan",
         op("scaled_dot_product_attention", kNan, {range("query", 0, 1), range("key", 0, 1), holding("value", kNan)}),
         kInvalid, "", "padding must be finite", "zeros"});
  check({"attention mask",
         op("scaled_dot_product_attention", kNan,
            {range("query", 0, 1), range("key", 0, 1), range("value", 0, 1), slice("attn_mask", 0, 0, 0, 0, 5, -kInf)}),
         kInvalid, "", "every key", "unmasked"});
  check({"encoder fast path", op("_transformer_encoder_layer_fwd", kNan, {range("src", 0, 1), range("mask", 0, 1)}),
         kInvalid, "", "all padding", "TransformerEncoder"});
  check({"scores in half",
         op("_scaled_dot_product_flash_attention", kInf,
            {range("query", -300, 300, {2, 64}), range("key", -300, 300, {2, 64}), range("value", 0, 1)}, kHalf),
         kOver, "", "64 products", "QK norm"});
}

}  // namespace
}  // namespace sherlorch
