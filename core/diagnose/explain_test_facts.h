// OpFacts as the recorder would fill them in, in one line a case. For the tests of explain only.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/diagnose/explain.h"

namespace sherlorch::explain_test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr auto kInvalid = Cause::kInvalidOperation;
inline constexpr auto kPole = Cause::kDivisionByZero;
inline constexpr auto kOver = Cause::kOverflow;
inline const std::string kHalf = "torch.float16";

struct Arg {
  Operand operand;
  bool read = false;  // it has a reading
  OperandReading reading;
};

[[gnu::noinline]] inline void count_value(FinitenessCounts& counts, double value, std::int64_t n) {
  if (std::isnan(value)) counts.nan += n;
  if (value == kInf) counts.pos_inf += n;
  if (value == -kInf) counts.neg_inf += n;
}

// A tensor of 8 elements; the element that matters is `value`, the others are 1.
[[gnu::noinline]] inline Arg point(const std::string& name, double value) {
  Arg arg;
  arg.operand.name = arg.reading.name = name;
  arg.operand.shape = {8};
  arg.operand.counts.numel = 8;
  count_value(arg.operand.counts, value, 1);
  arg.operand.has_range = true;
  arg.operand.min = std::isfinite(value) ? std::fmin(value, 1) : 1;
  arg.operand.max = std::isfinite(value) ? std::fmax(value, 1) : 1;
  arg.read = true;
  arg.reading.value = value;
  return arg;
}

[[gnu::noinline]] inline Arg scalar(const std::string& name, double value) {
  Arg arg;
  arg.operand.name = name;
  arg.operand.is_scalar = true;
  arg.operand.value = value;
  return arg;
}

// The output element depends on `count` elements in [min, max], `bad` more of which are `bad_value`.
[[gnu::noinline]] inline Arg slice(const std::string& name, double min, double max, std::int64_t count, double sum = 0,
                                   std::int64_t bad = 0, double bad_value = kNan) {
  Arg arg;
  arg.operand.name = arg.reading.name = name;
  arg.operand.shape = {4, count + bad};
  arg.operand.counts.numel = 4 * (count + bad);
  count_value(arg.operand.counts, bad_value, bad);
  arg.operand.has_range = count > 0;
  arg.operand.min = min;
  arg.operand.max = max;
  arg.read = true;
  arg.reading.is_slice = true;
  arg.reading.min = count > 0 ? min : kInf;
  arg.reading.max = count > 0 ? max : -kInf;
  arg.reading.sum = sum;
  arg.reading.count = count + bad;
  arg.reading.bad = bad;
  return arg;
}

// The slice covers matrices, and this is the smallest magnitude on their diagonals.
[[gnu::noinline]] inline Arg with_diagonal(Arg arg, double smallest) {
  arg.reading.diagonal = smallest;
  return arg;
}

// Only the range of the whole tensor is known.
[[gnu::noinline]] inline Arg range(const std::string& name, double min, double max,
                                   std::vector<std::int64_t> shape = {8}) {
  Arg arg;
  arg.operand.name = name;
  arg.operand.shape = shape;
  arg.operand.counts.numel = 1;
  for (std::int64_t size : shape) arg.operand.counts.numel *= size;
  arg.operand.has_range = arg.operand.counts.numel > 0;
  arg.operand.min = min;
  arg.operand.max = max;
  return arg;
}

// A tensor with `bad` elements of this value among others in [0, 1], of which nothing else is known.
[[gnu::noinline]] inline Arg holding(const std::string& name, double value, std::int64_t bad = 1) {
  Arg arg = range(name, 0, 1);
  count_value(arg.operand.counts, value, bad);
  return arg;
}

// Overwritten by the op itself.
[[gnu::noinline]] inline Arg lost(const std::string& name) {
  Arg arg;
  arg.operand.name = arg.reading.name = name;
  arg.operand.shape = {8};
  arg.operand.counts.numel = 8;
  arg.operand.overwritten = true;
  arg.read = true;
  arg.reading.available = false;
  return arg;
}

[[gnu::noinline]] inline OpFacts op(const std::string& name, double result, std::vector<Arg> args,
                                    const std::string& dtype = "torch.float32") {
  OpFacts facts;
  facts.op_name = name;
  ElementReading element;
  element.index = {3};
  element.value = result;
  for (Arg& arg : args) {
    if (arg.operand.dtype.empty() && !arg.operand.is_scalar) arg.operand.dtype = dtype;
    facts.operands.push_back(arg.operand);
    if (arg.read) element.operands.push_back(arg.reading);
  }
  facts.output.name = "output";
  facts.output.dtype = dtype;
  facts.output.shape = {8};
  facts.output.counts.numel = 8;
  count_value(facts.output.counts, result, 1);
  facts.elements.push_back(element);
  return facts;
}

[[gnu::noinline]] inline OpFacts backward(const std::string& node, const std::string& name, double result,
                                          std::vector<Arg> args, const std::string& dtype = "torch.float32") {
  OpFacts facts = op(name, result, std::move(args), dtype);
  facts.phase = Phase::kBackward;
  facts.autograd_node = node;
  return facts;
}

[[gnu::noinline]] inline OpFacts deliberate(OpFacts facts) {
  facts.from_deliberate = true;
  return facts;
}

[[gnu::noinline]] inline OpFacts in_optimizer(OpFacts facts) {
  facts.phase = Phase::kOptimizer;
  return facts;
}

[[gnu::noinline]] inline OpFacts scalar_output(OpFacts facts) {
  facts.output.shape = {};
  facts.output.counts.numel = 1;
  facts.elements.front().index = {};
  return facts;
}

[[gnu::noinline]] inline std::string witness(const OpFacts& facts) {
  return describe_element(facts, facts.elements.front());
}

// One case: what must be said.
struct Case {
  const char* what;
  OpFacts facts;
  Cause cause;
  const char* headline;  // whole; "" to skip
  const char* phrase;    // part of the explanation
  const char* help;      // part of the help
};

[[gnu::noinline]] inline void check(const Case& c) {
  SCOPED_TRACE(c.facts.autograd_node + " " + c.facts.op_name + ": " + c.what);
  const Explanation e = explain(c.facts);
  EXPECT_EQ(static_cast<int>(e.cause), static_cast<int>(c.cause)) << e.headline << "\n" << e.explanation;
  EXPECT_FALSE(e.headline.empty());
  EXPECT_EQ(e.headline.find('\n'), std::string::npos);
  EXPECT_TRUE(*c.headline == '\0' || e.headline == c.headline) << e.headline;
  EXPECT_NE(e.explanation.find(c.phrase), std::string::npos) << e.explanation;
  EXPECT_NE(e.help.find(c.help), std::string::npos) << e.help;
  for (const std::string& text : {e.headline, e.explanation, e.help}) {
    EXPECT_EQ(text.find('!'), std::string::npos) << text;
    EXPECT_EQ(text.find("  "), std::string::npos) << text;
  }
}

}  // namespace sherlorch::explain_test
