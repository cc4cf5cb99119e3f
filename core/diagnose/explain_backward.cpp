// Ops inside an autograd node: what the incoming gradient met. The operands are those of the ATen op that the node ran
// (div inside SqrtBackward0), so each row says what that op's operand stands for, and is used only if the operand bears
// it out.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

Verdict explain_pow_backward(const Context& context) {
  const Known x = context.get({"self"});
  const Known p = context.get({"exponent"});
  const char* help = "Add a small eps to the base (x + eps)**p, or clamp it above 0. A where() after it does not help.";
  if (context.op == "pow" && both(x.equals(0), p.below(0)) != Sure::kNo) {
    std::string why = "The gradient of x**p is p * x**(p - 1), and for p below 1 that is infinite at x = 0. " +
                      clause(x, "base", "0");
    if (p.point()) why += " p is " + format_number(p.value + 1) + ". The forward value was fine.";
    return verdict(Cause::kDivisionByZero, why, help);
  }
  if (context.op == "log" && x.equals(0) != Sure::kNo) {
    return verdict(Cause::kDivisionByZero,
                   "The gradient of x**p by the exponent p takes log(x). " + clause(x, "base", "0"), help);
  }
  if (context.op == "log" && x.below(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "The gradient of x**p by the exponent p takes log(x). " + clause(x, "base", "negative") +
                       " If the exponent is a constant, it needs no gradient.",
                   "Detach the exponent, or keep the base above 0.");
  }
  return {};
}

Verdict explain_unit(const Context& context) {
  const Known x = context.get({"self"});
  if (context.op != "rsqrt" || x.equals(0) == Sure::kNo) return {};
  const std::string name = forward_name(context);
  const bool hyperbolic = node_base(context.facts.autograd_node) == "Acosh";
  return verdict(Cause::kDivisionByZero,
                 "The backward of " + name + " divides the incoming gradient by " +
                     (hyperbolic ? "sqrt(x**2 - 1)" : "sqrt(1 - x**2)") + ", and that is " +
                     (x.equals(0) == Sure::kYes ? "" : "probably ") + "0 here: x is " + (hyperbolic ? "1" : "1 or -1") +
                     ". The forward value was fine.",
                 hyperbolic ? "Clamp before the op: x.clamp_min(1 + eps)."
                            : "Clamp before the op, a little inside the limits: x.clamp(-1 + eps, 1 - eps). atan2 is "
                              "the safer way to an angle.");
}

Verdict explain_log_domain(const Context& context) {
  const Known a = context.get({"self"});
  const Known b = context.get({"other"});
  if (context.op != "sub" && context.op != "add") return {};
  const Sure negative = both(a.infinite(-1), b.infinite(-1));
  const Sure met = context.op == "sub"
                       ? either(negative, both(a.infinite(1), b.infinite(1)))
                       : either(both(a.infinite(1), b.infinite(-1)), both(a.infinite(-1), b.infinite(1)));
  if (met == Sure::kNo) return {};
  const std::string terms = context.op == "add" ? "inf + -inf" : negative != Sure::kNo ? "-inf - -inf" : "inf - inf";
  return verdict(Cause::kInvalidOperation,
                 "The backward of " + forward_name(context) + " subtracts the result from the operand, and " +
                     (met == Sure::kYes ? "" : "probably ") + "both are infinite here: " + terms + " has no value. " +
                     (negative == Sure::kNo ? "" : "All the terms were -inf, and so was the forward value."),
                 "Use a large finite negative number for what is impossible in place of -inf, or leave out rows where "
                 "everything is.");
}

// grad * f(x), where f(x) is what the forward pass saved.
Verdict explain_zero_times_infinity(const Context& context) {
  if (context.op != "mul" || !context.result_nan()) return {};
  const Known a = context.get({"self"});
  const Known b = context.get({"other"});
  const Sure met = either(both(a.equals(0), b.infinite()), both(a.infinite(), b.equals(0)));
  if (met == Sure::kNo) return {};
  const std::string name = forward_name(context);
  const bool picked = both(a.infinite(), b.equals(0)) != Sure::kNo;  // the gradient is the infinite one
  std::string why = "The backward of " + name + " multiplies the incoming gradient by what the forward pass saved. ";
  why += met == Sure::kYes ? "Here " : "Probably, somewhere ";
  why += picked ? "one of them is 0 and the other infinite: "
                : "the gradient is 0 (where() or a mask did not pick this element) and the saved value is infinite: ";
  why += "0 times an infinity has no value.";
  return verdict(Cause::kInvalidOperation, why,
                 "Make the op safe for elements that are not picked: replace or clamp its operand before the op, then "
                 "pick the result (double where).");
}

Verdict explain_softmax(const Context& context) {
  const Known gradient = context.get({"grad_output", "grad"});
  const Known output = context.get({"output"});
  if (gradient.holds(0) != Sure::kNo) {
    return verdict(
        Cause::kInvalidOperation,
        "The incoming gradient is infinite. The backward of " + forward_name(context) +
            " multiplies it by the probabilities and subtracts the sum: 0 * inf and inf - inf have no value.",
        "Usually log(softmax(x)) with a probability of 0: use log_softmax, or cross_entropy on the logits.");
  }
  if (output.holds_nan() != Sure::kNo) {
    return verdict(Cause::kUnknown,
                   "The saved forward result holds nan already: a row was masked whole, and cleaning it up afterwards "
                   "does not repair the gradient.",
                   advice::kMaskedRow);
  }
  if (gradient.bounded() && context.result_inf() &&
      context.out.passes(static_cast<double>(gradient.slice() ? gradient.count : 1) * gradient.magnitude())) {
    return verdict(Cause::kOverflow,
                   "The incoming gradient, up to " + bound_text(gradient.magnitude()) +
                       ", is summed over the row and passes the largest " + context.out.name + ".",
                   advice::kExploding);
  }
  return {};
}

Verdict explain_atan2(const Context& context) {
  const Known x = context.get({"self"});
  if ((context.op != "reciprocal" && context.op != "div") ||
      (context.op == "reciprocal" ? x : context.get({"other"})).equals(0) == Sure::kNo)
    return {};
  return verdict(Cause::kDivisionByZero,
                 "The backward of atan2 divides by x**2 + y**2, and that is 0 here: the point is the origin, or so "
                 "close that the squares round to 0.",
                 "Keep points away from the origin: add a small eps to x where both are 0.");
}

Verdict explain_factorization(const Context& context) {
  const Known a = context.get({"self", "A", "LU"});
  const bool solves = context.op == "linalg_solve_triangular" || context.op == "linalg_lu_solve" ||
                      context.op == "linalg_solve" || context.op == "cholesky_solve" ||
                      context.op == "triangular_solve" || context.op == "cholesky_inverse";
  if (!solves || a.nonfinite() != Sure::kNo) return {};
  const Sure zero = a.equals(0);
  if (zero == Sure::kNo && a.bounded()) return {};
  // Of a factor the diagonal holds the pivots; of a whole matrix it tells nothing.
  const bool factor = context.op != "linalg_solve" && context.op != "cholesky_solve";
  if (factor && a.diagonal > 0) return {};
  const char* pivot = "Probably a pivot is 0: the matrix is singular.";
  if (zero == Sure::kYes) pivot = "The factor is all zeros, so a pivot is 0.";
  if (factor && a.diagonal == 0) pivot = "There is a 0 on its diagonal: the matrix is singular.";
  return verdict(
      Cause::kDivisionByZero,
      "The backward of " + forward_name(context) +
          " solves with the factor that the forward pass saved, and divides by its pivots. " + pivot,
      "Add a small multiple of the identity before the factorization (A + eps * torch.eye(n)), or use float64.");
}

Verdict explain_cdist(const Context& context) {
  const Known distance = context.get({"cdist", "pdist"});
  if (distance.equals(0) == Sure::kNo) return {};
  return verdict(Cause::kDivisionByZero,
                 std::string("The backward of cdist divides by the distance, ") +
                     (distance.equals(0) == Sure::kYes ? "and it is 0" : "and probably it is 0") +
                     " here: two points are equal. The forward value was fine.",
                 "Leave out pairs of equal points (the diagonal), or use squared distances.");
}

Verdict explain_prelu(const Context& context) {
  const Known x = context.get({"self", "input"});
  const Known gradient = context.get({"grad_output", "grad"});
  if (either(x.holds(0), gradient.holds(0)) == Sure::kNo) return {};
  return verdict(Cause::kInvalidOperation,
                 "The gradient of a prelu weight is the incoming gradient times the operand: one is infinite, and 0 * "
                 "inf has no value.",
                 "Find the op that made the infinity.");
}

Verdict explain_ctc(const Context& context) {
  const Known loss = context.get({"neg_log_likelihood"});
  if (loss.holds(1) == Sure::kNo) return {};
  return verdict(Cause::kInvalidOperation,
                 "The loss of a sample is infinite (no alignment is possible), so its gradient has no value.",
                 "Pass zero_infinity=True, or drop samples whose target is too long for their input.");
}

Verdict explain_norm_layer(const Context& context) {
  const Known rstd = context.get({"rstd", "save_invstd", "invstd"});
  const Known gradient = context.get({"grad_out", "grad_output", "grad"});
  if (rstd.holds(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "The saved 1 / std is infinite: the variance was 0 and eps too small. 0 times it has no value.",
                   "Use a larger eps in the normalisation layer.");
  }
  if (gradient.bounded() && rstd.bounded() && context.out.passes(gradient.magnitude() * rstd.magnitude())) {
    return verdict(Cause::kOverflow,
                   "The incoming gradient, up to " + bound_text(gradient.magnitude()) +
                       ", is divided by the standard deviation (times " + bound_text(rstd.magnitude()) +
                       ") and passes the largest " + context.out.name + ". The group has almost no spread.",
                   "Use a larger eps in the normalisation layer, or clip the gradients.");
  }
  return {};
}

Verdict explain_logit(const Context& context) {
  const Known x = context.get({"self"});
  if (context.op != "logit_backward" || either(x.equals(0), x.equals(1)) == Sure::kNo) return {};
  return verdict(
      Cause::kDivisionByZero,
      "The backward of logit divides the incoming gradient by p * (1 - p). " + clause(x, "probability", "0 or 1"),
      "Clamp before the op, a little inside (0, 1); torch.logit(x, eps=1e-6) does it itself.");
}

Verdict explain_binary_cross_entropy(const Context& context) {
  const Known p = context.get({"self"});
  if (context.op != "binary_cross_entropy_backward" || either(p.equals(0), p.equals(1)) == Sure::kNo ||
      context.out.smallest < 1e-12)
    return {};
  return verdict(Cause::kDivisionByZero,
                 "The backward of binary_cross_entropy divides by p * (1 - p), and the eps of 1e-12 that protects it "
                 "rounds to 0 in " +
                     context.out.name + ". " + clause(p, "probability", "0 or 1"),
                 "Use binary_cross_entropy_with_logits, or compute this loss in float32.");
}

Verdict explain_convolution(const Context& context) {
  const Known gradient = context.get({"grad_output", "grad"});
  const Known input = context.get({"input", "self"});
  const Known weight = context.get({"weight"});
  if (context.op.find("conv") == std::string::npos) return {};
  if (either(gradient.holds(0), either(input.holds(0), weight.holds(0))) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "An infinity goes into a sum of products: 0 * inf and inf - inf have no value.",
                   "Find the op that made the infinity.");
  }
  const double n = std::fmax(static_cast<double>(gradient.count), 1);
  if (!gradient.bounded() ||
      !context.out.passes(n * gradient.magnitude() * std::fmax(input.magnitude(), weight.magnitude())))
    return {};
  return verdict(Cause::kOverflow,
                 "Probably sums of products of the incoming gradient, up to " + bound_text(gradient.magnitude()) +
                     ", pass " + context.out.largest_text() + ", the largest " + context.out.name + ".",
                 advice::kExploding);
}

struct NodeRow {
  std::string_view node;
  ExplainFunction explain;
};
constexpr NodeRow kNodes[] = {
    {"Pow", explain_pow_backward},
    {"Acos", explain_unit},
    {"Asin", explain_unit},
    {"Acosh", explain_unit},
    {"Logsumexp", explain_log_domain},
    {"Logaddexp", explain_log_domain},
    {"Logaddexp2", explain_log_domain},
    {"Logcumsumexp", explain_log_domain},
    {"Softmax", explain_softmax},
    {"LogSoftmax", explain_softmax},
    {"MaskedSoftmax", explain_softmax},
    {"Atan2", explain_atan2},
    {"Cdist", explain_cdist},
    {"Pdist", explain_cdist},
    {"PreluKernel", explain_prelu},
    {"Prelu", explain_prelu},
    {"CtcLoss", explain_ctc},
    {"NativeLayerNorm", explain_norm_layer},
    {"NativeGroupNorm", explain_norm_layer},
    {"NativeBatchNorm", explain_norm_layer},
    {"CudnnBatchNorm", explain_norm_layer},
    {"Logit", explain_logit},
    {"BinaryCrossEntropy", explain_binary_cross_entropy},
    {"Convolution", explain_convolution},
    {"LinalgCholeskyEx", explain_factorization},
    {"Cholesky", explain_factorization},
    {"CholeskySolve", explain_factorization},
    {"CholeskyInverse", explain_factorization},
    {"LinalgInvEx", explain_factorization},
    {"LinalgInv", explain_factorization},
    {"Inverse", explain_factorization},
    {"LinalgDet", explain_factorization},
    {"LinalgSlogdet", explain_factorization},
    {"LinalgSolveEx", explain_factorization},
    {"LinalgSolveTriangular", explain_factorization},
    {"LinalgLuFactorEx", explain_factorization},
    {"LinalgQr", explain_factorization},
};

// What the inner op says for itself, told as part of a backward.
Verdict explain_inner(const Context& context) {
  const Family* family = find_family(context.op);
  if (family == nullptr) return {};
  Verdict result = family->explain(context);
  if (result.explanation.empty()) return result;
  result.explanation = "In the backward of " + forward_name(context) + ": " + lower_first(result.explanation);
  if (result.cause == Cause::kOverflow) result.help = advice::kExploding;
  return result;
}

// "layer_norm" of "NativeLayerNorm", "cholesky" of "LinalgCholeskyEx".
std::string friendly(std::string_view node) {
  std::string name;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const auto c = static_cast<unsigned char>(node[i]);
    if (std::isupper(c) != 0 && i > 0 && std::islower(static_cast<unsigned char>(node[i - 1])) != 0) name += '_';
    name += static_cast<char>(std::tolower(c));
  }
  for (std::string_view prefix : {"linalg_", "native_", "foreach_"}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  for (std::string_view suffix : {"_ex", "_kernel"}) {
    if (name.ends_with(suffix)) name.erase(name.size() - suffix.size());
  }
  return name;
}

}  // namespace

std::string forward_name(const Context& context) {
  if (!context.facts.forward_op.empty()) return base_name(context.facts.forward_op);
  return friendly(node_base(context.facts.autograd_node));
}

std::string node_base(std::string_view autograd_node) {
  std::string name(autograd_node);
  if (const auto colon = name.rfind(':'); colon != std::string::npos) name.erase(0, colon + 1);
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) name.pop_back();
  constexpr std::string_view kSuffix = "Backward";
  if (name.size() > kSuffix.size() && name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  return name;
}

Verdict explain_backward(const Context& context) {
  const std::string node = node_base(context.facts.autograd_node);
  if (node.empty()) return {};
  for (const NodeRow& row : kNodes) {
    if (row.node != node) continue;
    if (Verdict result = row.explain(context); !result.empty()) return result;
  }
  if (Verdict result = explain_divisor(context); !result.empty()) return result;
  if (Verdict result = explain_zero_times_infinity(context); !result.empty()) return result;
  return explain_inner(context);
}

}  // namespace sherlorch::explaining
