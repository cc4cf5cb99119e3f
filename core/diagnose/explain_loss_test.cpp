// One case a family at least: facts as the recorder fills them in from a real mistake, and what must be said about
// them.
#include <gtest/gtest.h>

#include "core/diagnose/explain_test_facts.h"

namespace sherlorch {
namespace {

using namespace explain_test;

TEST(ExplainLossTest, Losses) {
  check({"all ignored",
         op("cross_entropy_loss", kNan,
            {range("self", -1, 1), range("target", -100, -100), scalar("reduction", 1), scalar("ignore_index", -100)}),
         kInvalid, "cross_entropy_loss over labels that are all ignored is nan", "no labels: 0/0", "Skip"});
  check({"class weight 0",
         op("nll_loss_nd", kNan, {range("self", -1, 0), range("target", 0, 0), range("weight", 0, 0)}), kInvalid, "",
         "class weights are 0", "weight above 0"});
  check(
      {"label smoothing",
       op("cross_entropy_loss", kInf, {holding("self", -kInf), range("target", 0, 3), scalar("label_smoothing", 0.1)}),
       kInvalid, "", "Label smoothing", "masked"});
  check({"label of a masked class",
         op("cross_entropy_loss", kInf,
            {holding("self", -kInf),
             [] {
               Arg a = range("target", 0, 3);
               a.operand.dtype = "torch.int64";
               return a;
             }()}),
         kPole, "", "label names that class", "masked class"});
  check({"soft target", op("cross_entropy_loss", kNan, {holding("self", -kInf), range("target", 0, 1)}), kInvalid, "",
         "0 * -inf", "class indices"});
  check({"pos_weight",
         op("binary_cross_entropy_with_logits", kNan,
            {range("self", -1, 1), range("target", 0, 1), holding("pos_weight", kInf)}),
         kInvalid, "", "pos_weight is infinite", "clamp"});
  check({"bce target", op("binary_cross_entropy", kNan, {range("self", 0, 1), holding("target", kNan)}), kInvalid, "",
         "target holds nan", "data loader"});
  check({"kl", op("kl_div", kNan, {holding("self", -kInf), range("target", 0, 1)}), kInvalid, "", "0 * -inf",
         "log_softmax"});
  check({"kl log_target", op("kl_div", kNan, {range("self", -1, 0), holding("target", -kInf), scalar("log_target", 1)}),
         kInvalid, "", "exp(-inf)", "log_target=False"});
  check({"mse in half", op("mse_loss", kInf, {range("self", 0, 400), range("target", 0, 1)}, kHalf), kOver, "",
         "squared errors", "float32"});
  check({"mse of nothing", op("mse_loss", kNan, {range("self", 0, 0, {0}), range("target", 0, 0, {0})}), kInvalid,
         "mse_loss over no elements is nan", "0/0", "Skip"});
  check({"l1 with a bad label", op("l1_loss", kNan, {range("self", 0, 1), holding("target", kNan)}), kInvalid, "",
         "target holds nan", "data loader"});
  check({"smooth_l1", op("smooth_l1_loss", kNan, {holding("self", kInf), holding("target", kInf)}), kInvalid, "",
         "inf - inf", "infinity"});
  check({"huber",
         op("huber_loss", kInf, {range("self", 0, 60000), range("target", -60000, 0), scalar("delta", 1)}, kHalf),
         kOver, "", "differences up to", "float32"});
  check({"poisson",
         op("poisson_nll_loss", kInf, {range("input", 0, 120), range("target", 0, 3), scalar("log_input", 1)}), kOver,
         "", "log rate", "Clamp"});
  check({"gaussian",
         op("gaussian_nll_loss", kNan,
            {range("input", 0, 1), range("target", 0, 1), range("var", 0, 0), scalar("eps", 0)}),
         kPole, "", "variance", "eps"});
  check({"ctc",
         op("ctc_loss", kInf, {range("log_probs", -4, 0), scalar("input_lengths", 2), scalar("target_lengths", 3)}),
         kPole, "", "No alignment", "zero_infinity"});
  check({"ctc repeats", op("_ctc_loss", kInf, {range("log_probs", -4, 0)}), kPole, "", "repeated labels",
         "zero_infinity"});
}

}  // namespace
}  // namespace sherlorch
