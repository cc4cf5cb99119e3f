// Softmax and its kin, and attention: rows of scores.
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

// Is every score of this row -inf?
Sure only_minus_inf(const Known& x) {
  if (x.point()) return x.infinite(-1);
  if (x.slice()) {
    if (!x.all_bad()) return Sure::kNo;
    if (!x.operand || x.operand->counts.bad() == 0) return Sure::kMaybe;
    const FinitenessCounts& counts = x.operand->counts;
    if (counts.neg_inf == 0) return Sure::kNo;
    return counts.nan == 0 && counts.pos_inf == 0 ? Sure::kYes : Sure::kMaybe;
  }
  return x.infinite(-1);
}

Verdict explain_softmax(const Context& context) {
  const Known x = context.self();
  const std::string op = context.op;
  if (context.result_nan()) {
    const Sure dead = only_minus_inf(x);
    if (dead != Sure::kNo && x.holds(1) == Sure::kNo) {
      Verdict result = verdict(
          Cause::kInvalidOperation,
          dead == Sure::kYes ? "Every score of the row is -inf, so there is nothing to share out: the row's "
                               "largest score is subtracted first, and -inf - -inf has no value."
                             : "Some scores are -inf. Probably a whole row of them is, and -inf - -inf has no value.",
          advice::kMaskedRow);
      if (dead == Sure::kYes) {
        result.headline = op + " over a row of only -inf is nan";
        if (context.in_backward()) result.headline.clear();
      }
      return result;
    }
    if (x.holds(1) != Sure::kNo) {
      return verdict(
          Cause::kInvalidOperation,
          "A score is +inf. The row's largest score is subtracted first, and inf - inf has no value.",
          "Find the op that made the score infinite: too large a logit, or a division by a temperature of 0.");
    }
    return {};
  }
  if (op == "log_softmax" && context.result_inf() && x.bounded() && x.bad == 0 && context.out.passes(x.max - x.min)) {
    return verdict(Cause::kOverflow,
                   "The scores of a row span " + interval_text(x.min, x.max) + ", more than " + context.out.name +
                       " can hold: the distance to the largest score overflows.",
                   "Clamp the logits, or run this op in float32.");
  }
  return {};
}

std::string softmax_subject(const Context& context) {
  const Known x = context.self();
  if (only_minus_inf(x) == Sure::kYes) return context.op + " over a row of only -inf";
  if (x.slice() || x.bounded())
    return context.op + (x.slice() ? " over a row of " : " over ") + values_text(x, "score");
  return "";
}

Verdict explain_masked_softmax(const Context& context) {
  const Known x = context.self();
  const Known mask = context.get({"mask"});
  if (context.result_nan() && x.nonfinite() == Sure::kNo && !mask.absent()) {
    const Sure whole = mask.equals(1);
    if (whole != Sure::kNo) {
      return verdict(
          Cause::kInvalidOperation,
          whole == Sure::kYes
              ? "The mask hides every score of the row, so there is nothing to share out."
              : "The scores are finite, so probably the mask hides a whole row: there is nothing to share out.",
          advice::kMaskedRow);
    }
  }
  return explain_softmax(context);
}

Verdict explain_logsumexp(const Context& context) {
  const Known x = context.self();
  if (context.result_inf() && only_minus_inf(x) == Sure::kYes) {
    return verdict(Cause::kUnknown, "Every term is -inf, so the log of their sum is -inf: nothing is possible here.",
                   "Use a large finite negative number in place of -inf. The backward of this row is nan.");
  }
  return {};
}
std::string logsumexp_subject(const Context& context) {
  const Known x = context.self();
  if (only_minus_inf(x) == Sure::kYes) return context.op + " over only -inf";
  return x.slice() ? context.op + " over " + values_text(x) : "";
}

// --- attention

Verdict explain_attention(const Context& context) {
  const Known q = context.get({"query", "src"});
  const Known k = context.get({"key"});
  const Known v = context.get({"value"});
  const Known mask = context.get({"attn_mask", "attn_bias", "mask"});
  for (const Known* known : {&v, &k}) {
    if (known->nonfinite() == Sure::kNo) continue;
    return verdict(Cause::kInvalidOperation,
                   std::string("The ") + (known == &v ? "values" : "keys") +
                       " hold something that is not finite. A weight of 0 does not hide it: 0 times inf or nan has no "
                       "value, so masked "
                       "padding must be finite too.",
                   "Fill the padding with zeros (masked_fill) before attention.");
  }
  if (q.nonfinite() != Sure::kNo) return {};
  if (context.result_nan() && !mask.absent()) {
    // A bool mask says True where a query may look; a float mask is added to the scores.
    const bool boolean = mask.operand && mask.operand->dtype == "torch.bool";
    const Sure dead = boolean ? mask.equals(0) : mask.holds(-1);
    const bool padding = context.facts.op_name.find("transformer") != std::string::npos ||
                         context.facts.op_name.find("multi_head") != std::string::npos;
    if (dead != Sure::kNo || padding) {
      const bool sure = mask.slice() && mask.all_bad();
      return verdict(
          Cause::kInvalidOperation,
          sure ? "The mask hides every key from this query, so softmax runs over a row of only -inf."
               : "All that it read is finite, but for the mask. Where a mask hides every key from a query (a sample "
                 "that is all padding), softmax runs over a row of only -inf, and that has no value.",
          std::string(advice::kMaskedRow) + " For nn.TransformerEncoder, drop samples that are all padding.");
    }
  }
  if (q.bounded() && k.bounded() && context.out.known()) {
    const std::int64_t width = q.operand && !q.operand->shape.empty() ? q.operand->shape.back() : 1;
    if (context.out.passes(static_cast<double>(width) * q.magnitude() * k.magnitude())) {
      return verdict(Cause::kOverflow,
                     "The scores are dot products of " + std::to_string(width) + " products of values up to " +
                         bound_text(q.magnitude()) + " and " + bound_text(k.magnitude()) + ", which can pass " +
                         context.out.largest_text() + ", the largest " + context.out.name + ".",
                     "Normalise queries and keys (QK norm), scale the query first, or use bfloat16.");
    }
  }
  return {};
}
std::string attention_subject(const Context&) { return "attention"; }

}  // namespace

std::span<const Family> softmax_families() {
  static constexpr Family kTable[] = {
      {"softmax", explain_softmax, softmax_subject},
      {"log_softmax", explain_softmax, softmax_subject},
      {"safe_softmax", explain_softmax, softmax_subject},
      {"softmin", explain_softmax, nullptr},
      {"masked_softmax", explain_masked_softmax, softmax_subject},
      {"logsumexp", explain_logsumexp, logsumexp_subject},
      {"logcumsumexp", explain_logsumexp, logsumexp_subject},
      {"attention", explain_attention, attention_subject},
  };
  return kTable;
}

}  // namespace sherlorch::explaining
