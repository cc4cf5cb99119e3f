// Autograd nodes that divide the incoming gradient by something that the forward pass saved: what that is, by node.
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

struct DivisorRow {
  std::string_view node;
  const char* forward;  // "sqrt"
  const char* divisor;  // what it divides by
  const char* zero;     // what is then 0, as a sentence without its end
  const char* after;    // a sentence on the forward value; may be empty
  const char* help;
};

constexpr const char* kFine = "The forward value was fine.";
constexpr const char* kForwardToo = "The forward value at this element was infinite as well.";
constexpr const char* kInside =
    "Add a small eps inside: sqrt(x + eps). A where() or clamp after it does not help; with torch.where, replace the "
    "bad "
    "operand before the op as well (double where).";
constexpr const char* kLogInside =
    "Clamp or add a small eps before the log. A where() after it does not help: replace the operand before the log too "
    "(double where).";
constexpr const char* kNormHelp = "Use sqrt((x * x).sum() + eps) in place of the norm, or skip vectors that are all 0.";
constexpr const char* kUnitHelp = "Clamp before the op, a little inside the limits: x.clamp(-1 + eps, 1 - eps).";
constexpr const char* kSpectrum =
    "Equal values have no unique vectors, so no gradient. Use the values only (eigvalsh, svdvals), spread them with a "
    "little "
    "noise on the matrix, or detach the vectors.";

const DivisorRow kDivisors[] = {
    {"Sqrt", "sqrt", "2*sqrt(x)", "sqrt(x) is 0", kFine, kInside},
    {"Log", "log", "x", "x is 0", kForwardToo, kLogInside},
    {"Log2", "log2", "x*log(2)", "x is 0", kForwardToo, kLogInside},
    {"Log10", "log10", "x*log(10)", "x is 0", kForwardToo, kLogInside},
    {"Log1P", "log1p", "1 + x", "1 + x is 0", kForwardToo, "Clamp the operand above -1 first."},
    {"Div", "div", "the divisor", "the divisor is 0", "", advice::kDivide},
    {"LinalgVectorNorm", "the norm", "the norm", "the norm is 0", kFine, kNormHelp},
    {"Norm", "the norm", "the norm", "the norm is 0", kFine, kNormHelp},
    {"ForeachNorm", "the norm", "the norm", "the norm is 0", kFine, kNormHelp},
    {"Std", "std", "the standard deviation", "the standard deviation is 0: all values are equal", kFine,
     "Use torch.sqrt(x.var() + eps) in place of std, or skip groups whose values are all equal."},
    {"StdMean", "std", "the standard deviation", "the standard deviation is 0: all values are equal", kFine,
     "Use torch.sqrt(x.var() + eps) in place of std, or skip groups whose values are all equal."},
    {"Var", "var", "n - 1", "n - 1 is 0: there is one value only", "",
     "Use correction=0, or skip groups of a single element."},
    {"Mean", "mean", "the number of elements", "that number is 0: nothing was selected", "",
     "Skip the step when nothing was selected."},
    {"Hypot", "hypot", "the length", "the length is 0", kFine, "Add a small eps: sqrt(x*x + y*y + eps)."},
    {"Atanh", "atanh", "1 - x**2", "1 - x**2 is 0", kForwardToo, kUnitHelp},
    {"EuclideanDist", "cdist", "the distance", "the distance is 0: two points are equal", kFine,
     "Leave out pairs of equal points (the diagonal), or use squared distances, or sqrt(d2 + eps)."},
    {"LinalgEigh", "eigh", "the difference of two eigenvalues", "that difference is 0: two eigenvalues are equal",
     kFine, kSpectrum},
    {"LinalgEig", "eig", "the difference of two eigenvalues", "that difference is 0: two eigenvalues are equal", kFine,
     kSpectrum},
    {"LinalgSvd", "svd", "the difference of two squared singular values",
     "that difference is 0: two singular values are equal", kFine, kSpectrum},
    {"Svd", "svd", "the difference of two squared singular values",
     "that difference is 0: two singular values are equal", kFine, kSpectrum},
    {"Cumprod", "cumprod", "the operand", "the operand is 0", kFine,
     "Work in the log domain, or keep the factors above 0."},
    {"Prod", "prod", "the operand", "the operand is 0", kFine, "Work in the log domain, or keep the factors above 0."},
    {"Xlogy", "xlogy", "the operand of the log", "that operand is 0", kFine,
     "Clamp the operand of the log above 0 (y.clamp_min(eps)): the 0 in front of it does not protect the gradient."},
    {"Xlog1Py", "xlog1py", "1 + y", "1 + y is 0", kFine, "Clamp the second operand above -1."},
    {"WeightNorm", "weight_norm", "the norm of v", "that norm is 0", "", "weight_norm has no eps: keep v away from 0."},
    {"WeightNormInterface", "weight_norm", "the norm of v", "that norm is 0", "",
     "weight_norm has no eps: keep v away from 0."},
    {"BinaryCrossEntropy", "binary_cross_entropy", "p*(1 - p)", "p is 0 or 1", "",
     "Use binary_cross_entropy_with_logits, or clamp p inside (0, 1)."},
    {"Addcdiv", "addcdiv", "tensor2", "tensor2 is 0", "", advice::kDivide},
    {"Remainder", "remainder", "the divisor", "the divisor is 0", "", advice::kDivide},
    {"Fmod", "fmod", "the divisor", "the divisor is 0", "", advice::kDivide},
    {"LinalgQr", "qr", "the diagonal of R", "a 0 is on it", kFine,
     "qr has a gradient only for matrices of full rank: add a little noise or a multiple of the identity."},
    {"LinalgPinv", "pinv", "the diagonal", "a 0 is on it", kFine, "Add a small multiple of the identity."},
};

Verdict explain_divisor(const Context& context, const DivisorRow& row) {
  const Known gradient = context.get({"self"});
  const Known divisor = context.get({"other"});
  const Sure zero = divisor.equals(0);
  if (zero == Sure::kNo || divisor.nonfinite() == Sure::kYes || gradient.nonfinite() == Sure::kYes) return {};
  const bool nan = context.has_result && std::isnan(context.result);
  const bool lost = gradient.overwritten && !gradient.point();
  if (nan && gradient.equals(0) == Sure::kNo && !lost) return {};
  if (!nan && gradient.equals(0) == Sure::kYes) return {};
  const bool of_gradient = row.node != "Xlogy" && row.node != "Div";
  std::string why = std::string("The backward of ") + row.forward + " divides " +
                    (of_gradient ? "the incoming gradient" : "") + (of_gradient ? " by " : "by ") + row.divisor +
                    ", and " + (zero == Sure::kYes ? "" : "probably ") + row.zero + " here. ";
  if (nan) {
    why += of_gradient ? "The incoming gradient is 0 too" : "What it divides is 0 too";
    why += ", and 0 / 0 has no value. ";
  }
  why += row.after;
  while (!why.empty() && why.back() == ' ') why.pop_back();
  return verdict(nan ? Cause::kInvalidOperation : Cause::kDivisionByZero, why, row.help);
}

}  // namespace

Verdict explain_divisor(const Context& context) {
  if (context.op != "div") return {};
  const std::string node = node_base(context.facts.autograd_node);
  for (const DivisorRow& row : kDivisors) {
    if (row.node != node) continue;
    if (Verdict result = explain_divisor(context, row); !result.empty()) return result;
  }
  return {};
}

}  // namespace sherlorch::explaining
