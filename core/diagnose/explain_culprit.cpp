// From a culprit's record to its operands, witness and words.
#include <utility>

#include "core/diagnose/explain.h"
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
  operand.shape = facts.geometry.sizes;
  operand.dtype = view.dtype_text(facts.scalar_type);
  operand.counts = counts_of(bad, facts.geometry);
  return operand;
}

}  // namespace

void explain_culprit(const Graph& graph, const View& view, const Visit& visit, Culprit* culprit) {
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
    const StorageLabel label = view.label(input.facts.storage);
    if (label.holds_for(record.seq, !input.bad.empty()))
      operand.label = (label.buffer ? "buffer " : "parameter ") + label.name;
    facts.operands.push_back(std::move(operand));
  }
  for (const ScalarArg& arg : record.args) {
    if (arg.kind == ScalarArg::Kind::kIntList || arg.kind == ScalarArg::Kind::kNone) continue;
    Operand operand;
    operand.is_scalar = true;
    operand.name = argument_name(op, arg.arg, 0);
    operand.value = arg.kind == ScalarArg::Kind::kDouble ? arg.d : static_cast<double>(arg.i);
    facts.operands.push_back(std::move(operand));
  }
  std::size_t shown = 0;
  while (shown + 1 < visit.wanted.size() && visit.wanted[shown].empty()) ++shown;
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
    for (const OperandReading& reading : element.operands) {
      if (reading.available && !reading.is_slice) witness.operands.emplace_back(reading.name, reading.value);
    }
    culprit->witness.push_back(std::move(witness));
  }
  culprit->operands = std::move(facts.operands);
  for (const OutputRecord& output : record.outputs) {
    if (output.bad.coarse()) {
      culprit->certain = false;
      culprit->doubt = "so many scattered elements were bad that neighbours were taken together";
    }
  }
}

}  // namespace sherlorch
