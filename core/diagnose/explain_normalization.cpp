// Layers that divide by a spread or a length.
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

double eps_of(const Context& context, double otherwise) { return context.number("eps", otherwise); }

// "-inf", "inf", "infinities": what a bad input holds.
std::string held(const Known& x) {
  if (x.holds(-1) != Sure::kNo && x.holds(1) == Sure::kNo) return "-inf";
  if (x.holds(1) != Sure::kNo && x.holds(-1) == Sure::kNo) return "inf";
  return "infinities";
}

Verdict explain_norm_layer(const Context& context) {
  const Known x = context.self();
  const bool centred = context.op != "rms_norm";
  if (x.holds(0) != Sure::kNo) {
    Verdict result =
        verdict(Cause::kInvalidOperation,
                centred ? "The mean of values with an infinity is infinite, and inf - inf has no value: one bad value "
                          "spoils its whole group."
                        : "The mean square of values with an infinity is infinite, and inf / inf has no value.",
                "Find the op that made the infinity; in half precision it is often the layer just before.");
    if (context.result_nan()) result.headline = context.op + " got " + held(x) + " and made nan";
    return result;
  }
  if (!x.bounded() || x.bad > 0) return {};
  const Known gain = context.get({"weight"});
  const double spread = centred ? x.max - x.min : x.magnitude();
  // Statistics of half types are taken in float32.
  const Limits wide = context.out.largest < 1e39 ? limits_of("float32") : context.out;
  if (spread == 0 && eps_of(context, 1e-5) == 0) {
    return verdict(Cause::kInvalidOperation,
                   centred ? "All values are equal, so their variance is 0, and eps is 0: this is 0/0."
                           : "All values are 0 and eps is 0: this is 0/0.",
                   "Use an eps above 0 (1e-5 is the default).");
  }
  if (wide.passes(spread * spread)) {
    return verdict(Cause::kOverflow,
                   "Values up to " + bound_text(x.magnitude()) + " are squared for the " +
                       (centred ? "variance" : "mean square") + ", which probably passes " + wide.largest_text() +
                       ", the largest " + wide.name + ".",
                   advice::kExploding);
  }
  if (context.result_inf() && gain.bounded() &&
      context.out.passes(gain.magnitude() * std::sqrt(static_cast<double>(x.count)))) {
    return verdict(Cause::kOverflow,
                   "The normalised values are multiplied by a weight of up to " + bound_text(gain.magnitude()) +
                       ", which passes the largest " + context.out.name + ".",
                   advice::overflow(context.out));
  }
  return {};
}

Verdict explain_batch_norm(const Context& context) {
  const Known var = context.get({"running_var"});
  const Known mean = context.get({"running_mean"});
  const bool training = context.number("training", context.number("use_input_stats", 0)) != 0;
  if (!training && either(var.nonfinite(), mean.nonfinite()) != Sure::kNo) {
    return verdict(
        Cause::kBadOrigin,
        "A running statistic of this layer is not finite: an earlier batch spoiled it, or it was loaded so.",
        "Reset the statistics (reset_running_stats) or reload the checkpoint, and find the batch that spoiled them.");
  }
  if (!training && var.below(-eps_of(context, 1e-5)) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "running_var holds a negative number, and its square root is taken. " +
                       clause(var, "running variance", "negative"),
                   "A variance is never negative: check how the statistics were loaded or averaged.");
  }
  if (!training && eps_of(context, 1e-5) == 0 && var.equals(0) != Sure::kNo) {
    return verdict(Cause::kDivisionByZero,
                   "running_var reaches 0 and eps is 0. " + clause(var, "running variance", "0"),
                   "Use an eps above 0 (1e-5 is the default).");
  }
  return explain_norm_layer(context);
}

std::string layer_subject(const Context& context) {
  const Known x = context.self();
  if (x.holds(0) != Sure::kNo || !x.bounded()) return "";
  return context.op + " of " + values_text(x);
}

// --- lengths and distances

Verdict explain_weight_norm(const Context& context) {
  const Known v = context.get({"v", "self"});
  if (context.result_nan() && v.equals(0) != Sure::kNo) {
    return verdict(
        Cause::kInvalidOperation,
        std::string("weight_norm gives g * v / |v| and has no eps. ") +
            (v.equals(0) == Sure::kYes ? "Here v is all 0, so this is 0/0."
                                       : "Probably one filter of v is all 0, so this is 0/0."),
        "Initialise v away from 0, prune whole filters by g in place of v, or remove weight_norm before inference.");
  }
  if (v.holds(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation, "v holds an infinity, and inf / inf has no value.",
                   "Find the step that spoiled the weight.");
  }
  return {};
}

Known first_of(const Context& context) { return context.get({"x1", "self", "input1"}); }
Known second_of(const Context& context) { return context.get({"x2", "other", "input2"}); }

Verdict explain_cosine(const Context& context) {
  const Known a = first_of(context);
  const Known b = second_of(context);
  if (either(a.holds(0), b.holds(0)) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "A vector with an infinity has an infinite length, and inf / inf has no value.",
                   "Find the op that made the infinity.");
  }
  const double eps = eps_of(context, 1e-8);
  const bool lost = eps == 0 || (context.out.smallest > 0 && eps < context.out.smallest / 2);
  if (lost && either(a.equals(0), b.equals(0)) != Sure::kNo) {
    const bool sure = either(a.equals(0), b.equals(0)) == Sure::kYes;
    return verdict(
        Cause::kInvalidOperation,
        std::string(sure ? "A vector is all 0, so its length is 0" : "Probably a vector is all 0, so its length is 0") +
            (eps == 0 ? " and eps is 0: this is 0/0."
                      : ", and eps = " + format_number(eps) + " rounds to 0 in " + context.out.name + ": this is 0/0."),
        "Use a larger eps (1e-6 in half precision), or compute the cosine in float32.");
  }
  if (context.out.known() &&
      context.out.passes(std::fmax(a.magnitude(), b.magnitude()) * std::fmax(a.magnitude(), b.magnitude()))) {
    return verdict(Cause::kOverflow,
                   "The vectors hold values up to " + bound_text(std::fmax(a.magnitude(), b.magnitude())) +
                       ", and their squares pass the largest " + context.out.name + ".",
                   "Normalise in float32 first, or scale the vectors down.");
  }
  return {};
}

Verdict explain_distance(const Context& context) {
  const Known a = first_of(context);
  const Known b = second_of(context);
  if (context.result_nan() && either(a.holds(0), b.holds(0)) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation, "Points with an infinity have no distance: inf - inf has no value.",
                   "Find the op that made the infinity.");
  }
  if (!a.bounded() || !b.bounded()) return {};
  const double gap = std::fmax(a.max, b.max) - std::fmin(a.min, b.min);
  const double size = a.point() || b.point() ? std::fabs(a.value - b.value) : gap;
  const Limits& limits = context.out;
  if (limits.passes(size * size) || (limits.largest > 1e30 && limits.largest < 1e39 && size > 1e19)) {
    return verdict(Cause::kOverflow,
                   "The squares of the differences, which reach " + bound_text(size) + ", pass " +
                       limits.largest_text() + ", the largest " + limits.name + ".",
                   "Normalise the points first, or compute distances in float32 or float64.");
  }
  return {};
}

}  // namespace

std::span<const Family> normalization_families() {
  static constexpr Family kTable[] = {
      {"layer_norm", explain_norm_layer, layer_subject},
      {"group_norm", explain_norm_layer, layer_subject},
      {"rms_norm", explain_norm_layer, layer_subject},
      {"instance_norm", explain_batch_norm, layer_subject},
      {"batch_norm", explain_batch_norm, layer_subject},
      {"local_response_norm", explain_norm_layer, nullptr},
      {"weight_norm", explain_weight_norm, nullptr},
      {"cosine_similarity", explain_cosine, nullptr},
      {"cosine_embedding_loss", explain_cosine, nullptr},
      {"pairwise_distance", explain_distance, nullptr},
      {"cdist", explain_distance, nullptr},
      {"pdist", explain_distance, nullptr},
      {"dist", explain_distance, nullptr},
  };
  return kTable;
}

}  // namespace sherlorch::explaining
