// Ops of two operands, element by element. Every statement is checked against both.
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

constexpr const char* kInfMeets =
    "Find the op that made the infinity; if it is a mask, add or multiply it in once only, "
    "or use masked_fill or torch.where in its place.";

Known left(const Context& context) { return context.self(); }
Known right(const Context& context) {
  return context.get({"other", "exponent", "scalar", "scalars", "tensor", "y", "value"});
}

std::string infix(const Context& context, const char* sign) {
  const Known a = left(context);
  const Known b = right(context);
  if (a.absent() && b.absent()) return "";
  return a.text() + " " + sign + " " + b.text();
}

std::string limit_note(const Context& context) {
  return context.out.known() ? " The largest " + context.out.name + " is " + context.out.largest_text() + "." : "";
}

// True if a computed magnitude does not fit; of operands known by their range only, this is a bound.
bool too_large(const Context& context, const Known& a, const Known& b, double magnitude) {
  return context.result_inf() && a.bounded() && b.bounded() && context.out.passes(magnitude);
}

bool exact(const Known& a, const Known& b) { return a.point() && b.point(); }

// --- addition and subtraction

Verdict explain_sum(const Context& context, double sign) {
  Known a = left(context);
  Known b = right(context);
  const double alpha = context.number("alpha", 1) * sign;
  if (context.has_result && std::isnan(context.result)) {
    const int same = alpha < 0 ? 1 : -1;  // the sign of b that cancels +inf of a
    const Sure opposed = either(both(a.infinite(1), b.infinite(same)), both(a.infinite(-1), b.infinite(-same)));
    if (opposed == Sure::kNo) return {};
    const char* why = opposed == Sure::kYes
                          ? "Two infinities that cancel have no value: inf - inf is not a number."
                          : "Both operands hold infinities. Where two of them cancel (inf - inf) there is no value.";
    return verdict(Cause::kInvalidOperation, why, kInfMeets);
  }
  if (!context.result_inf()) return {};
  const double scaled = std::fabs(alpha);
  const double size = exact(a, b) ? std::fabs(a.value + alpha * b.value) : a.magnitude() + scaled * b.magnitude();
  if (too_large(context, a, b, size)) {
    std::string help = advice::overflow(context.out);
    if (a.magnitude() > context.out.largest * 0.99 || b.magnitude() > context.out.largest * 0.99) {
      help =
          "If these are masks filled with the smallest number (torch.finfo(dtype).min), combine the masks before "
          "filling, or clamp the sum: two of them added give -inf. Else: " +
          help;
    }
    if (context.facts.phase == Phase::kOptimizer) help = advice::kExploding;
    return verdict(Cause::kOverflow, hedge(exact(a, b), "The sum is too large for the type.") + limit_note(context),
                   help);
  }
  if (a.overwritten && b.bounded() && context.has_result) {
    std::string why = "One operand was overwritten in place. The other is " + b.text() +
                      (alpha == 1 ? "" : " (times " + format_number(alpha) + ")") +
                      ", which is finite, so the sum passed the largest number of the type." + limit_note(context);
    return verdict(Cause::kOverflow, why,
                   context.facts.phase == Phase::kOptimizer ? advice::kExploding : advice::overflow(context.out));
  }
  return {};
}

Verdict explain_add(const Context& context) { return explain_sum(context, 1); }
Verdict explain_sub(const Context& context) { return explain_sum(context, -1); }

std::string add_subject(const Context& context) {
  const double alpha = context.number("alpha", 1);
  return infix(context, alpha == 1 ? "+" : ("+ " + format_number(alpha) + " *").c_str());
}
std::string sub_subject(const Context& context) {
  const double alpha = context.number("alpha", 1);
  return infix(context, alpha == 1 ? "-" : ("- " + format_number(alpha) + " *").c_str());
}
std::string rsub_subject(const Context& context) {
  const Known a = left(context);
  const Known b = right(context);
  return a.absent() || b.absent() ? "" : b.text() + " - " + a.text();
}

// --- multiplication

std::string clipping_note(const Context& context, const Known& b) {
  if (!context.listed || !b.point()) return "";
  if (b.value == 0)
    return " A factor of 0 over a list of gradients is what clip_grad_norm_ gives when the total norm is inf.";
  if (std::isnan(b.value))
    return " A factor of nan over a list of gradients is what clip_grad_norm_ gives when the total norm is nan.";
  return "";
}

Verdict explain_mul(const Context& context) {
  const Known a = left(context);
  const Known b = right(context);
  if (context.result_nan()) {
    const Sure zero_inf = either(both(a.equals(0), b.infinite()), both(a.infinite(), b.equals(0)));
    if (zero_inf != Sure::kNo) {
      std::string why = zero_inf == Sure::kYes
                            ? "0 times an infinity has no value."
                            : "One operand holds an infinity, the other reaches 0. Where they meet, 0 times "
                              "an infinity has no value.";
      const std::string clip = clipping_note(context, b);
      const char* help =
          clip.empty() ? "Multiplying by a 0/1 mask does not remove an inf or nan: use torch.where or masked_fill. "
                         "For p * log(p) use torch.special.entr or xlogy."
                       : "Find the gradient that became infinite first; clip_grad_norm_(..., "
                         "error_if_nonfinite=True) stops there.";
      return verdict(Cause::kInvalidOperation, why + clip, help);
    }
    if (b.nan() == Sure::kYes && context.listed) {
      return verdict(
          Cause::kUnknown, "The factor is nan already and spoils every element." + clipping_note(context, b),
          "Find the gradient that became nan first; clip_grad_norm_(..., error_if_nonfinite=True) stops there.");
    }
  }
  if (too_large(context, a, b, a.magnitude() * b.magnitude())) {
    std::string help = advice::overflow(context.out);
    if (context.facts.phase == Phase::kBackward) help = advice::kExploding;
    if (context.out.float16() && (b.equals(65536) == Sure::kYes || a.equals(65536) == Sure::kYes)) {
      help =
          "65536 is the first scale of GradScaler and does not fit into float16: scale a float32 loss, not a half one.";
    }
    return verdict(Cause::kOverflow, hedge(exact(a, b), "The product is too large for the type.") + limit_note(context),
                   help);
  }
  if (a.overwritten && b.bounded() && context.has_result && std::isinf(context.result)) {
    return verdict(Cause::kOverflow,
                   "One factor was overwritten in place. The other is " + b.text() +
                       ", which is finite, so the product passed the largest number of the type." + limit_note(context),
                   advice::overflow(context.out));
  }
  return {};
}

std::string mul_subject(const Context& context) { return infix(context, "*"); }

// --- division

std::string divide_help(const Context& context) {
  std::string help = advice::kDivide;
  if (context.facts.output.shape.empty()) help += " If the divisor is a count or the sum of a mask, clamp it at 1.";
  if (context.out.float16()) help += " In float16 an eps below 6e-8 rounds to 0.";
  return help;
}

Verdict divided_by_zero(const Context& context, const Known& a, const Known& b) {
  const bool nan = context.has_result && std::isnan(context.result);
  if (nan) {
    const Sure zero = both(a.equals(0), b.equals(0));
    const bool lost = a.overwritten && b.equals(0) == Sure::kYes;
    if (zero == Sure::kNo && !lost) return {};
    std::string why = "0 / 0 has no value.";
    if (zero == Sure::kMaybe) why = "Both ranges include 0, so probably this is 0 / 0, which has no value.";
    if (lost) why = "The divisor is 0. The dividend was overwritten in place; from the result it was 0 too.";
    return verdict(Cause::kInvalidOperation, why, divide_help(context));
  }
  if (b.equals(0) == Sure::kNo || a.equals(0) == Sure::kYes || a.nonfinite() == Sure::kYes) return {};
  std::string why = "A number divided by 0 is infinite. " + clause(b, "divisor", "0");
  return verdict(Cause::kDivisionByZero, why, divide_help(context));
}

Verdict explain_div(const Context& context) {
  const Known a = left(context);
  const Known b = right(context);
  if (Verdict zero = divided_by_zero(context, a, b); !zero.empty()) {
    const bool tiny_range = !b.point() && b.equals(0) == Sure::kMaybe;
    if (!tiny_range || zero.cause == Cause::kInvalidOperation) return zero;
    zero.explanation += " A divisor close to 0 would do as well.";
    return zero;
  }
  if (context.result_nan() && both(a.infinite(), b.infinite()) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   both(a.infinite(), b.infinite()) == Sure::kYes
                       ? "An infinity divided by an infinity has no value."
                       : "Both operands hold infinities. Where they meet, the quotient has no value.",
                   "Find the op that made the infinities. In a softmax written by hand, subtract the row's largest "
                   "score before exp.");
  }
  if (a.point() && b.point() && std::isfinite(b.value) && b.value != 0 && too_large(context, a, b, a.value / b.value)) {
    return verdict(Cause::kOverflow,
                   "The divisor is so small that the quotient is too large for the type." + limit_note(context),
                   divide_help(context));
  }
  return {};
}

// Rounding down goes through the remainder.
Verdict explain_floor_divide(const Context& context) {
  if (Verdict result = explain_div(context); !result.empty()) return result;
  if (context.result_nan() && both(left(context).infinite(), right(context).finite()) == Sure::kYes) {
    return verdict(Cause::kInvalidOperation, "floor_divide takes the remainder on the way, and an infinity has none.",
                   kInfMeets);
  }
  return {};
}

std::string div_subject(const Context& context) { return infix(context, "/"); }
std::string floor_divide_subject(const Context& context) { return infix(context, "//"); }
std::string remainder_subject(const Context& context) { return infix(context, "%"); }
std::string fmod_subject(const Context& context) {
  const Known a = left(context);
  const Known b = right(context);
  return a.absent() || b.absent() ? "" : "fmod(" + a.text() + ", " + b.text() + ")";
}

Verdict explain_remainder(const Context& context) {
  const Known a = left(context);
  const Known b = right(context);
  if (either(a.nan(), b.nan()) == Sure::kYes) return {};
  if (b.equals(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation, "There is no remainder of a division by 0. " + clause(b, "divisor", "0"),
                   advice::kDivide);
  }
  if (a.infinite() == Sure::kYes) {
    return verdict(Cause::kInvalidOperation, "An infinity has no remainder.", kInfMeets);
  }
  return {};
}

// --- powers

Verdict explain_pow(const Context& context) {
  const Known x = left(context);
  const Known p = right(context);
  const bool whole = p.point() && p.value == std::trunc(p.value);
  if (context.result_inf() && both(x.equals(0), p.below(0)) != Sure::kNo) {
    return verdict(Cause::kDivisionByZero, "0 to a negative power is 1 / 0. " + clause(x, "base", "0"),
                   "Add a small eps to the base, or clamp it above 0.");
  }
  if (context.result_nan() && !context.out.complex && !whole) {
    const Sure below = both(x.below(0), p.finite());
    if (below != Sure::kNo && !p.absent()) {
      return verdict(
          Cause::kInvalidOperation,
          "A negative number to a fractional power is not a real number. " + clause(x, "base", "negative"),
          "Clamp the base at 0, or take sign(x) * x.abs()**p (with an eps inside: its slope at 0 is infinite).");
    }
  }
  if (x.point() && p.point()) {
    if (context.result_inf() && std::isfinite(x.value) && std::isfinite(p.value) &&
        context.out.passes(std::pow(x.value, p.value))) {
      return verdict(Cause::kOverflow, "The power is too large for the type." + limit_note(context),
                     advice::overflow(context.out));
    }
  } else if (context.result_inf() && x.bounded() && p.bounded() &&
             context.out.passes(std::fmax(std::pow(x.magnitude(), p.magnitude()),
                                          x.magnitude() > 0 ? std::pow(x.magnitude(), p.min) : 0))) {
    return verdict(Cause::kOverflow, "Probably the power is too large for the type." + limit_note(context),
                   advice::overflow(context.out));
  }
  return {};
}

std::string pow_subject(const Context& context) {
  const std::string text = infix(context, "**");  // -2 ** 0.5 would read as -(2 ** 0.5)
  return text.starts_with('-') ? "(" + left(context).text() + ")" + text.substr(left(context).text().size()) : text;
}

// --- the rest

Verdict explain_xlogy(const Context& context) {
  const bool one_plus = context.op == "xlog1py";
  const double edge = one_plus ? -1 : 0;
  const Known x = left(context);
  const Known y = right(context);
  const std::string what = one_plus ? "x * log(1 + y)" : "x * log(y)";
  if (context.result_inf() && y.equals(edge) != Sure::kNo && x.equals(0) != Sure::kYes && x.nonfinite() != Sure::kYes) {
    return verdict(Cause::kDivisionByZero,
                   "It is " + what + ", and the log goes to -inf there. " +
                       clause(y, "operand of the log", one_plus ? "-1" : "0") +
                       " Only a factor x of 0 makes the product 0.",
                   "Clamp the second operand above " + bound_text(edge) + " first.");
  }
  if (context.result_nan() && either(y.below(edge), y.infinite(-1)) != Sure::kNo && x.nan() != Sure::kYes) {
    return verdict(Cause::kInvalidOperation,
                   "It is " + what + ", the log of a negative number. " +
                       clause(y, "operand of the log", one_plus ? "below -1" : "negative"),
                   "Clamp the second operand above " + bound_text(edge) + " first.");
  }
  if (context.result_inf() && exact(x, y) && std::isfinite(x.value) && std::isfinite(y.value) &&
      context.out.passes(x.value * (one_plus ? std::log1p(y.value) : std::log(y.value)))) {
    return verdict(Cause::kOverflow, what + " is too large for the type." + limit_note(context),
                   advice::overflow(context.out));
  }
  return {};
}

std::string call_subject(const Context& context) {
  const Known a = left(context);
  const Known b = right(context);
  return a.absent() || b.absent() ? "" : context.op + "(" + a.text() + ", " + b.text() + ")";
}

Verdict explain_logaddexp(const Context& context) {
  const Known a = left(context);
  const Known b = right(context);
  if (context.has_result && context.result == -HUGE_VAL && both(a.infinite(-1), b.infinite(-1)) == Sure::kYes) {
    return verdict(Cause::kUnknown, "Both operands are -inf, and so is the log of the sum: nothing is possible here.",
                   "Use a large finite negative number for impossible paths in place of -inf. The backward of this "
                   "element is nan.");
  }
  return {};
}

Verdict explain_hypot(const Context& context) {
  const Known a = left(context);
  const Known b = right(context);
  if (too_large(context, a, b, std::hypot(a.magnitude(), b.magnitude()))) {
    return verdict(Cause::kOverflow, hedge(exact(a, b), "The length is too large for the type.") + limit_note(context),
                   advice::overflow(context.out));
  }
  return {};
}

Verdict explain_ldexp(const Context& context) {
  const Known a = left(context);
  const Known b = right(context);
  const double factor = b.bounded() ? std::exp2(b.point() ? b.value : b.max) : 0;
  if (context.result_nan() && a.equals(0) != Sure::kNo && context.out.passes(factor)) {
    return verdict(Cause::kInvalidOperation,
                   "2**n is too large for the type, and 0 times an infinity has no value." + limit_note(context),
                   advice::overflow(context.out));
  }
  if (too_large(context, a, b, a.magnitude() * std::exp2(b.point() ? b.value : b.max))) {
    return verdict(Cause::kOverflow, hedge(exact(a, b), "x * 2**n is too large for the type.") + limit_note(context),
                   advice::overflow(context.out));
  }
  return {};
}

Verdict explain_polygamma(const Context& context) {
  const Known x = left(context);
  const Sure pole =
      x.point() ? (std::isfinite(x.value) && x.value <= 0 && x.value == std::trunc(x.value) ? Sure::kYes : Sure::kNo)
                : either(x.equals(0), x.below(0));
  if (pole == Sure::kNo) return {};
  return verdict(Cause::kDivisionByZero,
                 "polygamma has poles at 0 and the negative whole numbers. " + clause(x, "operand", "one of them"),
                 "Keep the operand above 0: clamp it, or make it with softplus plus eps.");
}

std::string polygamma_subject(const Context& context) {
  const Known x = left(context);
  return x.absent() ? "" : "polygamma(" + bound_text(context.number("n", 1)) + ", " + x.text() + ")";
}

Verdict explain_igamma(const Context& context) {
  const Known a = left(context);
  const Known x = right(context);
  const Sure outside = either(a.below(0), x.below(0));
  if (outside == Sure::kNo) return {};
  return verdict(Cause::kInvalidOperation,
                 "The incomplete gamma function takes no negative numbers. " +
                     clause(a.below(0) != Sure::kNo ? a : x, "operand", "negative"),
                 "Clamp both operands above 0.");
}

}  // namespace

std::span<const Family> arithmetic_families() {
  static constexpr Family kTable[] = {
      {"add", explain_add, add_subject},
      {"sub", explain_sub, sub_subject},
      {"rsub", explain_sub, rsub_subject},
      {"mul", explain_mul, mul_subject},
      {"div", explain_div, div_subject},
      {"floor_divide", explain_floor_divide, floor_divide_subject},
      {"remainder", explain_remainder, remainder_subject},
      {"fmod", explain_remainder, fmod_subject},
      {"pow", explain_pow, pow_subject},
      {"xlogy", explain_xlogy, call_subject},
      {"xlog1py", explain_xlogy, call_subject},
      {"logaddexp", explain_logaddexp, call_subject},
      {"logaddexp2", explain_logaddexp, call_subject},
      {"hypot", explain_hypot, call_subject},
      {"ldexp", explain_ldexp, call_subject},
      {"polygamma", explain_polygamma, polygamma_subject},
      {"igamma", explain_igamma, call_subject},
      {"gammainc", explain_igamma, call_subject},
  };
  return kTable;
}

}  // namespace sherlorch::explaining
