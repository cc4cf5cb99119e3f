// One case a family at least: facts as the recorder fills them in from a real mistake, and what must be said about
// them.
#include <gtest/gtest.h>

#include "core/diagnose/explain_test_facts.h"

namespace sherlorch {
namespace {

using namespace explain_test;

TEST(ExplainLinalgTest, Factorizations) {
  check({"inverse", op("linalg_inv_ex", kInf, {range("A", 0, 0, {2, 2})}), kPole, "", "all zeros", "torch.eye"});
  check({"gauss-newton", op("linalg_solve_ex", kInf, {range("A", -1, 1, {2, 2}), range("B", 0, 1)}), kPole, "",
         "Probably it is singular", "lstsq"});
  check({"triangular", op("linalg_solve_triangular", kInf, {range("self", 0, 1), range("B", 0, 1)}), kPole, "",
         "diagonal", "torch.eye"});
  check({"triangular, a zero pivot",
         op("linalg_solve_triangular", kInf, {with_diagonal(slice("self", 0, 1, 4), 0), slice("B", 0, 1, 4)}), kPole,
         "", "there is a 0 on it", "torch.eye"});
  check({"triangular, a tiny pivot",
         op("linalg_solve_triangular", kInf, {with_diagonal(slice("self", 0, 1, 4), 1e-40), slice("B", 0, 1, 4)}),
         kOver, "", "its smallest number is 1e-40", "torch.eye"});
  check({"negative determinant", op("logdet", kNan, {range("self", -1, 1, {2, 2})}), kInvalid, "",
         "determinant is negative", "slogdet"});
  check(
      {"slogdet", op("_linalg_slogdet", -kInf, {range("A", 0, 0, {2, 2})}), kPole, "", "log(0) is -inf", "torch.eye"});
  check({"det", op("linalg_det", kInf, {range("A", -1e10, 1e10, {8, 8})}), kOver, "", "product of all pivots",
         "slogdet"});
  check({"cholesky", op("linalg_cholesky_ex", kNan, {range("self", -1, 1, {2, 2})}), kInvalid, "", "positive definite",
         "jitter"});
  check({"eigh", op("linalg_eigh", kNan, {holding("A", kInf)}), kInvalid, "", "inf - inf", "infinity"});
  check({"svd", op("linalg_svd", kNan, {holding("A", kInf)}), kInvalid, "", "inf - inf", "infinity"});
  check({"qr", op("linalg_qr", kNan, {holding("A", -kInf)}), kInvalid, "", "inf - inf", "infinity"});
  check({"lstsq", op("linalg_lstsq", kNan, {range("self", 0, 1, {4, 2}), range("b", 0, 1)}), kPole, "", "full rank",
         "gelsd"});
}

TEST(ExplainOptimizerTest, OptimizerSteps) {
  check({"Adam in half",
         in_optimizer(op("addcdiv_", kNan,
                         {lost("self"), point("tensor1", 0), point("tensor2", 0), scalar("value", -0.001)}, kHalf)),
         kInvalid, "self + -0.001 * 0.0 / 0.0 is nan", "or rounds to 0 in float16", "larger eps"});
  check({"Adam foreach",
         in_optimizer(op("_foreach_addcdiv_", kInf, {lost("self"), point("tensor1", 1), point("tensor2", 0)}, kHalf)),
         kPole, "", "exp_avg_sq", "1e-4"});
  check({"squared gradient",
         in_optimizer(
             op("_foreach_addcmul_", kInf, {lost("self"), point("tensor1", 1000), point("tensor2", 1000)}, kHalf)),
         kOver, "", "squares the gradient", "Clip"});
  check({"lerp", op("lerp_", kNan, {point("self", kInf), point("end", kInf), scalar("weight", 0.1)}), kInvalid,
         "lerp(inf, inf, 0.1) is nan", "inf - inf", "average"});
  check({"fused adam",
         in_optimizer(op(
             "_fused_adamw_", kNan,
             {lost("self"), range("grads", 0, 1), range("exp_avg_sqs", 0, 1), scalar("eps", 0), scalar("lr", 0.001)})),
         kInvalid, "adamw made nan", "0/0", "larger eps"});
  check({"fused sgd",
         in_optimizer(op("_fused_sgd_", kInf, {lost("self"), range("grads", -1e38, 1e38), scalar("lr", 10)})), kOver,
         "", "learning rate of 10.0", "lower the learning rate"});
  check({"scaler", op("_amp_foreach_non_finite_check_and_unscale_", kInf, {holding("self", kInf)}), Cause::kUnknown, "",
         "skips such a step", "every step"});
}

}  // namespace
}  // namespace sherlorch
