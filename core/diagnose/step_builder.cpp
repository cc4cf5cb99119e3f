#include "core/diagnose/step_builder.h"

namespace sherlorch {

FinitenessCounts counts_of(const BadElements& bad, const Geometry& geometry) {
  FinitenessCounts counts;
  counts.numel = geometry.numel();
  counts.nan = bad.nan.count();
  counts.pos_inf = bad.pos_inf.count();
  counts.neg_inf = bad.neg_inf.count();
  if (counts.nan > 0) counts.first_nan = geometry.index_of(bad.nan.first());
  if (counts.pos_inf > 0) counts.first_pos_inf = geometry.index_of(bad.pos_inf.first());
  if (counts.neg_inf > 0) counts.first_neg_inf = geometry.index_of(bad.neg_inf.first());
  return counts;
}

Transition transition_between(const Kinds* before, const Kinds& after) {
  const bool inf = after.pos_inf || after.neg_inf;
  if (before == nullptr || before->none()) {
    return after.nan ? Transition::kFiniteToNan : inf ? Transition::kFiniteToInf : Transition::kNone;
  }
  if (!before->nan && after.nan) return Transition::kInfToNan;
  if (before->nan && !after.nan && inf) return Transition::kNanToInf;
  const bool turned =
      (!before->pos_inf && after.pos_inf && !after.neg_inf) || (!before->neg_inf && after.neg_inf && !after.pos_inf);
  return !after.nan && !before->nan && turned ? Transition::kInfToInf : Transition::kNone;
}

SourceLocation StepBuilder::location(SiteId site) const {
  SourceLocation location;
  if (site == 0 || !view_.sites) return location;
  Site found = graph_.tables.sites.get(site);
  location.file = std::move(found.file);
  location.line = found.line;
  location.function = std::move(found.function);
  return location;
}

StorageLabel StepBuilder::label(const TensorFacts& facts, OpSeq seq) const {
  const std::int64_t begin = facts.geometry.begin_byte();
  const std::int64_t end = facts.geometry.end_byte();
  StorageLabel found;
  for (StorageLabel& label : view_.labels(facts.storage)) {
    if (label.begin > begin || label.end < end) continue;
    if (found.tensor == label.tensor && !found.name.empty()) continue;  // the first watch's name stays
    if (!found.name.empty()) return {};
    found = std::move(label);
  }
  if (found.name.empty() || seq >= found.since || graph_.shadow.guarded_since(facts.storage, seq)) return found;
  return {};
}

// What of the model the op has made. Not from before the name was given, and not of a part: a row of a parameter is
// none.
std::string StepBuilder::label_of_output(const OpRecord& record, const TensorFacts& facts) const {
  if (record.gradient_of.storage != 0) {
    for (const StorageLabel& label : view_.labels(record.gradient_of.storage)) {
      if (label.tensor == record.gradient_of.tensor && record.seq >= label.since && !label.gradient)
        return "gradient " + label.name + ".grad";
    }
    return "";
  }
  const StorageLabel whole = label(facts, record.seq);
  const bool all = whole.begin == facts.geometry.begin_byte() && whole.end == facts.geometry.end_byte();
  return all && !whole.gradient && record.seq >= whole.since ? whole.text() : "";
}

std::string StepBuilder::op_name(OperatorId op) const {
  return std::string(graph_.tables.operators.get(op).short_name());
}

void StepBuilder::name(OperatorId op, Step* step) const {
  const OperatorInfo& info = graph_.tables.operators.get(op);
  step->op_name = info.short_name();
  step->operator_name = info.full_name();
}

void StepBuilder::describe(const TensorFacts& facts, const BadElements& bad, Step* step) const {
  step->shape.assign(facts.geometry.sizes.begin(), facts.geometry.sizes.end());
  step->dtype = view_.dtype_text(facts.scalar_type);
  step->device = "cpu";
  step->counts = counts_of(bad, facts.geometry);
}

Step StepBuilder::of_record(const OpRecord& record, std::span<const ElementSet> wanted) const {
  Step step;
  step.seq = record.seq;
  if (record.op != 0) name(record.op, &step);
  step.location = location(record.site);
  if (record.module != 0 && view_.names_modules(record.seq))
    step.module_path = graph_.tables.modules.name(record.module);
  step.phase = record.phase;
  step.at_forward = record.forward_seq != 0;
  if (record.autograd_node != 0) {
    step.autograd_node = graph_.tables.strings.get(record.autograd_node);
    if (record.engine_work) step.autograd_node += " (the engine around it)";
  }
  step.thread_name = view_.thread_text(record.thread);
  std::size_t shown = 0;
  while (shown + 1 < wanted.size() && wanted[shown].empty()) ++shown;
  if (shown < record.outputs.size()) {
    const TensorFacts& facts = record.outputs[shown].facts;
    describe(facts, record.outputs[shown].bad, &step);
    step.label = label_of_output(record, facts);
  }
  for (const InputRecord& input : record.inputs) {
    for (const ReadEdge& edge : input.edges) {
      if (step.parents.empty() || step.parents.back() != edge.writer->seq) step.parents.push_back(edge.writer->seq);
    }
  }
  return step;
}

Step StepBuilder::of_view(const OpRecord& record, const BadElements& bad) const {
  Step step = of_record(record, {});
  describe(record.outputs.front().facts, bad, &step);
  step.inherited = !view_.scans_views;
  return step;
}

Step StepBuilder::of_flight(const FlightHeader& op) const {
  Step step;
  step.seq = op.seq;
  name(op.op, &step);
  step.location = location(op.site);
  if (op.module != 0 && view_.names_modules(op.seq)) step.module_path = graph_.tables.modules.name(op.module);
  step.phase = op.phase;
  step.thread_name = view_.thread_text(op.thread);
  step.device = "cpu";
  return step;
}

}  // namespace sherlorch
