#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "core/diagnose/explain_internal.h"

namespace sherlorch {

std::string format_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[64];
  // Whole numbers are exact up to five digits: 65504 and 65520 must not look alike.
  if (value == std::trunc(value) && std::fabs(value) < 1e5) {
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
  }
  // Four digits, and more where they would hide on which side of a whole number it lies: 1.0000001.
  for (int digits : {4, 6, 9, 17}) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    const double shown = std::strtod(text, nullptr);
    if (std::fabs(value) >= 100 || shown != std::trunc(shown)) break;
  }
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

namespace explaining {

namespace {

struct TypeRow {
  std::string_view name;
  double largest;
  double smallest;
  bool has_infinity;
  bool complex;
};
constexpr double kFloatMax = std::numeric_limits<float>::max();
constexpr double kFloatMin = std::numeric_limits<float>::denorm_min();
constexpr double kDoubleMax = std::numeric_limits<double>::max();
constexpr double kDoubleMin = std::numeric_limits<double>::denorm_min();
constexpr double kBFloatMax = 3.3895313892515355e38;
constexpr double kBFloatMin = 9.183549615799121e-41;
constexpr double kHalfMin = 5.960464477539063e-8;
constexpr TypeRow kTypes[] = {
    {"float16", 65504, kHalfMin, true, false},           {"half", 65504, kHalfMin, true, false},
    {"bfloat16", kBFloatMax, kBFloatMin, true, false},   {"float32", kFloatMax, kFloatMin, true, false},
    {"float", kFloatMax, kFloatMin, true, false},        {"float64", kDoubleMax, kDoubleMin, true, false},
    {"double", kDoubleMax, kDoubleMin, true, false},     {"complex32", 65504, kHalfMin, true, true},
    {"complex64", kFloatMax, kFloatMin, true, true},     {"complex128", kDoubleMax, kDoubleMin, true, true},
    {"float8_e4m3fn", 448, 0x1p-9, false, false},        {"float8_e5m2", 57344, 0x1p-16, true, false},
    {"float8_e4m3fnuz", 240, 0x1p-10, false, false},     {"float8_e5m2fnuz", 57344, 0x1p-17, false, false},
    {"float8_e8m0fnu", 0x1p127, 0x1p-127, false, false},
};

Sure share(std::int64_t some, std::int64_t all) {
  if (some <= 0) return Sure::kNo;
  return some >= all ? Sure::kYes : Sure::kMaybe;
}

}  // namespace

bool Limits::passes(double magnitude) const {
  if (!known() || std::isnan(magnitude)) return false;
  // Up to half a unit in the last place beyond the largest number, rounding still comes back to it.
  double slack = 0;
  if (largest == 65504) slack = 16;
  if (name == "bfloat16") slack = largest * 0x1p-9;
  return std::fabs(magnitude) >= largest + slack && std::fabs(magnitude) > largest;
}

std::string Limits::largest_text() const {
  char text[32];
  std::snprintf(text, sizeof text, largest < 1e5 ? "%.0f" : "%.2g", largest);
  return text;
}

std::string Limits::ends() const { return known() ? name + " ends at " + largest_text() : ""; }

Limits limits_of(std::string_view dtype) {
  constexpr std::string_view kPrefix = "torch.";
  if (dtype.starts_with(kPrefix)) dtype.remove_prefix(kPrefix.size());
  Limits limits;
  limits.name = dtype;
  for (const TypeRow& row : kTypes) {
    if (row.name != dtype) continue;
    limits.largest = row.largest;
    limits.smallest = row.smallest;
    limits.has_infinity = row.has_infinity;
    limits.complex = row.complex;
  }
  return limits;
}

bool Known::bounded() const {
  if (point()) return std::isfinite(value);
  return (slice() || form == Form::kRange) && count > bad;
}

double Known::magnitude() const {
  if (!bounded()) return 0;
  return point() ? std::fabs(value) : std::fmax(std::fabs(min), std::fabs(max));
}

Sure Known::equals(double x) const {
  if (point()) return value == x ? Sure::kYes : Sure::kNo;
  if (!bounded() || min > x || max < x) return Sure::kNo;
  return min == x && max == x && bad == 0 && complete ? Sure::kYes : Sure::kMaybe;
}

Sure Known::below(double x) const {
  if (point()) return std::isfinite(value) && value < x ? Sure::kYes : Sure::kNo;
  if (!bounded() || min >= x) return Sure::kNo;
  return max < x && bad == 0 && complete ? Sure::kYes : Sure::kMaybe;
}

Sure Known::above(double x) const {
  if (point()) return std::isfinite(value) && value > x ? Sure::kYes : Sure::kNo;
  if (!bounded() || max <= x) return Sure::kNo;
  return min > x && bad == 0 && complete ? Sure::kYes : Sure::kMaybe;
}

Sure Known::nan() const {
  if (point()) return std::isnan(value) ? Sure::kYes : Sure::kNo;
  if (slice() && bad == 0 && complete) return Sure::kNo;
  if (!operand) return slice() ? Sure::kMaybe : Sure::kNo;
  return share(operand->counts.nan, operand->counts.numel);
}

Sure Known::infinite(int sign) const {
  if (point()) {
    const bool is = std::isinf(value) && (sign == 0 || (value > 0) == (sign > 0));
    return is ? Sure::kYes : Sure::kNo;
  }
  if (slice() && bad == 0 && complete) return Sure::kNo;
  if (!operand) return slice() ? Sure::kMaybe : Sure::kNo;
  const FinitenessCounts& counts = operand->counts;
  const std::int64_t some = (sign >= 0 ? counts.pos_inf : 0) + (sign <= 0 ? counts.neg_inf : 0);
  return share(some, counts.numel);
}

Sure Known::finite() const {
  if (absent() || unread()) return Sure::kMaybe;
  const Sure bad_one = nonfinite();
  return bad_one == Sure::kNo ? Sure::kYes : bad_one == Sure::kYes ? Sure::kNo : Sure::kMaybe;
}

Sure Known::holds(int sign) const {
  if (!slice() || bad == 0 || !operand) return infinite(sign);
  const FinitenessCounts& counts = operand->counts;
  const std::int64_t some = (sign >= 0 ? counts.pos_inf : 0) + (sign <= 0 ? counts.neg_inf : 0);
  if (some == 0) return Sure::kNo;
  return some == counts.bad() ? Sure::kYes : Sure::kMaybe;  // it has bad elements, and all are such
}

Sure Known::holds_nan() const {
  if (!slice() || bad == 0 || !operand) return nan();
  if (operand->counts.nan == 0) return Sure::kNo;
  return operand->counts.nan == operand->counts.bad() ? Sure::kYes : Sure::kMaybe;
}

bool Known::all_bad() const {
  if (point()) return !std::isfinite(value);
  return count > 0 && bad >= count;
}

std::string Known::text() const {
  if (point()) return format_number(value);
  if (bounded() && count == 1) return format_number(max);
  if (bounded()) return "a value in " + interval_text(min, max);
  return operand && !operand->name.empty() ? operand->name : "?";
}

std::string count_of(std::int64_t n, const char* one, const char* many) {
  return n == 1 ? std::string("1 ") + one : std::to_string(n) + " " + many;
}

std::string bound_text(double value) {
  std::string text = format_number(value);
  if (text.size() > 2 && text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string interval_text(double min, double max) { return "[" + bound_text(min) + ", " + bound_text(max) + "]"; }

std::string values_text(const Known& slice, const char* noun) {
  if (slice.point()) return format_number(slice.value);
  const std::string many = std::string(noun) + "s";
  std::string text = slice.count > 0 ? count_of(slice.count, noun, many.c_str()) : many;
  if (slice.bounded()) text += " in " + interval_text(slice.min, slice.max);
  if (slice.all_bad()) return text + ", none of them finite";
  if (slice.bad > 0) text += ", " + std::to_string(slice.bad) + " of them not finite";
  return text;
}

std::string clause(const Known& known, std::string_view noun, std::string_view condition) {
  const std::string subject = "The " + std::string(noun);
  if (known.point()) return subject + " is " + format_number(known.value) + " here.";
  if (known.overwritten) {
    return subject + " was overwritten in place; going by the result, it was " + std::string(condition) + ".";
  }
  if (!known.bounded()) return "";
  if (known.min == known.max) return subject + " is " + format_number(known.min) + " throughout.";
  return subject + " lies in " + interval_text(known.min, known.max) + ", so it probably is " + std::string(condition) +
         " there.";
}

std::string lower_first(std::string sentence) {
  if (!sentence.empty() && sentence[0] >= 'A' && sentence[0] <= 'Z')
    sentence[0] = static_cast<char>(sentence[0] - 'A' + 'a');
  return sentence;
}

std::string hedge(bool sure, std::string sentence) {
  return sure ? sentence : "Probably " + lower_first(std::move(sentence));
}

Verdict verdict(Cause cause, std::string why, std::string help) {
  Verdict result;
  result.cause = cause;
  result.explanation = std::move(why);
  result.help = std::move(help);
  return result;
}

namespace advice {
const char* const kOverflow =
    "Run this op in a wider type (.float(), or leave it out of autocast), or scale the values down before it.";
const char* const kDivide =
    "Add a small eps to the divisor, or clamp it (y.clamp_min(eps)), or leave out the elements where it is 0. "
    "Under torch.where, replace the bad divisor before dividing: where() alone does not protect the gradient.";
const char* const kData =
    "Check the data loader: drop or repair the bad samples, or use torch.nan_to_num on the inputs, and look at how "
    "they are normalised.";
const char* const kExploding =
    "Values have grown out of bounds: clip the gradients, lower the learning rate or warm it up, and check the "
    "initialisation and normalisation before this layer.";
const char* const kMaskedRow =
    "Leave at least one entry of every row unmasked, or skip the rows that are masked whole, or fill with a large "
    "finite number (torch.finfo(dtype).min) in place of -inf.";

std::string overflow(const Limits& limits) {
  std::string text = kOverflow;
  if (limits.float16()) text += " bfloat16 has the range of float32.";
  return text;
}
}  // namespace advice

}  // namespace explaining
}  // namespace sherlorch
