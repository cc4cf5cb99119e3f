// Ops that optimizers are made of, fused or not, and the gradient scaler.
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

bool optimizing(const Context& context) { return context.facts.phase == Phase::kOptimizer; }

Known own(const Context& context) { return context.get({"self"}); }
Known first(const Context& context) { return context.get({"tensor1"}); }
Known second(const Context& context) { return context.get({"tensor2"}); }

std::string adam_help(const Context& context) {
  std::string help =
      "Use a larger eps (1e-4 in half precision; the default 1e-8 rounds to 0 in float16), or keep float32 master "
      "weights.";
  if (!context.out.float16()) help = "Use a larger eps in the optimizer, or leave out elements whose divisor is 0.";
  return help;
}

// self + value * tensor1 / tensor2
Verdict explain_addcdiv(const Context& context) {
  const Known a = first(context);
  const Known b = second(context);
  if (b.equals(0) != Sure::kNo) {
    const bool nan = context.has_result && std::isnan(context.result);
    if (nan && a.equals(0) == Sure::kNo && a.nonfinite() == Sure::kNo && a.bounded()) {
      // a finite number over 0 is infinite; nan then needs an infinity in self
      if (own(context).infinite() == Sure::kNo) return {};
    }
    std::string why = nan ? "It divides 0 by 0, and that has no value. " : "It divides by 0. ";
    why += clause(b, "divisor", "0");
    if (optimizing(context)) {
      why += " In Adam the divisor is sqrt(exp_avg_sq) + eps: it is 0 where there never was a gradient and eps is 0";
      why += context.out.float16() ? " or rounds to 0 in float16." : ".";
    }
    return verdict(nan ? Cause::kInvalidOperation : Cause::kDivisionByZero, why,
                   optimizing(context) ? adam_help(context) : advice::kDivide);
  }
  if (context.result_inf() && a.point() && b.point() &&
      context.out.passes(context.number("value", 1) * a.value / b.value)) {
    return verdict(Cause::kOverflow, "The quotient is too large for the type: the divisor is tiny.",
                   optimizing(context) ? adam_help(context) : advice::kDivide);
  }
  return {};
}
std::string addcdiv_subject(const Context& context) {
  const Known a = first(context);
  const Known b = second(context);
  if (a.absent() || b.absent()) return "";
  const Known x = own(context);
  const double value = context.number("value", 1);
  return x.text() + " + " + (value == 1 ? "" : format_number(value) + " * ") + a.text() + " / " + b.text();
}

Verdict explain_addcmul(const Context& context) {
  const Known x = own(context);
  const Known a = first(context);
  const Known b = second(context);
  if (context.result_nan() && either(both(a.equals(0), b.infinite()), both(a.infinite(), b.equals(0))) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation, "0 times an infinity has no value.",
                   "Find the op that made the infinity.");
  }
  const double value = std::fabs(context.number("value", 1));
  if (context.result_inf() && a.bounded() && b.bounded() &&
      context.out.passes((x.bounded() ? x.magnitude() : 0) + value * a.magnitude() * b.magnitude())) {
    std::string why = "The product of up to " + bound_text(a.magnitude()) + " and " + bound_text(b.magnitude()) +
                      " passes " + context.out.largest_text() + ", the largest " + context.out.name + ".";
    if (optimizing(context)) why += " Adam squares the gradient here.";
    return verdict(Cause::kOverflow, why,
                   optimizing(context) ? "Clip the gradients, or keep the optimizer state in float32."
                                       : advice::overflow(context.out));
  }
  return {};
}
std::string addcmul_subject(const Context& context) {
  const Known a = first(context);
  const Known b = second(context);
  if (a.absent() || b.absent()) return "";
  const double value = context.number("value", 1);
  return own(context).text() + " + " + (value == 1 ? "" : format_number(value) + " * ") + a.text() + " * " + b.text();
}

Verdict explain_lerp(const Context& context) {
  const Known start = context.get({"self", "tensors1"});
  const Known end = context.get({"end", "tensors1", "other"});
  const Known weight = context.get({"weight", "weights", "scalars"});
  if (context.result_nan() && either(start.infinite(), end.infinite()) != Sure::kNo) {
    return verdict(
        Cause::kInvalidOperation,
        "lerp computes start + weight * (end - start). With an infinity that is inf - inf, or 0 * inf.",
        "Find the op that made the infinity; in a moving average it stays for good, so reset the average too.");
  }
  if (context.result_inf() && start.bounded() && end.bounded() &&
      context.out.passes(std::fmax(std::fabs(end.max - start.min), std::fabs(start.max - end.min)) *
                         std::fmax(1, weight.magnitude()))) {
    return verdict(Cause::kOverflow, "end - start is too large for the type.", advice::overflow(context.out));
  }
  return {};
}
std::string lerp_subject(const Context& context) {
  const Known start = context.get({"self"});
  const Known end = context.get({"end"});
  const Known weight = context.get({"weight", "weights", "scalars"});
  if (start.absent() || end.absent() || weight.absent()) return "";
  return "lerp(" + start.text() + ", " + end.text() + ", " + weight.text() + ")";
}

// Fused steps read parameter, gradient and state at once.
Verdict explain_fused(const Context& context) {
  const Known grad = context.get({"grads", "grad"});
  if (grad.nonfinite() != Sure::kNo) {
    return verdict(
        Cause::kUnknown, "A gradient was not finite already; the step wrote it into the parameter.",
        "Find the backward op that made it; clip_grad_norm_(..., error_if_nonfinite=True) stops before the step.");
  }
  const double eps = context.number("eps", -1);
  const Known square = context.get({"exp_avg_sqs", "state_sums", "exp_avg_sq"});
  if (eps == 0 && square.equals(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "The step divides by sqrt(exp_avg_sq) + eps. exp_avg_sq reaches 0 and eps is 0: this is 0/0 where "
                   "there never was a gradient.",
                   adam_help(context));
  }
  // Of finite numbers, the step can make nan of 0 / 0 only.
  if (eps == 0 && square.overwritten && context.result_nan() && square.nonfinite() == Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "The step divides by sqrt(exp_avg_sq) + eps, and eps is 0. What it read was finite (and has been "
                   "overwritten in place), so this was 0/0: there never was a gradient at this element.",
                   adam_help(context));
  }
  const double rate = context.number("lr", 0);
  if (grad.bounded() && context.out.passes(rate * grad.magnitude())) {
    return verdict(Cause::kOverflow,
                   "The step is too large: a learning rate of " + format_number(rate) + " times a gradient of up to " +
                       bound_text(grad.magnitude()) + " passes " + context.out.largest_text() + ", the largest " +
                       context.out.name + ".",
                   advice::kExploding);
  }
  if (grad.bounded() && eps >= 0 && context.out.passes(grad.magnitude() * grad.magnitude())) {
    return verdict(Cause::kOverflow,
                   "The optimizer squares the gradient, which reaches " + bound_text(grad.magnitude()) +
                       ", and that passes " + context.out.largest_text() + ", the largest " + context.out.name + ".",
                   "Clip the gradients, or keep the optimizer state in float32.");
  }
  return {};
}

Verdict explain_unscale(const Context& context) {
  const Known grad = own(context);
  if (grad.nonfinite() != Sure::kNo) {
    return verdict(Cause::kUnknown,
                   "GradScaler found gradients that are not finite. It skips such a step and lowers its scale; a few "
                   "of them at the start are normal.",
                   "If it happens in every step, trace the backward pass without the scaler.");
  }
  const Known scale = context.get({"inv_scale"});
  if (context.result_inf() && grad.bounded() && scale.bounded() &&
      context.out.passes(grad.magnitude() * scale.magnitude())) {
    return verdict(
        Cause::kOverflow,
        "Unscaling multiplies the gradients by " + format_number(scale.magnitude()) + ", which is too large here.",
        "The scale has shrunk below 1: the gradients were infinite in every step before. Trace the backward pass.");
  }
  return {};
}

}  // namespace

std::span<const Family> optimizer_families() {
  static constexpr Family kTable[] = {
      {"addcdiv", explain_addcdiv, addcdiv_subject},
      {"addcmul", explain_addcmul, addcmul_subject},
      {"lerp", explain_lerp, lerp_subject},
      {"adam", explain_fused, nullptr},
      {"adamw", explain_fused, nullptr},
      {"adagrad", explain_fused, nullptr},
      {"sgd", explain_fused, nullptr},
      {"amp_foreach_non_finite_check_and_unscale", explain_unscale, nullptr},
  };
  return kTable;
}

}  // namespace sherlorch::explaining
