// One case a family at least: facts as the recorder fills them in from a real mistake, and what must be said about
// them.
#include <gtest/gtest.h>

#include "core/diagnose/explain_test_facts.h"

namespace sherlorch {
namespace {

using namespace explain_test;

TEST(ExplainProductTest, MatrixProductsAndConvolutions) {
  check({"T5", op("linear", kInf, {slice("input", -300, 300, 64), slice("weight", -300, 300, 64)}, kHalf), kOver,
         "dot product of 64 products of values up to 300 and 300 is inf (float16 ends at 65504)", "passes 65504",
         "bfloat16"});
  check({"mm", op("mm", kInf, {range("self", 0, 1e20, {4, 8}), range("mat2", 0, 1e20, {8, 4})}), kOver, "",
         "8 products", "wider"});
  check({"bmm", op("bmm", kNan, {slice("self", 0, 1, 3, 1, 1, -kInf), slice("mat2", 0, 1, 4)}), kInvalid, "",
         "0 times an infinity", "mask"});
  check({"addmm",
         op("addmm", kInf, {range("self", 0, 1), slice("mat1", 0, 1000, 128), slice("mat2", 0, 1000, 128)}, kHalf),
         kOver, "", "128 products", "bfloat16"});
  check({"baddbmm",
         op("baddbmm", kInf, {range("self", 0, 60000), slice("batch1", 0, 100, 8), slice("batch2", 0, 10, 8)}, kHalf),
         kOver, "", "65504", "bfloat16"});
  check({"matmul nan", op("matmul", kNan, {holding("self", kInf), range("other", 1, 2)}), kInvalid, "", "infinity",
         "infinity"});
  check(
      {"conv",
       op("convolution", kInf, {range("input", 0, 1000, {1, 3, 8, 8}), range("weight", -10, 10, {4, 3, 3, 3})}, kHalf),
       kOver, "", "27 products", "bfloat16"});
  check({"einsum", op("einsum", kInf, {slice("tensors", 0, 1e30, 8), slice("other", 0, 1e30, 8)}), kOver, "",
         "8 products", "wider"});
  check({"fft", op("fft_rfft", kInf, {slice("self", 0, 1000, 128)}, kHalf), kOver, "", "Fourier", "ortho"});
  check({"matrix_exp", op("matrix_exp", kInf, {range("self", 0, 500, {4, 4})}), kOver, "", "exponential", "Scale"});
}

TEST(ExplainNormalizationTest, LayersThatDivideByASpread) {
  check({"masked layer_norm",
         op("native_layer_norm", kNan, {slice("input", 0, 1, 7, 1, 1, -kInf), scalar("eps", 1e-5)}), kInvalid,
         "layer_norm got -inf and made nan", "inf - inf", "half"});
  check({"group_norm, eps 0", op("group_norm", kNan, {slice("input", 2, 2, 8), scalar("eps", 0)}), kInvalid, "", "0/0",
         "eps"});
  check({"rms_norm after half", op("rms_norm", kNan, {slice("input", 0, 1, 7, 1, 1, kInf)}, kHalf), kInvalid,
         "rms_norm got inf and made nan", "inf / inf", "half"});
  check({"layer_norm of huge", op("layer_norm", kNan, {slice("input", -1e30, 1e30, 8), scalar("eps", 1e-5)}), kOver, "",
         "squared", "clip"});
  check({"running_var nan",
         op("batch_norm", kNan,
            {range("input", 0, 1), range("running_mean", 0, 1), holding("running_var", kNan), scalar("training", 0)}),
         Cause::kBadOrigin, "", "running statistic", "reset_running_stats"});
  check({"running_var negative",
         op("_native_batch_norm_legit_no_training", kNan,
            {range("input", 0, 1), range("running_var", -2, 1), scalar("eps", 1e-5)}),
         kInvalid, "", "negative", "variance is never negative"});
  check({"instance_norm",
         op("instance_norm", kNan, {slice("input", 0, 1, 3, 1, 1, kInf), scalar("use_input_stats", 1)}), kInvalid,
         "instance_norm got inf and made nan", "inf - inf", "infinity"});
  check({"dead filter", op("_weight_norm_interface", kNan, {slice("v", 0, 0, 8), range("g", 0, 1)}), kInvalid, "",
         "g * v / |v|", "Initialise"});
  check({"cosine in half",
         op("cosine_similarity", kNan, {slice("x1", 0, 0, 8), slice("x2", 0, 1, 8), scalar("eps", 1e-8)}, kHalf),
         kInvalid, "", "rounds to 0 in float16", "1e-6"});
  check({"pairwise", op("pairwise_distance", kInf, {slice("x1", 0, 1000, 8), slice("x2", 0, 1, 8)}, kHalf), kOver, "",
         "squares", "float32"});
  check({"cdist", op("_cdist_forward", kNan, {holding("x1", kInf), range("x2", 0, 1)}), kInvalid, "", "no distance",
         "infinity"});
}

}  // namespace
}  // namespace sherlorch
