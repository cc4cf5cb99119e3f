#include "core/diagnose/culprit_origin.h"

#include <cmath>

#include "core/diagnose/explain.h"

namespace sherlorch {

namespace {

const char* infinity_text(const BadElements& bad) {
  if (bad.neg_inf.empty()) return "inf";
  return bad.pos_inf.empty() ? "-inf" : "inf and -inf";
}

// The input with infinities that were asked for, and among its edges one that brings them; null if there is none.
const ReadEdge* deliberate_edge(const OpRecord& record) {
  for (const InputRecord& input : record.inputs) {
    if (input.deliberate.empty()) continue;
    for (const ReadEdge& edge : input.edges) {
      if (edge.elements.intersects(input.deliberate)) return &edge;
    }
  }
  return nullptr;
}

}  // namespace

std::string op_in_short(const Step& step) {
  std::string text = step.op_name;
  if (!step.location.known()) return text;
  const std::string place = step.location.text();
  const std::size_t slash = place.find_last_of("/\\");
  return text + " at " + (slash == std::string::npos ? place : place.substr(slash + 1));
}

void OriginTeller::tell(const OpRecord& record, const OpRecord* reader, Culprit* culprit) const {
  culprit->origin = Origin::kInput;
  if (!view_.visible(record.seq)) {
    culprit->origin_detail = "made outside this trace";
  } else if (record.origin == OriginKind::kConstant) {
    culprit->origin = Origin::kConstant;
    culprit->origin_label = "a literal in the program";
  } else if (record.origin == OriginKind::kUninitialized) {
    culprit->origin = Origin::kUninitialized;
    culprit->origin_label = "memory that was never written";
  } else {
    const TensorFacts& facts = record.outputs[0].facts;
    if (record.origin == OriginKind::kExternal && !scanned_in_part(view_, facts.geometry))
      culprit->origin_detail = "external write";
    const StorageLabel label = steps_.label(facts, record.seq);
    if (!label.name.empty() || facts.is_parameter) culprit->origin = Origin::kParameter;
    if (!label.name.empty()) {
      culprit->origin_label = label.text();
      if (label.buffer && culprit->origin_detail.empty()) culprit->origin_detail = "buffer";
    } else if (facts.is_parameter) {
      culprit->origin_label = "a parameter";
    }
  }
  if (!culprit->origin_label.empty() || reader == nullptr) return;
  const OperatorInfo& op = graph_.tables.operators.get(reader->op);
  culprit->origin_label = "argument " + std::to_string(record.origin_arg) + " of " + std::string(op.short_name());
  if (record.origin_arg < op.arguments.size())
    culprit->origin_label += " (" + op.arguments[record.origin_arg].name + ")";
  if (record.origin == OriginKind::kExternal && culprit->origin_detail.empty())
    culprit->origin_label += ", written by " + last_writer(record);
}

void OriginTeller::tell_constant(const OpRecord& record, Culprit* culprit) const {
  culprit->origin = Origin::kConstant;
  culprit->origin_label = record.constant_nan ? "the number nan" : asked_for(record);
}

// "-inf of masked_fill_ at model.py:12", "the number -inf"
std::string OriginTeller::asked_for(const OpRecord& record) const {
  const ReadEdge* edge = deliberate_edge(record);
  if (edge == nullptr) {
    for (const ScalarArg& arg : record.args) {
      if (arg.kind == ScalarArg::Kind::kDouble && std::isinf(arg.d)) return "the number " + format_number(arg.d);
    }
    return "an infinity";
  }
  const BadElements& bad = edge->writer->outputs[edge->output].bad;
  const char* kind = infinity_text(bad);
  const OpRecord* maker = edge->writer;
  // Records only point at older ones, so this ends.
  for (const ReadEdge* older = deliberate_edge(*maker); older != nullptr; older = deliberate_edge(*maker)) {
    maker = older->writer;
  }
  if (!view_.visible(maker->seq)) return std::string(kind) + " from before this trace";
  if (maker->op == 0) {
    const StorageLabel label = steps_.label(maker->outputs[0].facts, maker->seq);
    return std::string(kind) + " of " + (label.name.empty() ? "a mask from before the trace" : label.name);
  }
  Step step = steps_.of_record(*maker, {});
  if (step.op_name == "lift_fresh") step.op_name = "a literal";  // what torch.tensor() does last
  return std::string(kind) + " of " + op_in_short(step);
}

std::string OriginTeller::last_writer(const OpRecord& record) const {
  FlightHeader last;
  if (record.last_writer == 0 || !graph_.flight.read_header(record.last_writer, &last)) return "";
  return op_in_short(steps_.of_flight(last));
}

}  // namespace sherlorch
