// The answer to "why is this tensor non-finite?", as plain data: every string is resolved, nothing points into the
// recorder, so a Diagnosis may be copied, kept and moved between threads, and outlives the tracker that made it.
// Reports (text, JSON, DOT, page) and both APIs read this and nothing else. docs/glossary.md has the words.
//
// Of an op that was called from C++, `location`, `module_path` and `stack` are empty: they come from Python's frames.
//
// Equality is member by member; a NaN value in a witness or an operand makes it unequal to itself, as ever.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sherlorch/export.h"
#include "sherlorch/types.h"

namespace sherlorch {

struct SHERLORCH_API SourceLocation {
  std::string file;  // as Python's co_filename gives it; empty if unknown
  int line = 0;      // 1-based; 0 if unknown
  std::string function;
  bool known() const { return !file.empty(); }
  std::string text() const;  // "file.py:12", or "" if unknown

  bool operator==(const SourceLocation&) const = default;
};

// How many elements of each class, and where the first of each lies (one coordinate per dimension; empty if none).
struct FinitenessCounts {
  std::int64_t numel = 0;
  std::int64_t nan = 0;
  std::int64_t pos_inf = 0;
  std::int64_t neg_inf = 0;
  std::vector<std::int64_t> first_nan;
  std::vector<std::int64_t> first_pos_inf;
  std::vector<std::int64_t> first_neg_inf;

  std::int64_t bad() const { return nan + pos_inf + neg_inf; }
  bool finite() const { return bad() == 0; }

  bool operator==(const FinitenessCounts&) const = default;
};

// What an op did to the value that is traced along a path.
enum class Transition : std::uint8_t {
  kNone,         // carried it on unchanged in kind
  kFiniteToInf,  // introduced an infinity
  kFiniteToNan,  // introduced a NaN
  kInfToNan,     // made NaN out of an infinity
  kNanToInf,     // made an infinity of a NaN (e.g. max with inf)
  kInfToInf,     // an infinity of the other sign
};
// "none", "finite_to_inf", "finite_to_nan", "inf_to_nan", "nan_to_inf", "inf_to_inf"
SHERLORCH_API const char* transition_name(Transition transition) noexcept;

// One op on a path.
struct Step {
  OpSeq seq = 0;
  // "log": the ATen name without namespace, overload or "aten::". Of a culprit in backward, its node's:
  // "SqrtBackward0".
  std::string op_name;
  std::string operator_name;  // "aten::log" with overload where it has one: "aten::add.Tensor"
  std::vector<std::int64_t> shape;
  std::string dtype;        // "torch.float32"
  std::string device;       // "cpu"
  FinitenessCounts counts;  // of the op's output
  SourceLocation location;  // the user's line; of the forward op where this is its backward (at_forward)
  std::string module_path;  // "" if unknown
  // What its output is to the model: "gradient net.0.weight.grad", "parameter net.0.weight", "buffer
  // net.4.running_var"; "" if it is none of them, or the model is not known by name.
  std::string label;
  Phase phase = Phase::kForward;
  bool at_forward = false;    // location and module_path are those of the forward op whose backward this is
  std::string autograd_node;  // "SqrtBackward0" for a backward op; "" otherwise
  std::string thread_name;    // "" for the main thread
  bool inherited = false;     // finiteness was taken over from the memory that it aliases, not scanned
  Transition transition = Transition::kNone;
  std::vector<OpSeq> parents;         // the non-finite ops that it read
  std::vector<std::int64_t> element;  // one bad element of the output along the chain of indices; may be empty
  std::uint64_t folded = 0;           // ops left out of the path between this one and the next (long paths only)

  bool operator==(const Step&) const = default;
};

enum class Origin : std::uint8_t { kOp, kInput, kParameter, kConstant, kUninitialized };
// "op", "input", "parameter", "constant", "uninitialized"
SHERLORCH_API const char* origin_name(Origin origin) noexcept;

// The numeric reason, in the words of IEEE 754 where it has one.
enum class Cause : std::uint8_t {
  kUnknown,
  kInvalidOperation,    // 0/0, log of a negative number, Inf - Inf, 0 * Inf
  kDivisionByZero,      // a pole: 1/0, log 0
  kOverflow,            // too large for the type
  kCastOverflow,        // too large for the type cast to
  kDeliberateInfinity,  // NaN (or the other sign) made of infinities that the program put there on purpose
  kBadOrigin,           // the value was bad before any op touched it
};
// "invalid operation", "division by zero", ...
SHERLORCH_API const char* cause_name(Cause cause) noexcept;

// One tensor or number that the culprit read, or its output.
struct Operand {
  std::string name;        // the schema's argument name: "self", "other", "weight"; "output"
  bool is_scalar = false;  // a plain number; then `value` holds it and there is no shape
  double value = 0;
  std::vector<std::int64_t> shape;
  std::string dtype;
  FinitenessCounts counts;
  bool has_range = false;  // finite elements only
  double min = 0;
  double max = 0;
  // An in-place op has replaced what was read: its values are gone, and a range is what the op that had written it
  // before is known to have kept within.
  bool overwritten = false;
  std::string label;  // "parameter encoder.weight", "argument 0"; "" if nothing better than the name is known

  bool operator==(const Operand&) const = default;
};

// One non-finite element and the operands that gave it.
struct WitnessElement {
  std::vector<std::int64_t> index;
  double value = 0;  // real part
  std::string text;  // "log(0.0) = -inf", "1.0 / 0.0 = inf", "variance of row 3 = -1.2e-07 under sqrt"
  std::vector<std::pair<std::string, double>> operands;  // argument name, value

  bool operator==(const WitnessElement&) const = default;
};

struct Culprit {
  Step step;
  Origin origin = Origin::kOp;
  std::string origin_label;   // "parameter net.4.running_var", "argument 0 of sub"; "" for kOp
  std::string origin_detail;  // "buffer", "external write", ...; "" if nothing to add
  Cause cause = Cause::kUnknown;
  std::vector<SourceLocation> stack;  // the whole Python stack, outermost first; may be empty
  std::vector<Operand> operands;
  std::vector<WitnessElement> witness;
  // Indices of dimension 0 with bad elements, at most 16; empty if it does not tell.
  std::vector<std::int64_t> bad_samples;
  std::int64_t bad_sample_count = 0;
  // Those of them whose bad elements do not reach the target (dropped, masked out or overwritten), at most 16.
  std::vector<std::int64_t> dropped_samples;
  std::int64_t dropped_sample_count = 0;
  std::string headline;     // "log(0.0) is -inf"; one line
  std::string explanation;  // one plain sentence on why it happens here, checked against the operands; may be empty
  std::string help;         // what usually helps; may be empty
  std::uint64_t times = 1;  // merged: how often this line did it in the target's history
  // Which call of this line in the trace was the first to do it, counted from 1; 0 if its calls are not all known.
  std::uint64_t first_call = 0;
  std::vector<Step> path;  // culprit first, target last
  bool certain = true;     // false: see `doubt`
  std::string doubt;

  bool operator==(const Culprit&) const = default;
};

struct BlindSpot {
  std::string kind;  // stable key: "device", "sparse", "compiled", "evicted", ...
  std::uint64_t count = 0;
  std::string text;  // "3 ops inside a compiled region were not traced"

  bool operator==(const BlindSpot&) const = default;
};

struct Diagnosis {
  Step target;
  std::vector<Culprit> culprits;  // in the order in which they ran
  // Infinities in the target's history that the program put there on purpose (masks): innocent, listed for the record.
  std::vector<Step> deliberate;
  std::uint64_t total_ops = 0;
  std::vector<BlindSpot> blind_spots;
  std::string note;  // what else is worth knowing: a target of deliberate infinities only, changed since the trace, ...

  bool ok() const { return culprits.empty(); }

  bool operator==(const Diagnosis&) const = default;
};

}  // namespace sherlorch
