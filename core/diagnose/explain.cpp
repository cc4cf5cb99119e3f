#include "core/diagnose/explain.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch {
namespace explaining {
namespace {

const char* origin_of(const OpFacts& facts) {
  switch (facts.origin) {
    case Origin::kInput:
      return "input";
    case Origin::kParameter:
      return "parameter";
    case Origin::kConstant:
      return "constant";
    case Origin::kUninitialized:
      return "uninitialized memory";
    case Origin::kOp:
      break;
  }
  return "operand";
}

// "nan", "-inf", "nan and inf": the classes present.
std::string classes_text(const FinitenessCounts& counts) {
  std::string text;
  const auto add = [&text](std::int64_t n, const char* name) {
    if (n > 0) text += (text.empty() ? "" : " and ") + std::string(name);
  };
  add(counts.nan, "nan");
  add(counts.pos_inf, "inf");
  add(counts.neg_inf, "-inf");
  return text;
}

// What the bad operands of the op hold, all taken together.
FinitenessCounts read_counts(const OpFacts& facts) {
  FinitenessCounts all;
  for (const Operand& operand : facts.operands) {
    if (operand.is_scalar) {
      all.nan += std::isnan(operand.value) ? 1 : 0;
      all.pos_inf += operand.value == HUGE_VAL ? 1 : 0;
      all.neg_inf += operand.value == -HUGE_VAL ? 1 : 0;
      continue;
    }
    all.nan += operand.counts.nan;
    all.pos_inf += operand.counts.pos_inf;
    all.neg_inf += operand.counts.neg_inf;
  }
  return all;
}

std::string result_text(const Context& context) {
  if (context.has_result) return format_number(context.result);
  return "not finite";
}

Verdict explain_origin(const Context& context) {
  const OpFacts& facts = context.facts;
  std::string held = classes_text(read_counts(facts));
  if (held.empty()) held = classes_text(facts.output.counts);
  if (held.empty()) held = context.has_result ? format_number(context.result) : "non-finite values";
  const std::string label = facts.origin_label.empty() ? std::string("the ") + origin_of(facts) : facts.origin_label;
  Verdict result;
  result.cause = Cause::kBadOrigin;
  result.headline = label + " held " + held + " before any op touched it";
  const std::string reader = context.op.empty() ? "" : " " + context.op + " is only the first op that read it.";
  if (facts.external_write) {
    result.headline = label + " was changed to " + held + " from outside torch";
    result.explanation = facts.last_writer.empty() ? "No op of the trace wrote this value into the memory."
                                                   : "The last op that wrote this memory was " + facts.last_writer +
                                                         ", and it did not write this value.";
    result.explanation += reader;
    result.help =
        "Look for what changed the memory in between without torch: numpy on y.numpy() or under from_numpy, a raw "
        "pointer, a buffer of another library.";
    return result;
  }
  switch (facts.origin) {
    case Origin::kInput:
      result.explanation = "The bad value came in with the data." + reader;
      result.help = advice::kData;
      break;
    case Origin::kParameter:
      result.explanation =
          "The bad value was stored before the trace began: by an earlier step, a checkpoint, or the "
          "initialisation." +
          reader;
      result.help =
          "Check the checkpoint that was loaded, and trace the step before this one, optimizer step "
          "included. For running statistics: one bad batch is enough to spoil them; reset or reload them.";
      break;
    case Origin::kConstant:
      result.headline =
          (context.op.empty() ? "the target" : context.op) + " read " + held + ", which the program itself wrote down";
      result.explanation = "No op made this value: it is a number of the program (" + label + ")." + reader;
      result.help = "Look at how the constant is computed outside of torch: a division by a count of 0 is common.";
      break;
    case Origin::kUninitialized:
      // a label of its own says already that nobody wrote it
      result.headline = label + (facts.origin_label.empty() ? " was never written; it holds " : " holds ") + held;
      result.explanation =
          "torch.empty (or new_empty, empty_like, resize_) hands out memory as it is, with whatever was in it before." +
          reader;
      result.help =
          "Use torch.zeros in place of torch.empty, or fill the tensor before its first use. For a "
          "parameter, call an initialiser (torch.nn.init).";
      break;
    case Origin::kOp:
      break;
  }
  return result;
}

std::string overflow_suffix(const Context& context, const Explanation& explanation) {
  const bool large = explanation.cause == Cause::kOverflow || explanation.cause == Cause::kCastOverflow;
  return large && context.out.known() ? " (" + context.out.ends() + ")" : "";
}

// Where no family has anything to say: what went in and what came out.
void fill_headline(const Context& context, Verdict& verdict) {
  if (!verdict.headline.empty()) return;
  const std::string subject = subject_of(context);
  std::string text = subject + " is " + result_text(context);
  if (subject == context.op) {
    const std::string held = classes_text(read_counts(context.facts));
    const std::string made = context.has_result ? format_number(context.result) : "a non-finite value";
    text = context.op + (held.empty() ? " made " + made : " got " + held + " and made " + made);
  }
  text += overflow_suffix(context, verdict);
  const std::string node = node_base(context.facts.autograd_node);
  if (!node.empty()) text += " in the backward of " + forward_name(context);
  verdict.headline = text;
}

// What a later op of the same autograd node made of the infinity: "0 * inf is nan"; "" if nothing.
std::string turn_text(const Context& context, const char* is) {
  const NodeTurn& turn = context.facts.turn;
  if (turn.op_name.empty()) return "";
  if (!turn.by_zero) return base_name(turn.op_name) + (*is == '=' ? " = nan" : " makes nan of it");
  return "0 * " + result_text(context) + " " + is + " nan";
}

void tell_turn(const Context& context, Verdict& verdict) {
  if (context.facts.turn.op_name.empty()) return;
  verdict.headline += ", and " + turn_text(context, "is");
  if (!context.facts.turn.by_zero) return;
  if (!verdict.explanation.empty()) verdict.explanation += ' ';
  verdict.explanation +=
      "The node then multiplies it by 0, and 0 times an infinity has no value: a gradient of 0 does not save it.";
}

Verdict judge(const Context& context) {
  if (context.facts.origin != Origin::kOp) return explain_origin(context);
  Verdict result = explain_backward(context);
  const Family* family = find_family(context.op);
  if (result.empty() && family != nullptr) result = family->explain(context);
  if (context.facts.from_deliberate) {
    result.cause = Cause::kDeliberateInfinity;
    if (result.explanation.empty()) {
      result.explanation = "The only non-finite values that it read are infinities that the program put there.";
    } else {
      result.explanation += " The infinity itself is one that the program put there.";
    }
    if (result.help.empty()) {
      result.help = "Use a large finite number in place of the infinity, or keep the masked entries out of this op.";
    }
  }
  return result;
}

}  // namespace

const Family* find_family(std::string_view op) {
  const std::array<std::span<const Family>, 10> tables = {
      unary_families(),   arithmetic_families(),    movement_families(), reduction_families(), softmax_families(),
      product_families(), normalization_families(), loss_families(),     linalg_families(),    optimizer_families()};
  for (const auto& table : tables) {
    const auto found = std::find_if(table.begin(), table.end(), [op](const Family& row) { return row.op == op; });
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

std::string general_subject(const Context& context) {
  if (context.element == nullptr || context.element->operands.empty()) return context.op;
  std::string points;
  bool any = false;
  for (const OperandReading& reading : context.element->operands) {
    if (reading.is_scalar) continue;  // eps, dim, ...: of an unknown op, only its tensors tell
    if (reading.is_slice) {
      Known slice = context.get({reading.name});
      return context.op + " over " + values_text(slice);
    }
    points += points.empty() ? "" : ", ";
    any |= reading.available;
    points += reading.available ? format_number(reading.value) : reading.name;
  }
  return !any ? context.op : context.op + "(" + points + ")";
}

std::string subject_of(const Context& context) {
  const Family* family = find_family(context.op);
  if (family != nullptr && family->subject != nullptr) {
    if (std::string text = family->subject(context); !text.empty()) return text;
  }
  return general_subject(context);
}

}  // namespace explaining

Explanation explain(const OpFacts& facts) {
  using namespace explaining;
  const Context context = make_context(facts, facts.elements.empty() ? nullptr : &facts.elements.front());
  Verdict result = judge(context);
  fill_headline(context, result);
  tell_turn(context, result);
  return result;
}

std::string describe_element(const OpFacts& facts, const ElementReading& element) {
  using namespace explaining;
  const Context context = make_context(facts, &element);
  if (facts.origin != Origin::kOp) return subject_of(context) + " = " + format_number(element.value);
  const Verdict result = judge(context);
  if (result.headline_is_witness) return result.headline;
  const std::string turn = turn_text(context, "=");
  return subject_of(context) + " = " + format_number(element.value) + overflow_suffix(context, result) +
         (turn.empty() ? "" : ", then " + turn);
}

}  // namespace sherlorch
