// One case a family at least: facts as the recorder fills them in from a real mistake, and what must be said about
// them.
#include <gtest/gtest.h>

#include "core/diagnose/explain_test_facts.h"

namespace sherlorch {
namespace {

using namespace explain_test;

Arg dim0(Arg arg) {
  arg.operand.shape = {};
  return arg;
}

TEST(ExplainArithmeticTest, TwoOperandsMeet) {
  check({"two masks", op("add", -kInf, {point("self", -3.4e38), point("other", -3.4e38)}), kOver, "", "too large",
         "masks"});
  check({"half residual", op("add_", kInf, {point("self", 60000), point("other", 60000)}, kHalf), kOver,
         "60000.0 + 60000.0 is inf (float16 ends at 65504)", "65504", "bfloat16"});
  check({"inf - inf", op("sub", kNan, {point("self", kInf), point("other", kInf)}), kInvalid, "inf - inf is nan",
         "cancel", "infinity"});
  check({"rsub", op("rsub", kNan, {point("self", -kInf), scalar("other", -kInf)}), kInvalid, "-inf - -inf is nan",
         "cancel", "infinity"});
  check({"sgd step",
         in_optimizer(op("_foreach_add_", -kInf, {lost("self"), point("other", 3e38), scalar("alpha", -10)})), kOver,
         "self + -10.0 * 3e+38 is -inf (float32 ends at 3.4e+38)", "overwritten", "learning rate"});
  check({"mask times -inf", op("mul", kNan, {point("self", 0), point("other", -kInf)}), kInvalid, "0.0 * -inf is nan",
         "0 times an infinity", "torch.where"});
  check({"half product", op("mul", kInf, {point("self", 300), point("other", 300)}, kHalf), kOver,
         "300.0 * 300.0 is inf (float16 ends at 65504)", "65504", "float"});
  check({"scaled half loss", op("mul", kInf, {point("self", 2), scalar("other", 65536)}, kHalf), kOver, "", "65504",
         "GradScaler"});
  check({"clipping", op("_foreach_mul_", kNan, {point("self", -kInf), scalar("other", 0)}), kInvalid,
         "-inf * 0.0 is nan", "clip_grad_norm_", "error_if_nonfinite"});
  check({"clipping nan", op("_foreach_mul_", kNan, {point("self", 1), dim0(point("other", kNan))}), Cause::kUnknown,
         "1.0 * nan is nan", "clip_grad_norm_", "error_if_nonfinite"});
  check({"isolated node", op("div", kInf, {point("self", 1), point("other", 0)}), kPole, "1.0 / 0.0 is inf",
         "The divisor is 0.0 here", "eps"});
  check({"empty selection", scalar_output(op("div", kNan, {point("self", 0), point("other", 0)})), kInvalid,
         "0.0 / 0.0 is nan", "0 / 0", "count"});
  check({"true_divide_", op("true_divide_", kNan, {point("self", 0), scalar("other", 0)}), kInvalid, "0.0 / 0.0 is nan",
         "0 / 0", "clamp"});
  check({"inf over inf", op("div", kNan, {point("self", kInf), point("other", kInf)}), kInvalid, "inf / inf is nan",
         "infinity divided", "softmax"});
  check({"tiny divisor", op("div", kInf, {point("self", 1), point("other", 1e-6)}, kHalf), kOver, "", "so small",
         "6e-8"});
  check({"in place, dividend lost", op("div_", kNan, {lost("self"), point("other", 0)}), kInvalid, "self / 0.0 is nan",
         "overwritten in place", "eps"});
  check({"in place, dividend not 0", op("div_", kInf, {lost("self"), point("other", 0)}), kPole, "self / 0.0 is inf",
         "divisor is 0.0", "eps"});
  check({"floor_divide", op("floor_divide", kInf, {point("self", 3), point("other", 0)}), kPole, "3.0 // 0.0 is inf",
         "divided by 0", "eps"});
  check({"remainder", op("remainder", kNan, {point("self", 3), point("other", 0)}), kInvalid, "3.0 % 0.0 is nan",
         "no remainder", "divisor"});
  check({"fmod", op("fmod", kNan, {point("self", kInf), point("other", 2)}), kInvalid, "fmod(inf, 2.0) is nan",
         "no remainder", "infinity"});
  check({"degree ** -0.5", op("pow", kInf, {point("self", 0), scalar("exponent", -0.5)}), kPole, "0.0 ** -0.5 is inf",
         "1 / 0", "eps"});
  check({"msssim", op("pow", kNan, {point("self", -0.01), point("exponent", 0.3333)}), kInvalid,
         "(-0.01) ** 0.3333 is nan", "fractional", "Clamp"});
  check({"float_power", op("pow", kInf, {point("self", 300), scalar("exponent", 2)}, kHalf), kOver,
         "300.0 ** 2.0 is inf (float16 ends at 65504)", "65504", "float"});
  check({"xlogy", op("special_xlogy", -kInf, {point("self", 1), point("other", 0)}), kPole, "xlogy(1.0, 0.0) is -inf",
         "x * log(y)", "Clamp"});
  check({"xlog1py", op("special_xlog1py", kNan, {point("self", 1), point("other", -2)}), kInvalid,
         "xlog1py(1.0, -2.0) is nan", "log(1 + y)", "above -1"});
  check({"logaddexp", op("logaddexp", -kInf, {point("self", -kInf), point("other", -kInf)}), Cause::kUnknown,
         "logaddexp(-inf, -inf) is -inf", "nothing is possible", "finite"});
  check(
      {"hypot", op("hypot", kInf, {point("self", 60000), point("other", 60000)}, kHalf), kOver, "", "length", "float"});
  check({"ldexp", op("ldexp", kInf, {point("self", 1), point("other", 200)}), kOver, "", "2**n", "float"});
  check({"xlogy in half", op("xlogy", kInf, {point("self", 60000), point("other", 88)}, kHalf), kOver, "", "too large",
         ".float()"});
  check({"inf // 2", op("floor_divide", kNan, {point("self", kInf), point("other", 2)}), kInvalid, "inf // 2.0 is nan",
         "remainder", "infinity"});
  check({"0 * 2**300", op("ldexp", kNan, {point("self", 0), point("other", 300)}), kInvalid, "", "0 times an infinity",
         ".float()"});
  check({"igamma", op("igamma", kNan, {point("self", -1), point("other", 1)}), kInvalid, "igamma(-1.0, 1.0) is nan",
         "negative", "above 0"});
}

}  // namespace
}  // namespace sherlorch
