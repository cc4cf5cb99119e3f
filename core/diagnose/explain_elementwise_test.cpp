// One case a family at least: facts as the recorder fills them in from a real mistake, and what must be said about
// them.
#include <gtest/gtest.h>

#include "core/diagnose/explain_test_facts.h"

namespace sherlorch {
namespace {

using namespace explain_test;

TEST(ExplainElementwiseTest, AnInfinityIsOutsideTheDomainToo) {
  check({"mask into log", deliberate(op("log", kNan, {point("self", -kInf)})), Cause::kDeliberateInfinity,
         "log(-inf) is nan", "negative number", "negative"});
  check({"acos", op("acos", kNan, {point("self", kInf)}), kInvalid, "acos(inf) is nan", "[-1, 1]", "clamp"});
  check({"i0", op("i0", kNan, {point("self", kInf)}), kInvalid, "i0(inf) is nan", "one infinity", "infinity"});
  check({"near 0", op("digamma", -kInf, {point("self", 1e-40)}), kOver, "", "-1/x", "above 0"});
}

TEST(ExplainElementwiseTest, OneOperandLeavesItsDomain) {
  check({"zero padding", op("log", -kInf, {point("self", 0)}), kPole, "log(0.0) is -inf", "The operand is 0.0 here",
         "log_softmax"});
  check({"negative width", op("log_", kNan, {point("self", -2)}), kInvalid, "log(-2.0) is nan", "negative number",
         "negative"});
  check({"log2 of a count", op("log2", -kInf, {point("self", 0)}), kPole, "log2(0.0) is -inf",
         "as its operand goes to 0", "eps"});
  check({"decibels", op("log10", -kInf, {point("self", 0)}), kPole, "log10(0.0) is -inf", "as its operand goes to 0",
         "clamp"});
  check({"log of 1 - p", op("log1p", -kInf, {point("self", -1)}), kPole, "log1p(-1.0) is -inf", "0 at -1", "above -1"});
  check({"log1p below", op("log1p", kNan, {point("self", -1.5)}), kInvalid, "log1p(-1.5) is nan", "negative below -1",
         "above -1"});
  check(
      {"sure prediction", op("logit", kInf, {point("self", 1)}), kPole, "logit(1.0) is inf", "1 - p is 0", "eps=1e-6"});
  check({"variance by subtraction", op("sqrt", kNan, {point("self", -1.2e-07)}), kInvalid, "sqrt(-1.2e-07) is nan",
         "-1.2e-07", "torch.var"});
  check({"isolated node", op("rsqrt", kInf, {point("self", 0)}), kPole, "rsqrt(0.0) is inf", "sqrt(0) is 0", "eps"});
  check({"scale of a zero row", op("reciprocal", kInf, {point("self", 0)}), kPole, "reciprocal(0.0) is inf",
         "divides 1 by 0", "eps"});
  check({"tiny scale in half", op("reciprocal", kInf, {point("self", 6e-8)}, kHalf), kOver, "", "nearly 0", "clamp"});
  check({"log variance", op("exp", kInf, {point("self", 100)}), kOver, "exp(100.0) is inf (float32 ends at 3.4e+38)",
         "100.0", "clamp"});
  check({"exp in half", op("exp", kInf, {point("self", 12)}, kHalf), kOver, "exp(12.0) is inf (float16 ends at 65504)",
         "65504", "clamp"});
  check({"exp2", op("exp2", kInf, {point("self", 128)}), kOver, "", "2**x", "clamp"});
  check({"expm1", op("expm1", kInf, {point("self", 90)}), kOver, "", "exp grows", "clamp"});
  check({"sinh", op("sinh", -kInf, {point("self", -90)}), kOver, "", "sinh grows", "clamp"});
  check({"cosh", op("cosh", kInf, {point("self", 90)}), kOver, "", "cosh grows", "clamp"});
  check({"square in half", op("square", kInf, {point("self", 300)}, kHalf), kOver,
         "square(300.0) is inf (float16 ends at 65504)", "square", ".float()"});
  check({"rounded cosine", op("acos", kNan, {point("self", 1.0000001)}), kInvalid, "acos(1.0000001) is nan", "[-1, 1]",
         "clamp"});
  check({"asin", op("asin", kNan, {point("self", -1.5)}), kInvalid, "asin(-1.5) is nan", "[-1, 1]", "clamp"});
  check({"tanh undone", op("atanh", kInf, {point("self", 1)}), kPole, "atanh(1.0) is inf", "at 1 and at -1", "clamp"});
  check(
      {"arctanh", op("arctanh", kNan, {point("self", 2)}), kInvalid, "atanh(2.0) is nan", "between -1 and 1", "clamp"});
  check({"hyperbolic distance", op("acosh", kNan, {point("self", 0.9999999)}), kInvalid, "acosh(0.9999999) is nan",
         "from 1 upwards", "clamp"});
  check({"rank gauss", op("special_erfinv", kInf, {point("self", 1)}), kPole, "erfinv(1.0) is inf", "at 1 and at -1",
         "clamp"});
  check({"quantile", op("special_ndtri", -kInf, {point("self", 0)}), kPole, "ndtri(0.0) is -inf", "probability 0",
         "(0, 1)"});
  check({"beta at its edge", op("lgamma", kInf, {point("self", 0)}), kPole, "lgamma(0.0) is inf", "poles", "softplus"});
  check({"digamma", op("digamma", kNan, {point("self", -1)}), kPole, "digamma(-1.0) is nan", "poles", "above 0"});
  check({"trigamma", op("polygamma", kInf, {scalar("n", 1), point("self", 0)}), kPole, "polygamma(1, 0.0) is inf",
         "poles", "softplus"});
  check({"position inf", op("sin", kNan, {point("self", kInf)}), kInvalid, "sin(inf) is nan", "no angle", "infinity"});
  check({"tan", op("tan", kNan, {point("self", -kInf)}), kInvalid, "tan(-inf) is nan", "no angle", "infinity"});
  check({"gate of a mask", deliberate(op("silu", kNan, {point("self", -kInf)})), Cause::kDeliberateInfinity,
         "silu(-inf) is nan", "one that the program put there", "infinity"});
  check({"entropy", op("special_entr", -kInf, {point("self", -1)}), kInvalid, "entr(-1.0) is -inf", "below 0",
         "negative"});
}

}  // namespace
}  // namespace sherlorch
