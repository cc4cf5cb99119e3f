// Casts, literals, and ops that only move or collect values.
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

// --- casts

Known source(const Context& context) {
  if (context.op == "copy") return context.get({"src", "other"});
  return context.get({"self", "input", "src"});
}

Verdict explain_cast(const Context& context) {
  const Known x = source(context);
  if (!x.bounded() || x.bad > 0 || !context.out.known()) return {};
  const std::string fits = context.out.name + " (largest " + context.out.largest_text() + ")";
  if (context.out.passes(x.magnitude())) {
    Verdict result = verdict(Cause::kCastOverflow, "", "");
    const std::string what =
        x.point() ? format_number(x.value) : "a value of magnitude " + format_number(x.magnitude());
    result.headline = what + " does not fit into " + fits;
    result.headline_is_witness = true;
    result.explanation =
        (x.point() ? "The number" : "The largest number cast") + std::string(" lies beyond the end of ") +
        context.out.name +
        (context.out.has_infinity ? ", so it becomes infinite." : ", which has no infinity, so it becomes nan.");
    result.help = "Keep this tensor in float32, scale or clamp it before the cast, or use bfloat16.";
    if (x.magnitude() > 1e38) {
      result.help =
          "If this is a mask built with torch.finfo(torch.float32).min, build it with the finfo of the type that "
          "it is used in. Else keep it in float32, or clamp before the cast.";
    }
    if (context.in_backward()) {
      result.help =
          "The gradient is too large for the narrow type: lower the loss scale, clip, or keep this layer in float32.";
    }
    return result;
  }
  if (context.out.name == "float8_e8m0fnu" && x.below(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "float8_e8m0fnu holds powers of two only and has no sign. " + clause(x, "operand", "negative"),
                   "Cast scales only, and take their magnitude first.");
  }
  return {};
}

std::string cast_subject(const Context& context) {
  const Known x = source(context);
  if (x.absent() || !(x.point() || x.bounded())) return "";
  return x.text() + " cast to " + (context.out.name.empty() ? "another type" : context.out.name);
}

// --- literals

Known literal(const Context& context) {
  Known value = context.get({"value", "fill_value", "s"});
  if (!value.absent()) return value;
  Known self = context.self();
  if (self.point() && self.operand && self.operand->is_scalar && !std::isfinite(self.value)) return self;
  return context.get({"other"});
}

Verdict explain_literal(const Context& context) {
  const Known value = literal(context);
  if (value.nonfinite() != Sure::kYes) return {};
  Verdict result;
  const bool nan = value.nan() == Sure::kYes;
  result.cause = nan ? Cause::kBadOrigin : Cause::kDeliberateInfinity;
  result.headline = context.op + " writes " +
                    (value.point() ? format_number(value.value)
                     : nan         ? "nan"
                                   : "an infinity");
  result.explanation = "The program itself writes this value; no arithmetic made it.";
  result.help = nan ? "If nan marks missing values, keep them out of the computation with a mask, and check where the "
                      "number comes from."
                    : "If this is a mask, see that no row is masked whole, and that nothing multiplies it by 0.";
  return result;
}

Verdict explain_where(const Context& context) {
  const Known a = context.get({"self"});
  const Known b = context.get({"other"});
  for (const Known* known : {&a, &b}) {
    if (known->operand && known->operand->is_scalar && known->nonfinite() == Sure::kYes) {
      return explain_literal(context);
    }
  }
  return {};
}

std::string where_subject(const Context& context) {
  const Known a = context.get({"self"});
  const Known b = context.get({"other"});
  return a.absent() || b.absent() ? "" : "where(..., " + a.text() + ", " + b.text() + ")";
}

Verdict explain_empty(const Context& context) {
  Verdict result = verdict(Cause::kBadOrigin, "It hands out memory as it is, and nothing has been written into it yet.",
                           "Use torch.zeros, or fill the tensor before its first use.");
  result.headline = context.op + " gave memory that nobody has filled";
  return result;
}

// --- collecting: many values into one place

Verdict explain_scatter(const Context& context) {
  const Known from = context.get({"source", "src", "values", "grad_output", "grad"});
  const Known into = context.get({"self"});
  if (both(from.holds(1), from.holds(-1)) != Sure::kNo && context.result_nan()) {
    return verdict(Cause::kInvalidOperation,
                   "Infinities of both signs are added into one place, and inf - inf has no value.",
                   "Find the op that made the infinities.");
  }
  if (!context.result_inf() || !from.bounded()) return {};
  const double count = from.point() ? 1 : static_cast<double>(from.count);
  const double most = (into.bounded() ? into.magnitude() : 0) + count * from.magnitude();
  if (!context.out.passes(most)) return {};
  return verdict(Cause::kOverflow,
                 "Many values are added into one place: up to " + values_text(from) + ". Their sum passes " +
                     context.out.largest_text() + ", the largest " + context.out.name + ".",
                 "Collect in float32 (cast the target and the values first), or take a mean in place of the sum.");
}

Verdict explain_embedding(const Context& context) {
  const Known weight = context.get({"weight"});
  if (weight.nonfinite() == Sure::kNo) return {};
  return verdict(
      Cause::kBadOrigin, "A row of the embedding table is not finite, and the lookup copied it.",
      "Look for the step that spoiled the table, usually a bad gradient: trace the step before, optimizer included.");
}

Verdict explain_renorm(const Context& context) {
  const Known x = context.self();
  if (x.nonfinite() == Sure::kNo) return {};
  return verdict(Cause::kInvalidOperation, "A row with an infinity has an infinite norm, and inf / inf has no value.",
                 "Find the op that put the infinity into the weight.");
}

Verdict explain_dropout(const Context& context) {
  const Known x = context.self();
  const double keep = 1 - context.number("p", 0);
  if (context.result_nan() && x.infinite() != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "Dropout multiplies what it drops by 0, and 0 times an infinity has no value.",
                   "Find the op that made the infinity, or apply the mask after dropout.");
  }
  if (context.result_inf() && x.bounded() && keep > 0 && context.out.passes(x.magnitude() / keep)) {
    return verdict(Cause::kOverflow,
                   "Dropout scales what it keeps by 1 / (1 - p), here " + format_number(1 / keep) +
                       ", and that passes " + context.out.largest_text() + ", the largest " + context.out.name + ".",
                   advice::overflow(context.out));
  }
  return {};
}

// Weighted sums of neighbours: resizing and sampling of images.
Verdict explain_interpolate(const Context& context) {
  const Known x = context.get({"self", "input"});
  const Known grid = context.get({"grid"});
  if (grid.nonfinite() != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "The sampling grid holds a value that is not finite, so it points nowhere.",
                   "Check how the grid or flow is computed, and clamp it.");
  }
  if (context.result_nan() && x.infinite() != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "Each output is a weighted sum of neighbours. A weight of 0 times an infinite neighbour, or "
                   "inf - inf, has no value.",
                   "Replace the infinities before resizing, or resize with mode='nearest'.");
  }
  if (context.result_inf() && x.bounded() && context.out.passes(2 * x.magnitude())) {
    return verdict(Cause::kOverflow,
                   "Interpolation can overshoot its neighbours (bicubic does), which already lie near " +
                       context.out.largest_text() + ", the largest " + context.out.name + ".",
                   advice::overflow(context.out));
  }
  return {};
}

}  // namespace

std::span<const Family> movement_families() {
  static constexpr Family kTable[] = {
      {"to", explain_cast, cast_subject},
      {"to_copy", explain_cast, cast_subject},
      {"half", explain_cast, cast_subject},
      {"bfloat16", explain_cast, cast_subject},
      {"float", explain_cast, cast_subject},
      {"type", explain_cast, cast_subject},
      {"type_as", explain_cast, cast_subject},
      {"autocast_to_reduced_precision", explain_cast, cast_subject},
      {"copy", explain_cast, cast_subject},
      {"masked_fill", explain_literal, nullptr},
      {"fill", explain_literal, nullptr},
      {"full", explain_literal, nullptr},
      {"full_like", explain_literal, nullptr},
      {"new_full", explain_literal, nullptr},
      {"scalar_tensor", explain_literal, nullptr},
      {"constant_pad_nd", explain_literal, nullptr},
      {"index_fill", explain_literal, nullptr},
      {"where", explain_where, where_subject},
      {"empty", explain_empty, nullptr},
      {"empty_like", explain_empty, nullptr},
      {"empty_strided", explain_empty, nullptr},
      {"new_empty", explain_empty, nullptr},
      {"resize", explain_empty, nullptr},
      {"index_add", explain_scatter, nullptr},
      {"scatter_add", explain_scatter, nullptr},
      {"scatter_reduce", explain_scatter, nullptr},
      {"index_put", explain_scatter, nullptr},
      {"put", explain_scatter, nullptr},
      {"segment_reduce", explain_scatter, nullptr},
      {"embedding_dense_backward", explain_scatter, nullptr},
      {"embedding", explain_embedding, nullptr},
      {"embedding_bag", explain_embedding, nullptr},
      {"renorm", explain_renorm, nullptr},
      {"embedding_renorm", explain_renorm, nullptr},
      {"dropout", explain_dropout, nullptr},
      {"upsample_bilinear2d", explain_interpolate, nullptr},
      {"upsample_bicubic2d", explain_interpolate, nullptr},
      {"upsample_linear1d", explain_interpolate, nullptr},
      {"upsample_trilinear3d", explain_interpolate, nullptr},
      {"upsample_bilinear2d_aa", explain_interpolate, nullptr},
      {"upsample_bicubic2d_aa", explain_interpolate, nullptr},
      {"grid_sampler", explain_interpolate, nullptr},
      {"grid_sampler_2d", explain_interpolate, nullptr},
      {"grid_sampler_3d", explain_interpolate, nullptr},
  };
  return kTable;
}

}  // namespace sherlorch::explaining
