// Loss functions.
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

constexpr const char* kNothingLeft =
    "Skip the loss when no label is left, or sum (reduction='sum') and divide by max(count, 1).";

bool is_mean(const Context& context) { return context.number("reduction", 1) == 1; }

bool no_elements(const Known& x) { return (x.slice() || x.form == Known::Form::kRange) && x.count == 0; }

Verdict empty_mean(const char* what) {
  return verdict(Cause::kInvalidOperation,
                 std::string("The mean over no ") + what + " is 0/0: nothing was selected here.", kNothingLeft);
}

Verdict bad_target(const Known& target) {
  const bool nan = target.holds_nan() != Sure::kNo;
  return verdict(Cause::kInvalidOperation, std::string("The target holds ") + (nan ? "nan" : "an infinity") + ".",
                 advice::kData);
}

// --- classification

// The loss is a weighted mean over the labels that count. Do any?
Verdict nothing_counts(const Context& context) {
  if (!is_mean(context) || !context.result_nan()) return {};
  const Known target = context.get({"target"});
  const Known weight = context.get({"weight"});
  const double ignored = context.number("ignore_index", -100);
  if (no_elements(target) || no_elements(context.self())) return empty_mean("labels");
  const std::string code = bound_text(ignored);
  if (target.equals(ignored) == Sure::kYes) {
    return verdict(Cause::kInvalidOperation,
                   "Every label is ignore_index (" + code + "), so the mean is over no labels: 0/0.", kNothingLeft);
  }
  if (weight.equals(0) != Sure::kNo && weight.nonfinite() == Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   std::string(weight.equals(0) == Sure::kYes ? "All class weights are 0"
                                                              : "Probably all labels are of classes with weight 0") +
                       ", so the weights that the mean divides by sum up to 0.",
                   "Give every class that occurs a weight above 0.");
  }
  if (context.self().nonfinite() == Sure::kNo && target.unread()) {
    return verdict(Cause::kInvalidOperation,
                   "All scores are finite, so probably every label is ignore_index (" + code +
                       "), and the mean is over no labels: 0/0.",
                   kNothingLeft);
  }
  if (context.self().nonfinite() == Sure::kNo && target.equals(ignored) == Sure::kMaybe && context.element != nullptr) {
    return verdict(Cause::kInvalidOperation,
                   "All scores are finite and ignore_index (" + code +
                       ") is among the labels. Probably no other label "
                       "counts, and the mean is over no labels: 0/0.",
                   kNothingLeft);
  }
  return {};
}

Verdict explain_cross_entropy(const Context& context) {
  const Known scores = context.self();
  const double smoothing = context.number("label_smoothing", 0);
  if (Verdict none = nothing_counts(context); !none.empty()) return none;
  if (scores.holds(1) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "A logit is +inf. The row's largest score is subtracted first, and inf - inf has no value.",
                   "Find the op that made the logit infinite.");
  }
  if (scores.holds(-1) != Sure::kNo && smoothing > 0) {
    return verdict(
        Cause::kInvalidOperation,
        "Label smoothing charges a little for every class, also for those whose logit is -inf: their log "
        "probability is -inf.",
        "Turn label smoothing off where classes are masked, or mask with a large finite number in place of -inf.");
  }
  const Known target = context.get({"target"});
  if (target.operand && !target.operand->dtype.empty() && limits_of(target.operand->dtype).known()) {
    if (target.nonfinite() != Sure::kNo) return bad_target(target);
    if (scores.holds(-1) != Sure::kNo) {
      return verdict(Cause::kInvalidOperation,
                     "Soft targets multiply each log probability. Where a logit is -inf and its target is 0, 0 * -inf "
                     "has no value.",
                     "Mask with a large finite number in place of -inf, or use class indices as targets.");
    }
  }
  if (scores.holds(-1) != Sure::kNo) {
    return verdict(Cause::kDivisionByZero,
                   context.result_inf() && context.has_result
                       ? "A logit is -inf, and a label names that class: its probability is 0, and -log(0) is inf."
                       : "Some logits are -inf: a label names such a class, or a whole row is -inf.",
                   "Check that no label names a masked class.");
  }
  if (scores.bounded() && context.out.passes(scores.max - scores.min)) {
    return verdict(
        Cause::kOverflow,
        "The logits span " + interval_text(scores.min, scores.max) + ", more than " + context.out.name + " can hold.",
        "Compute the loss in float32: cross_entropy(logits.float(), ...).");
  }
  return {};
}

Verdict explain_bce(const Context& context) {
  const Known x = context.self();
  const Known target = context.get({"target"});
  const Known positive = context.get({"pos_weight"});
  if (positive.holds(0) != Sure::kNo) {
    return verdict(
        Cause::kInvalidOperation,
        "pos_weight is infinite. It is multiplied by the target, and 0 * inf has no value for every negative sample.",
        "pos_weight is usually negatives / positives: clamp the number of positives at 1.");
  }
  if (target.nonfinite() != Sure::kNo) return bad_target(target);
  if (no_elements(x) && is_mean(context)) return empty_mean("elements");
  if (x.holds(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "A logit is infinite. The loss multiplies it by the target and by its complement, and 0 * inf and "
                   "inf - inf have no value.",
                   "Find the op that made the logit infinite, or clamp the logits.");
  }
  const Known weight = context.get({"weight"});
  if (weight.holds(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation, "A weight is infinite, and 0 * inf has no value.",
                   "Clamp the count that the weight divides by.");
  }
  return {};
}

Verdict explain_kl(const Context& context) {
  const Known input = context.self();
  const Known target = context.get({"target"});
  const bool log_target = context.number("log_target", 0) != 0;
  if (no_elements(input) && is_mean(context)) return empty_mean("elements");
  if (log_target && context.result_nan() && target.holds(-1) != Sure::kNo) {
    return verdict(
        Cause::kInvalidOperation,
        "With log_target a target of probability 0 is -inf, and exp(-inf) * -inf is 0 times an infinity.",
        "Clamp the log targets at a large finite negative number, or pass probabilities and log_target=False.");
  }
  if (input.holds(-1) != Sure::kNo) {
    return verdict(context.has_result && std::isnan(context.result) ? Cause::kInvalidOperation : Cause::kDivisionByZero,
                   "The input is -inf somewhere: a log probability of 0. It costs an infinity where the target is "
                   "above 0, and 0 * -inf has no value where the target is 0.",
                   "Make the input with log_softmax, not with log of softmax, and mask with a large finite number in "
                   "place of -inf.");
  }
  if (!log_target && context.result_nan() && target.below(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "kl_div takes the log of its target. " + clause(target, "target", "negative"),
                   "The target must be a probability; if it is a log probability, say log_target=True.");
  }
  return {};
}

// --- regression

Verdict explain_regression(const Context& context) {
  const Known x = context.self();
  const Known target = context.get({"target"});
  if ((no_elements(x) || no_elements(target)) && is_mean(context)) return empty_mean("elements");
  if (target.holds_nan() != Sure::kNo) return bad_target(target);
  if (context.result_nan() && both(x.holds(0), target.holds(0)) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation, "Prediction and target are both infinite, and inf - inf has no value.",
                   "Find the op that made the infinity.");
  }
  if (target.holds(0) != Sure::kNo) return bad_target(target);
  if (!x.bounded() || !target.bounded() || !context.out.known()) return {};
  const double gap = std::fmax(x.max - target.min, target.max - x.min);
  const double reach = x.point() && target.point() ? std::fabs(x.value - target.value) : gap;
  const double size = context.op == "mse_loss" ? reach * reach : reach * std::fmax(context.number("delta", 1), 1);
  const double n = static_cast<double>(is_mean(context) || x.point() ? 1 : x.count);
  const bool sums = !x.point() && context.out.passes(size * static_cast<double>(x.count));
  if (!context.out.passes(size * n) && !sums) return {};
  return verdict(Cause::kOverflow,
                 std::string(context.op == "mse_loss" ? "The squared errors" : "The errors") +
                     ", of differences up to " + bound_text(reach) + ", pass " + context.out.largest_text() +
                     ", the largest " + context.out.name + ".",
                 "Normalise the targets, compute the loss in float32, or use a loss that grows linearly (huber_loss).");
}

Verdict explain_poisson(const Context& context) {
  const Known x = context.self();
  const Known target = context.get({"target"});
  if (target.nonfinite() != Sure::kNo) return bad_target(target);
  if (no_elements(x) && is_mean(context)) return empty_mean("elements");
  const bool log_input = context.number("log_input", 1) != 0;
  if (log_input && context.out.known() && x.above(std::log(context.out.largest)) != Sure::kNo) {
    return verdict(Cause::kOverflow,
                   "The input is a log rate, and exp of it is too large. " + clause(x, "input", "too large for exp"),
                   "Clamp the log rate before the loss, or predict the rate itself with softplus and log_input=False.");
  }
  if (!log_input && x.below(-context.number("eps", 1e-8)) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "With log_input=False the log of the rate is taken. " + clause(x, "rate", "negative"),
                   "Make the rate positive with softplus.");
  }
  return {};
}

Verdict explain_gaussian(const Context& context) {
  const Known var = context.get({"var"});
  if (context.number("eps", 1e-6) == 0 && var.equals(0) != Sure::kNo) {
    return verdict(Cause::kDivisionByZero,
                   "The loss divides by the variance and takes its log. " + clause(var, "variance", "0"),
                   "Keep eps above 0, or make the variance with softplus plus a small number.");
  }
  return explain_regression(context);
}

Verdict explain_ctc(const Context& context) {
  const Known scores = context.get({"log_probs"});
  const Known inputs = context.get({"input_lengths"});
  const Known targets = context.get({"target_lengths"});
  if (context.has_result && std::isnan(context.result) && scores.holds(1) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation, "A log probability is +inf.", "Make log_probs with log_softmax.");
  }
  const bool longer = inputs.bounded() && targets.bounded() && targets.max > inputs.min;
  const bool both_points = inputs.point() && targets.point();
  if (both_points ? targets.value > inputs.value : longer) {
    const double most = both_points ? targets.value : targets.max;
    const double room = both_points ? inputs.value : inputs.min;
    return verdict(Cause::kDivisionByZero,
                   "A target may be too long: up to " + bound_text(most) + " labels, for as few as " +
                       bound_text(room) + " frames. No alignment is possible then, and -log(0) is inf.",
                   "Pass zero_infinity=True, or drop samples whose target is longer than their input.");
  }
  if (scores.holds(-1) != Sure::kNo) {
    return verdict(Cause::kDivisionByZero,
                   "Some log probabilities are -inf. If every alignment passes through one, the loss is -log(0), inf.",
                   "Mask with a large finite number in place of -inf, or pass zero_infinity=True.");
  }
  if (context.result_inf() && scores.nonfinite() == Sure::kNo) {
    return verdict(
        Cause::kDivisionByZero,
        "All log probabilities are finite, so probably no alignment is possible: repeated labels need a blank between "
        "them, so a target of n labels with r repeats needs n + r frames. Then -log(0) is inf.",
        "Pass zero_infinity=True, or drop samples whose target is too long for their input.");
  }
  return {};
}

std::string loss_subject(const Context& context) {
  const Known x = context.get({"self", "input", "log_probs"});
  const Known target = context.get({"target"});
  if (no_elements(x) || no_elements(target)) return context.op + " over no elements";
  if (x.point() && target.point()) return context.op + "(" + x.text() + ", " + target.text() + ")";
  const bool labels = context.op == "cross_entropy_loss" || context.op == "nll_loss";
  if (labels && target.equals(context.number("ignore_index", -100)) == Sure::kYes)
    return context.op + " over labels that are all ignored";
  return context.op;
}

}  // namespace

std::span<const Family> loss_families() {
  static constexpr Family kTable[] = {
      {"cross_entropy_loss", explain_cross_entropy, loss_subject},
      {"nll_loss", explain_cross_entropy, loss_subject},
      {"nll_loss_backward", nothing_counts, nullptr},
      {"binary_cross_entropy", explain_bce, loss_subject},
      {"binary_cross_entropy_with_logits", explain_bce, loss_subject},
      {"multilabel_soft_margin_loss", explain_bce, loss_subject},
      {"kl_div", explain_kl, loss_subject},
      {"mse_loss", explain_regression, loss_subject},
      {"l1_loss", explain_regression, loss_subject},
      {"smooth_l1_loss", explain_regression, loss_subject},
      {"huber_loss", explain_regression, loss_subject},
      {"poisson_nll_loss", explain_poisson, loss_subject},
      {"gaussian_nll_loss", explain_gaussian, loss_subject},
      {"ctc_loss", explain_ctc, loss_subject},
  };
  return kTable;
}

}  // namespace sherlorch::explaining
