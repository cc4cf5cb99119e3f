// Why an op made a non-finite value, in words: checked against the operands, never guessed from the op's name alone.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "sherlorch/diagnosis.h"

namespace sherlorch {

// What one output element was computed from.
struct OperandReading {
  std::string name;        // schema argument name
  bool is_scalar = false;  // a Python number (value)
  bool is_slice = false;   // `count` elements, `bad` of them not finite; min/max/sum over the finite ones
  bool available = true;   // false: an in-place op overwrote it before it could be read
  double value = 0;
  double min = 0, max = 0, sum = 0;
  std::int64_t count = 0;
  std::int64_t bad = 0;
  bool complete = true;  // false: the slice was long and only its beginning was read
  // The smallest magnitude on the diagonals of the matrices in the slice; NaN if it was not looked at.
  double diagonal = std::numeric_limits<double>::quiet_NaN();
};
struct ElementReading {
  std::vector<std::int64_t> index;
  double value = 0;  // the non-finite value itself
  std::vector<OperandReading> operands;
};

// Inside an autograd node the op made an infinity, and a later op of the same node made NaN of it.
struct NodeTurn {
  std::string op_name;   // "mul"; "" if there was no such turn
  bool by_zero = false;  // it multiplied the infinity by a finite number, which can only have been 0
};

// Operands and readings of a list argument are called "grads[0]", "grads[1]", ...
struct OpFacts {
  std::string op_name;  // "log", "div_", "_foreach_add_" ...
  Phase phase = Phase::kForward;
  std::string autograd_node;      // "SqrtBackward0"; "" outside backward
  std::string forward_op;         // the forward op's name where this is its backward and it is known: "sqrt"
  std::vector<Operand> operands;  // in schema order, tensors and numbers
  Operand output;
  std::vector<ElementReading> elements;  // a handful
  bool from_deliberate = false;  // the only non-finite operands are infinities that the program put there on purpose
  Origin origin = Origin::kOp;   // not kOp: the value was bad before this op read it
  std::string origin_label;
  bool external_write = false;  // the origin's memory was changed by something other than torch's ops
  std::string last_writer;      // "mul at model.py:12": who had written it before; "" if unknown
  NodeTurn turn;                // what the rest of the autograd node made of it
};

struct Explanation {
  Cause cause = Cause::kUnknown;
  std::string headline;     // "log(0.0) is -inf": one line, always set
  std::string explanation;  // one sentence or two; empty where nothing is known beyond the facts
  std::string help;         // what usually helps; empty where nothing is known
};

Explanation explain(const OpFacts& facts);

// "log(0.0) = -inf", "1.0 / 0.0 = inf", "sum of 65536 values in [0, 60000] = inf": one element in words.
std::string describe_element(const OpFacts& facts, const ElementReading& element);

// "-inf", "nan", "3.1", "65504.0", "1e+06": a number as the reports print it. Whole numbers of up to five digits are
// exact; what is not whole never looks so: 1.0000001.
std::string format_number(double value);

}  // namespace sherlorch
