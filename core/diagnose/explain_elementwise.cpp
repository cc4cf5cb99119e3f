// Ops of one operand, element by element: a table of where each has no finite value.
#include <cmath>
#include <vector>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

enum class Made : std::uint8_t { kNan, kInf, kPosInf, kNegInf };

struct Rule {
  std::string_view op;
  Made made;
  Sure (*holds)(const Known&, const Limits&);
  const char* condition;  // completes "the operand is ..."
  Cause cause;
  const char* why;
  const char* help;
};

// below() and above() speak of finite numbers; a domain excludes infinities as well.
Sure under(const Known& x, double low) { return either(x.below(low), x.infinite(-1)); }
Sure outside(const Known& x, double low, double high) {
  return either(x.infinite(), either(x.below(low), x.above(high)));
}
Sure finite_outside(const Known& x, double edge) { return either(x.below(-edge), x.above(edge)); }
Sure is_zero(const Known& x, const Limits&) { return x.equals(0); }
Sure is_negative(const Known& x, const Limits&) { return under(x, 0); }
Sure is_finite_negative(const Known& x, const Limits&) { return x.below(0); }
Sure is_minus_one(const Known& x, const Limits&) { return x.equals(-1); }
Sure is_one(const Known& x, const Limits&) { return x.equals(1); }
Sure is_unit(const Known& x, const Limits&) { return either(x.equals(1), x.equals(-1)); }
Sure below_minus_one(const Known& x, const Limits&) { return under(x, -1); }
Sure below_one(const Known& x, const Limits&) { return under(x, 1); }
Sure beyond_unit(const Known& x, const Limits&) { return outside(x, -1, 1); }
Sure beyond_probability(const Known& x, const Limits&) { return outside(x, 0, 1); }
Sure is_infinite(const Known& x, const Limits&) { return x.infinite(); }
Sure is_minus_infinity(const Known& x, const Limits&) { return x.infinite(-1); }
Sure is_pole(const Known& x, const Limits&) {
  if (x.point()) {
    return std::isfinite(x.value) && x.value <= 0 && x.value == std::trunc(x.value) ? Sure::kYes : Sure::kNo;
  }
  return x.bounded() && x.min <= 0 && std::floor(std::fmin(x.max, 0)) >= x.min ? Sure::kMaybe : Sure::kNo;
}
Sure is_negative_pole(const Known& x, const Limits& limits) {
  return x.equals(0) == Sure::kYes ? Sure::kNo : is_pole(x, limits);
}
// exp and its kin overflow beyond log(largest) in their base; the type decides.
Sure above_log(const Known& x, const Limits& limits) {
  return limits.known() ? x.above(std::log(limits.largest)) : Sure::kNo;
}
Sure above_log2(const Known& x, const Limits& limits) {
  return limits.known() ? x.above(std::log2(limits.largest)) : Sure::kNo;
}
Sure beyond_log(const Known& x, const Limits& limits) {
  if (!limits.known()) return Sure::kNo;
  return finite_outside(x, std::log(limits.largest));
}
Sure beyond_root(const Known& x, const Limits& limits) {
  if (!limits.known()) return Sure::kNo;
  return finite_outside(x, std::sqrt(limits.largest));
}
Sure is_tiny(const Known& x, const Limits& limits) {
  if (!limits.known() || x.equals(0) == Sure::kYes) return Sure::kNo;
  const double edge = 1 / limits.largest;
  return either(both(x.above(0), x.below(edge)), both(x.below(0), x.above(-edge)));
}
Sure is_large(const Known& x, const Limits& limits) {  // x*log(x) passes the largest number
  if (!limits.known()) return Sure::kNo;
  return x.above(limits.largest / std::log(limits.largest));
}

Sure is_near_the_end(const Known& x, const Limits& limits) {
  return limits.known() ? x.above(limits.largest / 7) : Sure::kNo;
}

constexpr auto kInvalid = Cause::kInvalidOperation;
constexpr auto kPole = Cause::kDivisionByZero;
constexpr auto kTooLarge = Cause::kOverflow;

constexpr const char* kLogHelp =
    "Put a small eps inside the log, or clamp first (x.clamp_min(eps)). For the log of a softmax use log_softmax, for "
    "the log of a sigmoid logsigmoid, for the log of a sum of exp logsumexp.";
constexpr const char* kLogNegative =
    "Find out why the operand is negative; if it is only rounding, clamp it at a small eps first.";
constexpr const char* kSqrtHelp =
    "Clamp at 0 before the root. If the operand is a variance taken as mean(x**2) - mean(x)**2, use torch.var: the "
    "difference of two nearly equal numbers can come out just below 0.";
constexpr const char* kRsqrtHelp = "Put a small eps inside the root: torch.rsqrt(x + eps).";
constexpr const char* kExpHelp =
    "Clamp before exp (x.clamp(max=...)), subtract the largest value first, or stay in the log domain (logsumexp, "
    "log_softmax).";
constexpr const char* kUnitHelp =
    "Clamp first, a little inside the limits: x.clamp(-1 + eps, 1 - eps). A cosine can round to just beyond 1; "
    "atan2 is the safer way to an angle.";
constexpr const char* kProbabilityHelp =
    "Clamp first, a little inside (0, 1); torch.logit(x, eps=1e-6) does it itself.";
constexpr const char* kInfiniteHelp = "Find the op that made the infinity, or keep masked entries out of this op.";
constexpr const char* kGammaHelp =
    "Keep the operand above 0: clamp it, or use softplus plus a small eps to produce it.";
constexpr const char* kReciprocalHelp = "Add a small eps or clamp before the reciprocal.";
constexpr const char* kLogZero = "The log goes to -inf as its operand goes to 0.";
constexpr const char* kLogBelow = "The log of a negative number is not a real number.";
constexpr const char* kSine = "An infinity has no angle, so there is no answer.";
constexpr const char* kGate = "At -inf this activation multiplies or divides an infinity by 0 or by another infinity.";

const Rule kRules[] = {
    {"log", Made::kNegInf, is_zero, "0", kPole, kLogZero, kLogHelp},
    {"log", Made::kNan, is_negative, "negative", kInvalid, kLogBelow, kLogNegative},
    {"log2", Made::kNegInf, is_zero, "0", kPole, kLogZero, kLogHelp},
    {"log2", Made::kNan, is_negative, "negative", kInvalid, kLogBelow, kLogNegative},
    {"log10", Made::kNegInf, is_zero, "0", kPole, kLogZero, kLogHelp},
    {"log10", Made::kNan, is_negative, "negative", kInvalid, kLogBelow, kLogNegative},
    {"log1p", Made::kNegInf, is_minus_one, "-1", kPole, "log1p(x) is the log of 1 + x, and that is 0 at -1.",
     "Clamp the operand above -1 first."},
    {"log1p", Made::kNan, below_minus_one, "below -1", kInvalid,
     "log1p(x) is the log of 1 + x, and that is negative below -1.", "Clamp the operand above -1 first."},
    {"logit", Made::kNegInf, is_zero, "0", kPole, "logit(p) is log(p / (1 - p)), and p is 0.", kProbabilityHelp},
    {"logit", Made::kPosInf, is_one, "1", kPole, "logit(p) is log(p / (1 - p)), and 1 - p is 0.", kProbabilityHelp},
    {"logit", Made::kNan, beyond_probability, "outside [0, 1]", kInvalid,
     "logit takes a probability; outside [0, 1] it is the log of a negative number.", kProbabilityHelp},
    {"sqrt", Made::kNan, is_negative, "negative", kInvalid,
     "The square root of a negative number is not a real number.", kSqrtHelp},
    {"rsqrt", Made::kInf, is_zero, "0", kPole, "rsqrt(x) is 1 / sqrt(x), and sqrt(0) is 0.", kRsqrtHelp},
    {"rsqrt", Made::kNan, is_negative, "negative", kInvalid, "rsqrt takes the square root of a negative number.",
     kSqrtHelp},
    {"reciprocal", Made::kInf, is_zero, "0", kPole, "It divides 1 by 0.", kReciprocalHelp},
    {"reciprocal", Made::kInf, is_tiny, "so small that 1/x does not fit", kTooLarge,
     "1 / x is too large for the type: x is nearly 0.", kReciprocalHelp},
    {"exp", Made::kPosInf, above_log, "too large for exp", kTooLarge, "exp grows past the largest number of the type.",
     kExpHelp},
    {"expm1", Made::kPosInf, above_log, "too large for exp", kTooLarge,
     "exp grows past the largest number of the type.", kExpHelp},
    {"exp2", Made::kPosInf, above_log2, "too large for exp2", kTooLarge,
     "2**x grows past the largest number of the type.", kExpHelp},
    {"sinh", Made::kInf, beyond_log, "too large for sinh", kTooLarge,
     "sinh grows like exp, past the largest number of the type.", kExpHelp},
    {"cosh", Made::kPosInf, beyond_log, "too large for cosh", kTooLarge,
     "cosh grows like exp, past the largest number of the type.", kExpHelp},
    {"i0", Made::kPosInf, beyond_log, "too large for i0", kTooLarge,
     "i0 grows like exp, past the largest number of the type.",
     "Use torch.special.i0e, which is scaled, and add |x| back in the log domain."},
    {"i0", Made::kNan, is_infinite, "infinite", kInvalid, "i0 divides one infinity by another there.", kInfiniteHelp},
    {"erfcx", Made::kPosInf, is_finite_negative, "too far below 0", kTooLarge, "erfcx grows like exp(x**2) below 0.",
     kExpHelp},
    {"square", Made::kPosInf, beyond_root, "too large to be squared", kTooLarge,
     "The square is larger than the largest number of the type.", advice::kOverflow},
    {"acos", Made::kNan, beyond_unit, "outside [-1, 1]", kInvalid, "acos takes a cosine, and that lies in [-1, 1].",
     kUnitHelp},
    {"asin", Made::kNan, beyond_unit, "outside [-1, 1]", kInvalid, "asin takes a sine, and that lies in [-1, 1].",
     kUnitHelp},
    {"atanh", Made::kInf, is_unit, "1 or -1", kPole, "atanh goes to infinity at 1 and at -1.", kUnitHelp},
    {"atanh", Made::kNan, beyond_unit, "outside [-1, 1]", kInvalid, "atanh is defined between -1 and 1 only.",
     kUnitHelp},
    {"acosh", Made::kNan, below_one, "below 1", kInvalid, "acosh is defined from 1 upwards only.",
     "Clamp first: x.clamp_min(1 + eps). Distances in hyperbolic space round to just below 1."},
    {"erfinv", Made::kInf, is_unit, "1 or -1", kPole, "erfinv goes to infinity at 1 and at -1.", kUnitHelp},
    {"erfinv", Made::kNan, beyond_unit, "outside [-1, 1]", kInvalid, "erfinv is defined between -1 and 1 only.",
     kUnitHelp},
    {"ndtri", Made::kNegInf, is_zero, "0", kPole, "The normal quantile of probability 0 is -inf.", kProbabilityHelp},
    {"ndtri", Made::kPosInf, is_one, "1", kPole, "The normal quantile of probability 1 is inf.", kProbabilityHelp},
    {"ndtri", Made::kNan, beyond_probability, "outside [0, 1]", kInvalid, "ndtri takes a probability.",
     kProbabilityHelp},
    {"entr", Made::kNegInf, is_finite_negative, "negative", kInvalid, "entr(x) is -inf by definition below 0.",
     kLogNegative},
    {"entr", Made::kNegInf, is_large, "very large", kTooLarge,
     "entr(x) is -x*log(x), and that passes the largest number of the type.", advice::kOverflow},
    {"lgamma", Made::kPosInf, is_pole, "0 or a negative whole number", kPole,
     "The gamma function has poles at 0, -1, -2 and so on.", kGammaHelp},
    {"lgamma", Made::kPosInf, is_large, "very large", kTooLarge,
     "lgamma(x) grows like x*log(x), past the largest number of the type.", advice::kOverflow},
    {"digamma", Made::kInf, is_zero, "0", kPole, "digamma goes to infinity at 0.", kGammaHelp},
    {"digamma", Made::kInf, is_tiny, "nearly 0", kTooLarge,
     "digamma(x) is close to -1/x near 0, too large for the type.", kGammaHelp},
    {"digamma", Made::kNan, is_minus_infinity, "-inf", kInvalid, "digamma has no limit towards -inf.", kInfiniteHelp},
    {"digamma", Made::kNan, is_negative_pole, "a negative whole number", kPole,
     "digamma has poles at the negative whole numbers, with a different sign on either side.", kGammaHelp},
    {"sin", Made::kNan, is_infinite, "infinite", kInvalid, kSine, kInfiniteHelp},
    {"cos", Made::kNan, is_infinite, "infinite", kInvalid, kSine, kInfiniteHelp},
    {"tan", Made::kNan, is_infinite, "infinite", kInvalid, kSine, kInfiniteHelp},
    {"sinc", Made::kNan, is_infinite, "infinite", kInvalid, kSine, kInfiniteHelp},
    {"frac", Made::kNan, is_infinite, "infinite", kInvalid, "frac(x) is x - trunc(x), and inf - inf has no value.",
     kInfiniteHelp},
    {"gelu", Made::kNan, is_infinite, "infinite", kInvalid, kGate, kInfiniteHelp},
    {"silu", Made::kNan, is_minus_infinity, "-inf", kInvalid, kGate, kInfiniteHelp},
    {"mish", Made::kNan, is_minus_infinity, "-inf", kInvalid, kGate, kInfiniteHelp},
    {"hardswish", Made::kNan, is_minus_infinity, "-inf", kInvalid, kGate, kInfiniteHelp},
    {"hardswish", Made::kPosInf, is_near_the_end, "near the end of the type", kTooLarge,
     "hardswish multiplies by up to 6 before it divides by 6.", advice::kOverflow},
    {"softsign", Made::kNan, is_infinite, "infinite", kInvalid,
     "softsign(x) is x / (1 + |x|): an infinity over an infinity.", kInfiniteHelp},
};

bool fits(Made made, const Context& context) {
  if (!context.has_result) return true;
  switch (made) {
    case Made::kNan:
      return std::isnan(context.result);
    case Made::kInf:
      return std::isinf(context.result);
    case Made::kPosInf:
      return context.result == HUGE_VAL;
    case Made::kNegInf:
      return context.result == -HUGE_VAL;
  }
  return false;
}

bool from_infinity(const Rule& rule) { return rule.holds == is_infinite || rule.holds == is_minus_infinity; }

// An in-place op has lost its operand. Where a finite operand has one way only to this result, that was it.
const Rule* by_result(const Context& context) {
  const Rule* only = nullptr;
  for (const Rule& rule : kRules) {
    if (rule.op != context.op || !context.has_result || !fits(rule.made, context) || from_infinity(rule)) continue;
    if (only != nullptr) return nullptr;
    only = &rule;
  }
  return only;
}

Verdict say(const Rule& rule, const Context& context, const Known& x) {
  std::string why = std::string(rule.why) + " " + clause(x, "operand", rule.condition);
  if (rule.cause == kTooLarge && context.out.known()) {
    why += " The largest " + context.out.name + " is " + context.out.largest_text() + ".";
  }
  std::string help = rule.help;
  if (rule.help == kLogHelp && context.out.float16()) help += " In float16 an eps below 6e-8 rounds to 0.";
  return verdict(rule.cause, why, help);
}

// What is not a real number may be a complex one; and of a complex operand only the real part was read.
bool needs_real(const Rule& rule) { return rule.made == Made::kNan && !from_infinity(rule); }

Verdict explain_unary(const Context& context) {
  const Known x = context.self();
  if (x.unread() && x.overwritten) {
    const Rule* rule = by_result(context);
    return rule == nullptr ? Verdict{} : say(*rule, context, x);
  }
  const Rule* best = nullptr;
  Sure how = Sure::kNo;
  for (const Rule& rule : kRules) {
    if (rule.op != context.op || !fits(rule.made, context)) continue;
    if (context.out.complex && needs_real(rule)) continue;
    const Sure sure = rule.holds(x, context.out);
    if (sure > how) {
      best = &rule;
      how = sure;
    }
  }
  return best == nullptr ? Verdict{} : say(*best, context, x);
}

std::string unary_subject(const Context& context) {
  const Known x = context.self();
  if (x.point() || x.bounded()) return context.op + "(" + x.text() + ")";
  if (x.overwritten) return context.op + " of an overwritten value";
  return "";
}

std::vector<Family> make_table() {
  std::vector<Family> table;
  for (const Rule& rule : kRules) {
    if (table.empty() || table.back().op != rule.op) table.push_back({rule.op, explain_unary, unary_subject});
  }
  return table;
}

}  // namespace

std::span<const Family> unary_families() {
  static const std::vector<Family> table = make_table();
  return table;
}

}  // namespace sherlorch::explaining
