// What the explain_*.cpp files share: what is known of an operand at one element, how surely, and the rows that map an
// op to the functions that explain it. Private to this folder.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/diagnose/explain.h"

namespace sherlorch::explaining {

// How surely a statement about an operand holds: seen in its value, possible by its range, excluded.
enum class Sure : std::uint8_t { kNo, kMaybe, kYes };
inline Sure both(Sure a, Sure b) { return a < b ? a : b; }
inline Sure either(Sure a, Sure b) { return a < b ? b : a; }

// What an element type can hold.
struct Limits {
  std::string name;     // "float16"; "" if unknown
  double largest = 0;   // largest finite magnitude; 0 if unknown
  double smallest = 0;  // smallest positive number (a subnormal where the type has them); 0 if unknown
  bool has_infinity = true;
  bool complex = false;

  bool known() const { return largest > 0; }
  bool float16() const { return largest == 65504; }
  bool passes(double magnitude) const;  // true if it rounds to infinity; false if the type is unknown
  std::string ends() const;             // "float16 ends at 65504"; "" if unknown
  std::string largest_text() const;     // "65504"
};
Limits limits_of(std::string_view dtype);

// What is known of one argument at one element of the output.
struct Known {
  enum class Form : std::uint8_t {
    kAbsent,  // the op has no such argument, or nothing is known of it
    kPoint,   // its value
    kSlice,   // bounds of the elements that the output element depends on
    kRange,   // bounds of the whole operand only
    kUnread,  // it exists, but nobody read its values
  };
  Form form = Form::kAbsent;
  double value = 0;
  double min = 0, max = 0, sum = 0;
  std::int64_t count = 0;  // elements of the slice or operand
  std::int64_t bad = 0;    // non-finite ones among them
  bool overwritten = false;
  bool complete = true;                                        // false: only the beginning of the slice was read
  double diagonal = std::numeric_limits<double>::quiet_NaN();  // of matrices, its smallest magnitude; NaN: not read
  std::optional<Operand> operand;  // of a list argument without a reading, all its tensors taken together

  bool absent() const { return form == Form::kAbsent; }
  bool point() const { return form == Form::kPoint; }
  bool slice() const { return form == Form::kSlice; }
  bool unread() const { return form == Form::kUnread; }
  bool bounded() const;         // min and max (of the finite elements) are known
  double magnitude() const;     // largest finite magnitude; 0 if unknown
  Sure equals(double x) const;  // the element read is x
  Sure below(double x) const;   // ... is finite and < x
  Sure above(double x) const;
  Sure nan() const;
  Sure infinite(int sign = 0) const;  // sign 0: either
  Sure nonfinite() const { return either(nan(), infinite()); }
  Sure finite() const;
  Sure holds(int sign) const;  // the slice has an infinity of this sign somewhere
  Sure holds_nan() const;
  bool all_bad() const;      // every element of the slice is non-finite
  std::string text() const;  // "0.0", "a value in [0, 3.1]", "?"
};

struct Context {
  const OpFacts& facts;
  std::string op;                           // base name: "log" of "_foreach_log_", "softmax" of "_softmax"
  bool listed = false;                      // a _foreach_ or _fused_ op
  Limits out;                               // of the output's type
  const ElementReading* element = nullptr;  // the one to be explained; may be null
  bool has_result = false;
  double result = 0;  // nan, inf or -inf

  // The first of these arguments that the op has. "grads" stands for all of "grads[0]", "grads[1]", ...
  Known get(std::initializer_list<std::string_view> names) const;
  Known self() const { return get({"self", "input", "x", "A"}); }
  // A number among the arguments ("eps", "alpha"), or `otherwise`.
  double number(std::string_view name, double otherwise) const;
  bool result_nan() const;
  bool result_inf() const;
  bool in_backward() const { return !facts.autograd_node.empty() || facts.phase == Phase::kBackward; }
};
Context make_context(const OpFacts& facts, const ElementReading* element);

// An explanation, and whether its headline serves as the element's text too.
struct Verdict : Explanation {
  bool headline_is_witness = false;
  bool empty() const { return cause == Cause::kUnknown && explanation.empty(); }
};
using ExplainFunction = Verdict (*)(const Context&);
using SubjectFunction = std::string (*)(const Context&);  // "log(0.0)", "sum of 8 values in [0, 1]"
struct Family {
  std::string_view op;
  ExplainFunction explain;
  SubjectFunction subject;  // null: the general one
};
std::span<const Family> unary_families();
std::span<const Family> arithmetic_families();
std::span<const Family> movement_families();
std::span<const Family> reduction_families();
std::span<const Family> softmax_families();
std::span<const Family> product_families();
std::span<const Family> normalization_families();
std::span<const Family> loss_families();
std::span<const Family> linalg_families();
std::span<const Family> optimizer_families();
const Family* find_family(std::string_view op);

// An explanation of an op inside an autograd node; empty() if the node adds nothing.
Verdict explain_backward(const Context& context);
Verdict explain_divisor(const Context& context);        // of a div inside a node that divides by what was saved
std::string node_base(std::string_view autograd_node);  // "Sqrt" of "SqrtBackward0"
std::string forward_name(const Context& context);       // "sqrt": the op whose backward this is

Verdict verdict(Cause cause, std::string why, std::string help);
std::string base_name(std::string_view op_name);
std::string subject_of(const Context& context);  // by the family, or the general form
std::string general_subject(const Context& context);

// "Probably the sum ..." of "The sum ..." where it is not sure.
std::string hedge(bool sure, std::string sentence);
std::string lower_first(std::string sentence);
std::string count_of(std::int64_t n, const char* one, const char* many);  // "1 value", "64 values"
std::string bound_text(double value);                                     // format_number without a trailing ".0"
std::string interval_text(double min, double max);                        // "[0, 3.1]"
std::string values_text(const Known& slice, const char* noun = "value");  // "64 values in [0, 3.1]"
// "The divisor is 0.0 here.", "The divisor lies in [0, 3], so it probably is 0 there.", ...
std::string clause(const Known& known, std::string_view noun, std::string_view condition);

namespace advice {
extern const char* const kOverflow;  // a value too large for the type
extern const char* const kDivide;
extern const char* const kData;
extern const char* const kExploding;
extern const char* const kMaskedRow;
std::string overflow(const Limits& limits);  // kOverflow, with what the type calls for
}  // namespace advice

}  // namespace sherlorch::explaining
