// What met what inside an autograd node. The inner ops and operands are those that torch 2.13 ran on the CPU.
#include <gtest/gtest.h>

#include "core/diagnose/explain_test_facts.h"

namespace sherlorch {
namespace {

using namespace explain_test;

OpFacts with_forward(OpFacts facts, const char* forward) {
  facts.forward_op = forward;
  return facts;
}

OpFacts div(const char* node, double result, double gradient, double divisor) {
  return backward(node, "div", result, {point("self", gradient), point("other", divisor)});
}

TEST(ExplainBackwardTest, SaysWhatMetWhat) {
  check({"sqrt(0)", with_forward(div("SqrtBackward0", kInf, 1, 0), "sqrt"), kPole,
         "1.0 / 0.0 is inf in the backward of sqrt", "sqrt(x) is 0 here. The forward value was fine", "eps inside"});
  check({"sqrt(0), masked", div("SqrtBackward0", kNan, 0, 0), kInvalid, "", "The incoming gradient is 0 too",
         "double where"});
  check({"x ** 0.5", backward("PowBackward0", "pow", kInf, {point("self", 0), scalar("exponent", -0.5)}), kPole, "",
         "infinite at x = 0", "eps to the base"});
  check({"pow, exponent", backward("PowBackward1", "log", -kInf, {point("self", 0)}), kPole, "",
         "exponent p takes log(x)", "eps to the base"});
  check({"log(0)", div("LogBackward0", kInf, 1, 0), kPole, "", "by x, and x is 0 here", "before the log"});
  check({"log1p", div("Log1PBackward0", kInf, 1, 0), kPole, "", "1 + x is 0", "above -1"});
  check({"div", div("DivBackward0", kNan, 0, 0), kInvalid, "", "the divisor", "eps"});
  check({"acos", backward("AcosBackward0", "rsqrt", kInf, {point("self", 0)}), kPole, "", "sqrt(1 - x**2)", "clamp"});
  check({"asin", backward("AsinBackward0", "rsqrt", kInf, {point("self", 0)}), kPole, "", "x is 1 or -1", "clamp"});
  check({"acosh", backward("AcoshBackward0", "rsqrt", kInf, {point("self", 0)}), kPole, "", "sqrt(x**2 - 1)",
         "clamp_min"});
  check({"atanh", div("AtanhBackward0", kInf, 1, 0), kPole, "", "1 - x**2", "clamp"});
  check({"norm", div("LinalgVectorNormBackward0", kNan, 0, 0), kInvalid, "", "the norm is 0", "eps"});
  check({"old norm", div("NormBackward1", kNan, 0, 0), kInvalid, "", "the norm is 0", "eps"});
  check({"logsumexp", backward("LogsumexpBackward0", "sub", kNan, {point("self", -kInf), point("other", -kInf)}),
         kInvalid, "", "-inf - -inf", "finite negative"});
  check({"logaddexp", backward("LogaddexpBackward0", "sub", kNan, {point("self", -kInf), point("other", -kInf)}),
         kInvalid, "", "-inf - -inf", "finite negative"});
  check({"softmax",
         backward("SoftmaxBackward0", "_softmax_backward_data", kNan,
                  {slice("grad_output", 0, 1, 3, 1, 1, -kInf), slice("output", 0, 1, 4)}),
         kInvalid, "", "gradient is infinite", "log_softmax"});
  check({"softmax cleaned up",
         backward("SoftmaxBackward0", "_softmax_backward_data", kNan,
                  {slice("grad_output", 0, 1, 4), slice("output", 0, 0, 0, 0, 4, kNan)}),
         Cause::kUnknown, "", "masked whole", "unmasked"});
  check({"exp under where",
         with_forward(backward("ExpBackward0", "mul", kNan, {point("self", 0), point("other", kInf)}), "exp"), kInvalid,
         "0.0 * inf is nan in the backward of exp", "did not pick this element", "double where"});
  check({"xlogy", div("XlogyBackward0", kNan, 0, 0), kInvalid, "", "operand of the log", "clamp_min"});
  check({"atan2", backward("Atan2Backward0", "reciprocal", kInf, {point("self", 0)}), kPole, "", "x**2 + y**2",
         "origin"});
  check({"eigh", backward("LinalgEighBackward0", "div_", kNan, {point("self", 0), point("other", 0)}), kInvalid, "",
         "two eigenvalues are equal", "eigvalsh"});
  check({"svd", div("LinalgSvdBackward0", kInf, 1, 0), kPole, "", "two singular values are equal", "svdvals"});
  check({"cholesky",
         backward("LinalgCholeskyExBackward0", "linalg_solve_triangular", kNan,
                  {range("self", 0, 0, {2, 2}), range("B", 0, 1)}),
         kPole, "", "a pivot is 0", "torch.eye"});
  check({"cholesky, a zero pivot",
         backward("LinalgCholeskyExBackward0", "linalg_solve_triangular", kNan,
                  {with_diagonal(slice("self", 0, 1, 9), 0), slice("B", 0, 1, 9)}),
         kPole, "", "There is a 0 on its diagonal", "torch.eye"});
  check({"cholesky, no zero pivot",
         backward("LinalgCholeskyExBackward0", "linalg_solve_triangular", kNan,
                  {with_diagonal(slice("self", 0, 1, 9), 0.5), slice("B", 0, 1, 9)}),
         Cause::kUnknown, "", "", ""});
  check({"inverse", backward("LinalgInvExBackward0", "linalg_lu_solve", kNan, {range("LU", -1, 1), range("B", 0, 1)}),
         kPole, "", "Probably a pivot is 0", "torch.eye"});
  check({"std", div("StdBackward0", kInf, 1, 0), kPole, "", "standard deviation is 0", "x.var() + eps"});
  check({"var of one", div("VarBackward0", kNan, 0, 0), kInvalid, "", "n - 1 is 0", "single element"});
  check({"cdist", backward("CdistBackward0", "_cdist_backward", kNan, {range("grad", 0, 1), range("cdist", 0, 2)}),
         kPole, "", "two points are equal", "squared"});
  check({"exploding", backward("MmBackward0", "mm", kInf, {slice("self", 0, 1e30, 8), slice("mat2", 0, 1e30, 8)}),
         kOver, "", "In the backward of mm: the dot product", "clip the gradients"});
  check({"addmm in half",
         backward("AddmmBackward0", "mm", kInf, {slice("self", 0, 1000, 128), slice("mat2", 0, 1000, 128)},
                  "torch.float16"),
         kOver, "", "65504", "learning rate"});
  check({"mul", backward("MulBackward0", "mul", kNan, {point("self", 0), point("other", -kInf)}), kInvalid, "",
         "0 times an infinity", "double where"});
  check({"mul overflow", backward("MulBackward0", "mul", kInf, {point("self", 1e30), point("other", 1e30)}), kOver, "",
         "In the backward of mul", "clip"});
  check({"prelu",
         backward("PreluKernelBackward0", "_prelu_kernel_backward", kNan,
                  {holding("self", kInf), range("weight", 0, 1), range("grad_output", 0, 1)}),
         kInvalid, "", "prelu weight", "infinity"});
  check({"cast of a gradient", backward("ToCopyBackward0", "_to_copy", kInf, {point("self", 70000)}, "torch.float16"),
         Cause::kCastOverflow, "", "end of float16", "loss scale"});
  check({"ctc",
         backward("CtcLossBackward0", "_ctc_loss_backward", kNan,
                  {range("grad", 0, 1), holding("neg_log_likelihood", kInf)}),
         kInvalid, "", "no alignment", "zero_infinity"});
  check({"layer_norm",
         backward("NativeLayerNormBackward0", "native_layer_norm_backward", kInf,
                  {range("grad_out", 0, 1e4), range("rstd", 0, 300)}, "torch.float16"),
         kOver, "", "almost no spread", "larger eps"});
  check({"logit", backward("LogitBackward0", "logit_backward", kInf, {point("grad_output", 1), point("self", 0)}),
         kPole, "", "p * (1 - p)", "eps"});
  check({"bce in half",
         backward("BinaryCrossEntropyBackward0", "binary_cross_entropy_backward", kInf,
                  {point("grad_output", 1), point("self", 1)}, "torch.float16"),
         kPole, "", "rounds to 0 in float16", "with_logits"});
  check({"cumprod", div("CumprodBackward0", kNan, 0, 0), kInvalid, "", "the operand is 0", "log domain"});
  check({"conv",
         backward("ConvolutionBackward0", "convolution_backward", kInf,
                  {range("grad_output", 0, 1e4), range("input", 0, 100), range("weight", 0, 1)}, "torch.float16"),
         kOver, "", "65504", "clip"});
  check({"lgamma", backward("LgammaBackward0", "digamma", -kInf, {point("self", 0)}), kPole,
         "digamma(0.0) is -inf in the backward of lgamma", "In the backward of lgamma", "above 0"});
  check({"hypot", div("HypotBackward0", kNan, 0, 0), kInvalid, "", "the length is 0", "eps"});
  check({"embedding",
         backward("EmbeddingBackward0", "embedding_dense_backward", kInf,
                  {slice("grad_output", 100, 1000, 100), range("indices", 0, 2)}, "torch.float16"),
         kOver, "", "into one place", "clip"});
  check({"fan-out", backward("", "add_", kInf, {lost("self"), point("other", 6e4)}, "torch.float16"), kOver, "",
         "overwritten in place", "wider"});
}

TEST(ExplainBackwardTest, DoesNotBlameADivisorThatIsNotZero) {
  for (const char* node :
       {"SqrtBackward0", "LogBackward0", "StdBackward0", "LinalgEighBackward0", "LinalgVectorNormBackward0"}) {
    const Explanation e = explain(div(node, kNan, kNan, 2));
    EXPECT_EQ(static_cast<int>(e.cause), static_cast<int>(Cause::kUnknown)) << node << e.explanation;
    EXPECT_TRUE(e.explanation.empty()) << e.explanation;
  }
}

TEST(ExplainBackwardTest, DoesNotBlameAZeroDivisorForANanGradient) {
  const Explanation e = explain(div("SqrtBackward0", kNan, kNan, 0));
  EXPECT_EQ(e.explanation.find("The forward value was fine"), std::string::npos) << e.explanation;
  EXPECT_EQ(static_cast<int>(e.cause), static_cast<int>(Cause::kUnknown)) << e.explanation;
}

TEST(ExplainBackwardTest, SaysProbablyWhereOnlyTheRangeIsKnown) {
  const OpFacts facts = backward("SqrtBackward0", "div", kInf, {range("self", 1, 1), range("other", 0, 2)});
  EXPECT_NE(explain(facts).explanation.find("probably sqrt(x) is 0"), std::string::npos);
}

TEST(ExplainBackwardTest, TwoFiniteSubtrahendsAreNotALogDomainFault) {
  const OpFacts facts = backward("LogsumexpBackward0", "sub", kNan, {point("self", kNan), point("other", 1)});
  EXPECT_TRUE(explain(facts).explanation.empty());
}

}  // namespace
}  // namespace sherlorch
