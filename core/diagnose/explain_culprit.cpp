// From a culprit's record to its operands, witness and words.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "core/diagnose/explain.h"
#include "core/diagnose/find_node.h"
#include "core/diagnose/step_builder.h"

namespace sherlorch {

namespace {

std::string argument_name(const OperatorInfo& op, std::uint16_t arg, std::uint16_t list_index) {
  if (arg >= op.arguments.size()) return "argument " + std::to_string(arg);
  const ArgumentInfo& info = op.arguments[arg];
  return info.is_list ? info.name + "[" + std::to_string(list_index) + "]" : info.name;
}

Operand tensor_operand(const TensorFacts& facts, const BadElements& bad, const View& view) {
  Operand operand;
  operand.shape.assign(facts.geometry.sizes.begin(), facts.geometry.sizes.end());
  operand.dtype = view.dtype_text(facts.scalar_type);
  operand.counts = counts_of(bad, facts.geometry);
  return operand;
}

// An overwritten operand was finite, and the op that had written all of it before kept within a known magnitude.
void tell_history(const Graph& graph, const View& view, const OpRecord& record, const InputRecord& input,
                  Operand* operand) {
  constexpr OpSeq kFarthest = 1 << 16;  // chosen: farther back it takes long, and the operand is an old one
  const Geometry& geometry = input.facts.geometry;
  const OpSeq oldest = first_ticket(graph, view);
  const OpSeq begin = record.seq > oldest + kFarthest ? record.seq - kFarthest : oldest;
  std::optional<std::uint8_t> tag;
  graph.flight.backwards(begin, record.seq + 1, [&](const FlightOp& op) {
    for (const FlightTensor& tensor : op.tensors) {
      if (tensor.storage != (input.facts.storage & 0xffffffffffff) || tensor.role != TensorRole::kWrite) continue;
      if (op.seq == record.seq) {
        tag = tensor.tag;  // of this storage, as opposed to an older one at the same address
        continue;
      }
      if (!tag || tensor.tag != *tag || tensor.begin >= geometry.end_byte() || tensor.end <= geometry.begin_byte())
        continue;
      const bool whole = !tensor.gaps && tensor.begin <= geometry.begin_byte() && tensor.end >= geometry.end_byte();
      // What a literal or foreign memory held was not measured.
      const bool measured = graph.tables.operators.get(op.op).short_name() != "lift_fresh";
      if (whole && measured && view.visible(op.seq) && !op.nonfinite && std::isfinite(op.largest)) {
        operand->has_range = true;
        operand->min = -op.largest;
        operand->max = op.largest;
      }
      return false;
    }
    return true;
  });
}

// A flag or a choice (reduction, dtype, memory format): it is told apart for the words, but it is no operand.
bool is_option(const ScalarArg& arg, const std::string& name) {
  static constexpr std::string_view kChoices[] = {"reduction", "dtype",     "layout",    "memory_format",
                                                  "device",    "mask_type", "norm_type", "batch_first"};
  if (arg.kind == ScalarArg::Kind::kBool) return true;
  return arg.kind == ScalarArg::Kind::kInt &&
         std::find(std::begin(kChoices), std::end(kChoices), name) != std::end(kChoices);
}

// Where the ops of the node after `visit` turned its infinity into NaN.
NodeTurn turn_in_node(const Graph& graph, const Visit& visit, const Visit& last) {
  NodeTurn turn;
  if (visit.kinds.nan || !last.kinds.nan) return turn;
  for (const Visit* at = &visit; at != &last; at = at->next) {
    const Visit& reader = *at->next;
    if (!reader.kinds.nan) continue;
    turn.op_name = graph.tables.operators.get(reader.record->op).short_name();
    const auto& inputs = reader.record->inputs;
    std::size_t bad = 0;
    for (const InputRecord& input : inputs) bad += input.bad.empty() ? 0 : 1;
    const bool numbers_finite =
        std::all_of(reader.record->args.begin(), reader.record->args.end(),
                    [](const ScalarArg& arg) { return arg.kind != ScalarArg::Kind::kDouble || std::isfinite(arg.d); });
    turn.by_zero = turn.op_name.starts_with("mul") && bad == 1 && numbers_finite;
    return turn;
  }
  return turn;
}

}  // namespace

void explain_culprit(const Graph& graph, const View& view, const Visit& visit, const Visit& last,
                     const std::string& last_writer, Culprit* culprit) {
  const OpRecord& record = *visit.record;
  const OperatorInfo& op = graph.tables.operators.get(record.op);
  OpFacts facts;
  facts.op_name = op.short_name();
  facts.phase = record.phase;
  facts.autograd_node = culprit->step.autograd_node;
  if (record.forward_op != 0) facts.forward_op = graph.tables.operators.get(record.forward_op).short_name();
  facts.origin = culprit->origin == Origin::kConstant && record.kind == OpKind::kOp ? Origin::kOp : culprit->origin;
  if (record.constant_nan) facts.origin = Origin::kConstant;
  facts.origin_label = culprit->origin_label;
  facts.external_write = culprit->origin_detail == "external write";
  facts.last_writer = last_writer;
  facts.turn = turn_in_node(graph, visit, last);
  for (std::size_t i = 0; i < record.inputs.size(); ++i) {
    const InputRecord& input = record.inputs[i];
    if (input.scalar) continue;
    Operand operand = tensor_operand(input.facts, input.bad, view);
    operand.name = argument_name(op, input.facts.arg, input.facts.list_index);
    operand.overwritten = input.overwritten;
    if (i < record.ranges.size() && record.ranges[i].known) {
      operand.has_range = true;
      operand.min = record.ranges[i].min;
      operand.max = record.ranges[i].max;
    }
    if (input.overwritten && input.bad.empty() && facts.operands.size() < 8)
      tell_history(graph, view, record, input, &operand);
    operand.label = StepBuilder(graph, view).label(input.facts, record.seq).text();
    facts.operands.push_back(std::move(operand));
  }
  std::vector<std::string> options;
  for (const ScalarArg& arg : record.args) {
    if (arg.kind == ScalarArg::Kind::kIntList || arg.kind == ScalarArg::Kind::kNone) continue;
    Operand operand;
    operand.is_scalar = true;
    operand.name = argument_name(op, arg.arg, 0);
    if (is_option(arg, operand.name)) options.push_back(operand.name);
    operand.value = arg.kind == ScalarArg::Kind::kDouble ? arg.d : static_cast<double>(arg.i);
    facts.operands.push_back(std::move(operand));
  }
  const auto is_chosen = [&options](const std::string& name) {
    return std::find(options.begin(), options.end(), name) != options.end();
  };
  const std::size_t shown = visit.shown_output();
  facts.output = tensor_operand(record.outputs[shown].facts, record.outputs[shown].bad, view);
  facts.output.name = "output";
  facts.from_deliberate = !record.outputs[shown].converted.empty();
  for (const WitnessSample& sample : record.witness) {
    if (sample.output != shown) continue;
    ElementReading element;
    element.index = record.outputs[shown].facts.geometry.index_of(sample.linear);
    element.value = sample.value;
    for (const OperandSample& read : sample.operands) {
      const TensorFacts& from = record.inputs[read.input].facts;
      OperandReading reading;
      reading.name = argument_name(op, from.arg, from.list_index);
      reading.is_slice = read.is_slice;
      reading.available = read.available;
      reading.value = read.value;
      reading.min = read.min;
      reading.max = read.max;
      reading.sum = read.sum;
      reading.count = read.count;
      reading.bad = read.bad;
      reading.complete = read.complete;
      reading.diagonal = read.diagonal;
      element.operands.push_back(std::move(reading));
    }
    for (const Operand& operand : facts.operands) {
      if (!operand.is_scalar) continue;
      OperandReading reading;
      reading.name = operand.name;
      reading.is_scalar = true;
      reading.value = operand.value;
      element.operands.push_back(std::move(reading));
    }
    facts.elements.push_back(std::move(element));
  }
  Explanation explanation = explain(facts);
  culprit->cause = explanation.cause;
  culprit->headline = std::move(explanation.headline);
  culprit->explanation = std::move(explanation.explanation);
  culprit->help = std::move(explanation.help);
  for (const ElementReading& element : facts.elements) {
    WitnessElement witness;
    witness.index = element.index;
    witness.value = element.value;
    witness.text = describe_element(facts, element);
    // Beside slices alone, numbers such as a dimension tell nothing.
    const auto is_point = [](const OperandReading& reading) { return reading.available && !reading.is_slice; };
    bool only_slices = !element.operands.empty();
    for (const OperandReading& each : element.operands) only_slices &= each.is_scalar || !is_point(each);
    only_slices &= std::any_of(element.operands.begin(), element.operands.end(),
                               [](const OperandReading& each) { return !each.is_scalar; });
    for (const OperandReading& reading : element.operands) {
      if (!is_point(reading) || is_chosen(reading.name) || (reading.is_scalar && only_slices)) continue;
      witness.operands.emplace_back(reading.name, reading.value);
    }
    culprit->witness.push_back(std::move(witness));
  }
  std::erase_if(facts.operands, [&](const Operand& operand) { return operand.is_scalar && is_chosen(operand.name); });
  culprit->operands = std::move(facts.operands);
}

void explain_unread(const std::string& last_writer, Culprit* culprit) {
  OpFacts facts;
  facts.origin = culprit->origin;
  facts.origin_label = culprit->origin_label;
  facts.external_write = culprit->origin_detail == "external write";
  facts.last_writer = last_writer;
  facts.output.counts = culprit->step.counts;
  Explanation explanation = explain(facts);
  culprit->cause = explanation.cause;
  culprit->headline = std::move(explanation.headline);
  culprit->explanation = std::move(explanation.explanation);
  culprit->help = std::move(explanation.help);
}

void explain_reinterpreted(Culprit* culprit) {
  culprit->cause = Cause::kUnknown;
  culprit->origin_detail = "bits of another dtype";
  culprit->headline = culprit->step.op_name + " wrote values of another dtype whose bits are not finite";
  culprit->explanation =
      "It wrote through a view of another dtype, or .view(dtype) was taken of what it wrote. Read as " +
      culprit->step.dtype + ", the same bits are no finite number.";
  culprit->help = "Convert values with .to(dtype); .view(dtype) keeps the bits and not the value.";
}

}  // namespace sherlorch
