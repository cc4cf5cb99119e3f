// Ops that make one number out of many: sums, means, products, spreads and norms, judged by the slice that was read.
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

constexpr const char* kEmptyHelp =
    "Skip the step when nothing was selected (if x.numel() > 0), or use x.sum() / max(x.numel(), 1).";

std::string past_the_end(const Context& context, const char* what) {
  return std::string(what) + " passes " + context.out.largest_text() + ", the largest " + context.out.name + ".";
}

bool empty(const Known& x) { return (x.slice() || x.form == Known::Form::kRange) && x.count == 0; }

std::string reduced(const Context& context, const char* name) {
  const Known x = context.self();
  if (x.absent() || x.unread()) return "";
  if (empty(x)) return std::string(name) + " of no elements";
  return std::string(name) + " of " + (x.point() ? "the one value " : "") + values_text(x);
}

// --- sum, mean, cumsum

Verdict opposed(const Known& x) {
  return verdict(Cause::kInvalidOperation,
                 both(x.holds(1), x.holds(-1)) == Sure::kYes || x.slice()
                     ? "The values summed hold infinities of both signs, and inf - inf has no value."
                     : "The operand holds infinities of both signs. Where they are summed, inf - inf has no value.",
                 "Find the op that made the infinities.");
}

Verdict explain_sum(const Context& context) {
  const Known x = context.self();
  if (context.result_nan() && both(x.holds(1), x.holds(-1)) != Sure::kNo) return opposed(x);
  if (context.result_inf() && x.bounded() && !x.point() && x.bad == 0) {
    const bool sure = x.slice() && x.complete && context.out.passes(x.sum);
    const double most = static_cast<double>(x.count) * x.magnitude();
    if (sure || context.out.passes(most)) {
      return verdict(
          Cause::kOverflow, hedge(sure, past_the_end(context, "The sum")),
          "Sum in a wider type (x.sum(dtype=torch.float32), or cumsum likewise), take the mean, or scale down first.");
    }
  }
  return {};
}

Verdict explain_mean(const Context& context) {
  const Known x = context.self();
  if (empty(x)) {
    return verdict(Cause::kInvalidOperation, "The mean of no elements is 0/0: nothing was selected here.", kEmptyHelp);
  }
  return explain_sum(context);
}

std::string sum_subject(const Context& context) { return reduced(context, "sum"); }
std::string mean_subject(const Context& context) { return reduced(context, "mean"); }
std::string cumsum_subject(const Context& context) { return reduced(context, "cumulative sum"); }

// --- products

Verdict explain_prod(const Context& context) {
  const Known x = context.self();
  if (context.result_nan() && both(x.holds(0), x.equals(0)) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation, "A 0 and an infinity are multiplied, and that has no value.",
                   "Find the op that made the infinity.");
  }
  if (context.result_inf() && x.bounded() && x.bad == 0 && x.count > 0 && context.out.known() && x.magnitude() > 1 &&
      static_cast<double>(x.count) * std::log(x.magnitude()) > std::log(context.out.largest)) {
    return verdict(Cause::kOverflow, past_the_end(context, "The product"),
                   "Work in the log domain: x.log().sum(), or take the product in float64.");
  }
  return {};
}
std::string prod_subject(const Context& context) { return reduced(context, "product"); }

// --- var, std

Verdict explain_spread(const Context& context) {
  const Known x = context.self();
  double correction = context.number("correction", 1);
  if (const Known unbiased = context.get({"unbiased"}); unbiased.point()) correction = unbiased.value;
  const std::int64_t size = x.point() ? 1 : x.count;  // a slice of one element is read as a value
  const bool counted =
      x.slice() || x.point() || (x.form == Known::Form::kRange && context.facts.output.counts.numel == 1);
  if (context.result_nan() &&
      (empty(x) || (counted && static_cast<double>(size) <= correction && x.nonfinite() == Sure::kNo))) {
    const std::string why = empty(x) ? "There is nothing to take a spread of: it is 0/0."
                                     : "It divides by n - " + bound_text(correction) + ", and n is " +
                                           std::to_string(size) + ": this is 0/0. One value alone has no spread.";
    return verdict(
        Cause::kInvalidOperation, why,
        "Use correction=0 (unbiased=False), or skip groups and batches of a single element (drop_last=True).");
  }
  if (context.result_nan() && x.holds(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "The mean of values with an infinity is infinite, and inf - inf has no value.",
                   "Find the op that made the infinity.");
  }
  if (context.result_inf() && x.bounded() && x.bad == 0) {
    const double spread = x.max - x.min;
    const bool root = context.op.starts_with("std");
    if (context.out.passes(root ? spread : spread * spread)) {
      return verdict(Cause::kOverflow,
                     past_the_end(context, root ? "The spread" : "The square of the distance to the mean"),
                     advice::overflow(context.out));
    }
  }
  return {};
}
std::string var_subject(const Context& context) { return reduced(context, "variance"); }
std::string std_subject(const Context& context) { return reduced(context, "standard deviation"); }

Verdict explain_correlation(const Context& context) {
  const Known x = context.self();
  if (!context.result_nan() || !x.bounded() || x.bad > 0) return {};
  if (x.min != x.max && x.count > 1) {
    return verdict(Cause::kInvalidOperation,
                   "A correlation divides by the standard deviations. Probably one of the rows is constant, "
                   "so its own is 0.",
                   "Leave out rows that do not vary.");
  }
  return verdict(Cause::kInvalidOperation,
                 "A correlation divides by the standard deviations, and these values do not vary at all.",
                 "Leave out rows that do not vary.");
}

// --- norms

Verdict explain_norm(const Context& context) {
  const Known x = context.self();
  const double p = context.number("ord", context.number("p", 2));
  if (empty(x)) {
    return verdict(Cause::kInvalidOperation, "This norm of no elements has no value.", kEmptyHelp);
  }
  if (!context.result_inf() || !x.bounded() || x.point() || x.bad > 0) return {};
  if (p < 0 && x.equals(0) != Sure::kNo) {
    return verdict(Cause::kDivisionByZero,
                   "A norm of negative order divides by the elements. " + clause(x, "operand", "0"),
                   "Use a positive order, or add an eps.");
  }
  const double n = static_cast<double>(x.count);
  const double most = std::isinf(p) || p == 0 ? x.magnitude() : std::pow(n, 1 / p) * x.magnitude();
  const bool squares = p == 2 && context.out.largest < 1e39 && context.out.largest > 1e30 &&
                       n * x.magnitude() * x.magnitude() > context.out.largest;
  if (!context.out.passes(most) && !squares) return {};
  const std::string what = squares && !context.out.passes(most) ? "The sum of the squares" : "The norm";
  return verdict(
      Cause::kOverflow, what + " passes " + context.out.largest_text() + ", the largest " + context.out.name + ".",
      "Take the norm in a wider type (dtype=torch.float32 or float64), or divide by the largest magnitude first.");
}
std::string norm_subject(const Context& context) { return reduced(context, "norm"); }

}  // namespace

std::span<const Family> reduction_families() {
  static constexpr Family kTable[] = {
      {"sum", explain_sum, sum_subject},
      {"nansum", explain_sum, sum_subject},
      {"sum_to_size", explain_sum, sum_subject},
      {"trace", explain_sum, sum_subject},
      {"cumsum", explain_sum, cumsum_subject},
      {"mean", explain_mean, mean_subject},
      {"nanmean", explain_mean, mean_subject},
      {"median", explain_mean, nullptr},
      {"avg_pool1d", explain_mean, mean_subject},
      {"avg_pool2d", explain_mean, mean_subject},
      {"adaptive_avg_pool2d", explain_mean, mean_subject},
      {"prod", explain_prod, prod_subject},
      {"cumprod", explain_prod, prod_subject},
      {"var", explain_spread, var_subject},
      {"std", explain_spread, std_subject},
      {"var_mean", explain_spread, var_subject},
      {"std_mean", explain_spread, std_subject},
      {"cov", explain_spread, nullptr},
      {"corrcoef", explain_correlation, nullptr},
      {"norm", explain_norm, norm_subject},
      {"frobenius_norm", explain_norm, norm_subject},
  };
  return kTable;
}

}  // namespace sherlorch::explaining
