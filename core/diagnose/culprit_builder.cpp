#include "core/diagnose/culprit_builder.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sherlorch {

namespace {

// It made something of numbers that the program wrote down: a NaN, or infinities that were asked for.
bool of_constants(const Visit& visit) {
  for (std::size_t o = 0; o < visit.wanted.size(); ++o) {
    const OutputRecord& output = visit.record->outputs[o];
    if (visit.record->constant_nan && visit.wanted[o].intersects(output.introduced)) return true;
    if (visit.wanted[o].intersects(output.converted)) return true;
  }
  return false;
}

bool is_node(const OpRecord& record, const Step& step) {
  return record.node_sequence >= 0 && !record.engine_work && !step.autograd_node.empty();
}

// The indices of dimension 0 that hold one of these elements; `row` elements each.
std::vector<std::int64_t> samples_of(const ElementSet& elements, std::int64_t row) {
  std::vector<std::int64_t> samples;
  for (const Run& run : elements.runs()) {
    for (std::int64_t s = run.begin / row; s <= (run.end - 1) / row; ++s) {
      if (samples.empty() || samples.back() != s) samples.push_back(s);
    }
  }
  return samples;
}

// Which samples of the batch are bad, and which of these the target never saw, where dimension 0 tells.
void note_samples(const Visit& visit, Culprit* culprit) {
  constexpr std::size_t kMostListed = 16;
  const std::size_t o = visit.shown_output();
  const OutputRecord& output = visit.record->outputs[o];
  const DimArray& sizes = output.facts.geometry.sizes;
  if (sizes.size() < 2 || sizes[0] < 2) return;
  std::int64_t row = 1;
  for (std::size_t d = 1; d < sizes.size(); ++d) row *= sizes[d];
  std::vector<std::int64_t> bad = samples_of(output.bad.all(), row);
  const std::vector<std::int64_t> kept = samples_of(visit.wanted[o], row);
  std::vector<std::int64_t> dropped;
  std::set_difference(bad.begin(), bad.end(), kept.begin(), kept.end(), std::back_inserter(dropped));
  if (static_cast<std::int64_t>(bad.size()) == sizes[0] && dropped.empty()) return;  // all of them: it does not tell
  culprit->bad_sample_count = static_cast<std::int64_t>(bad.size());
  culprit->dropped_sample_count = static_cast<std::int64_t>(dropped.size());
  bad.resize(std::min(bad.size(), kMostListed));
  dropped.resize(std::min(dropped.size(), kMostListed));
  culprit->bad_samples = std::move(bad);
  culprit->dropped_samples = std::move(dropped);
}

// Which call of its line in the trace the op was, or the forward op whose backward it is. 0 if the flight recorder does
// not hold all of them.
std::uint64_t call_of_line(const Graph& graph, const View& view, const OpRecord& record) {
  const FlightRecorder& flight = graph.flight;
  const OpSeq last = record.forward_seq != 0 ? record.forward_seq : record.seq;
  const OperatorId op = record.forward_seq != 0 ? record.forward_op : record.op;
  const OpSeq oldest = std::max(flight.first(), view.begin);
  if (record.site == 0 || last < oldest || (oldest > 1 && view.visible(oldest - 1))) return 0;
  std::uint64_t calls = 0;
  FlightHeader header;
  for (OpSeq seq = oldest; seq <= last; ++seq) {
    if (!flight.read_header(seq, &header)) continue;
    if (header.op == op && header.site == record.site && view.visible(seq)) ++calls;
  }
  return calls;
}

// Ops or tensors that were not looked at and that may have held or made a bad value.
std::uint64_t unseen(const View& view) {
  std::uint64_t count = 0;
  for (const BlindSpot& spot : view.blind_spots) {
    if (spot.kind == "recorder_error" || spot.kind == "device" || spot.kind == "no_storage" || spot.kind == "compiled")
      count += spot.count;
  }
  return count;
}

bool ran_compiled(const View& view) {
  return std::any_of(view.blind_spots.begin(), view.blind_spots.end(),
                     [](const BlindSpot& spot) { return spot.kind == "compiled" && spot.count > 0; });
}

// The op has a tensor argument of which nothing was recorded: it was left out of the call, or it could not be read.
bool has_unrecorded_argument(const OperatorInfo& op, const OpRecord& record) {
  for (std::size_t arg = 0; arg < op.arguments.size(); ++arg) {
    if (!op.arguments[arg].is_tensor) continue;
    const bool recorded = std::any_of(record.inputs.begin(), record.inputs.end(),
                                      [arg](const InputRecord& input) { return input.facts.arg == arg; });
    if (!recorded) return true;
  }
  return false;
}

bool coarse(const Visit& visit) {
  const auto& outputs = visit.record->outputs;
  return std::any_of(outputs.begin(), outputs.end(), [](const OutputRecord& output) { return output.bad.coarse(); }) ||
         std::any_of(visit.wanted.begin(), visit.wanted.end(), [](const ElementSet& set) { return set.coarse(); });
}

}  // namespace

std::string in_part_text(const std::string& writer) {
  return "sample=: " + writer +
         " wrote this memory and was scanned in part, so it may have made the bad value, or have " +
         "passed it on, or the memory was changed from outside torch";
}

Culprit CulpritBuilder::identify(const Visit& visit, const Visit** shown) const {
  Culprit culprit;
  const bool is_origin = visit.record->kind == OpKind::kOrigin || !view_.visible(visit.record->seq);
  *shown = is_origin ? visit.first_reader : &visit;
  if (is_origin) {
    origins_.tell(*visit.record, visit.first_reader == nullptr ? nullptr : visit.first_reader->record, &culprit);
  } else if (of_constants(visit)) {
    origins_.tell_constant(*visit.record, &culprit);
  }
  if (*shown == nullptr) return culprit;
  const OpRecord& record = *(*shown)->record;
  culprit.step = steps_.of_record(record, (*shown)->wanted);
  for (const SiteId site : record.stack) culprit.stack.push_back(steps_.location(site));
  // A culprit inside an autograd node is the node's doing: it goes by the node's name and shows what the node gave out,
  // and operator_name tells which ATen op inside it was the first to go wrong.
  if (is_node(record, culprit.step)) {
    culprit.step.op_name = culprit.step.autograd_node;
    const Visit& last = *end_of_node(**shown);
    const OutputRecord& output = last.record->outputs[last.shown_output()];
    steps_.describe(output.facts, output.bad, &culprit.step);
  }
  return culprit;
}

void CulpritBuilder::tell(const Visit& visit, const Visit& shown, const PathEnd& end, Culprit* culprit) const {
  const Visit& last = is_node(*shown.record, culprit->step) ? *end_of_node(shown) : shown;
  note_samples(last, culprit);
  explain_culprit(graph_, view_, shown, last, origins_.last_writer(*visit.record), culprit);
  if (visit.record->reinterpreted) explain_reinterpreted(culprit);
  culprit->first_call = call_of_line(graph_, view_, *shown.record);
  doubt(&visit, &shown, culprit);
  paths_.build(shown, end, culprit);
}

void CulpritBuilder::doubt(const Visit* visit, const Visit* shown, Culprit* culprit) const {
  std::vector<std::string> reasons;
  const auto ops = [](std::uint64_t n) { return std::to_string(n) + (n == 1 ? " op" : " ops"); };
  if (shown != nullptr) {
    const Doubts& doubts = shown->doubts;
    if (coarse(*visit)) {
      reasons.emplace_back("so many scattered elements were bad that neighbours were taken together");
    }
    if (doubts.unmapped > 0) {
      reasons.push_back("the path goes through " + ops(doubts.unmapped) +
                        " of which it is not known which elements it reads for which; the value may have been made "
                        "there, out of finite elements");
    }
    if (doubts.number) {
      reasons.emplace_back(
          "on the way the value was a Python number; it was taken for the last such number that item() gave");
    }
    if (doubts.folded > 0) {
      reasons.push_back("the history was long: " + ops(doubts.folded) + " that only carried the value on " +
                        (doubts.folded == 1 ? "was" : "were") + " let go, and with that which elements they read");
    }
  }
  const bool is_origin = shown == nullptr || shown != visit;
  const bool hidden =
      is_origin || has_unrecorded_argument(graph_.tables.operators.get(shown->record->op), *shown->record);
  if (const std::uint64_t count = unseen(view_); count > 0 && hidden && culprit->origin != Origin::kConstant) {
    reasons.emplace_back("what was not looked at (see the blind spots) may have made the value before");
    const bool unmade = culprit->origin == Origin::kInput || culprit->origin == Origin::kUninitialized;
    if (unmade && ran_compiled(view_)) {
      culprit->explanation =
          "No traced op wrote this value, but compiled code ran, and its ops were not traced: one of them may have "
          "made it.";
      culprit->help = "Run it once without compile=\"trace_opaque\": then compiled code is traced op by op.";
    }
  }
  if (visit != nullptr && visit->record->last_writer != 0 && visit->record->origin == OriginKind::kExternal &&
      scanned_in_part(view_, visit->record->outputs[0].facts.geometry)) {
    reasons.push_back(in_part_text(origins_.last_writer(*visit->record)));
  }
  // Ops of this trace have left the flight recorder, so whether one of them wrote this memory is not known.
  const OpSeq oldest = graph_.flight.first();
  if (is_origin && culprit->origin == Origin::kInput && culprit->origin_detail.empty() && oldest > 1 &&
      view_.visible(oldest - 1)) {
    reasons.emplace_back(
        "the oldest ops of the trace are forgotten, so that a write from outside torch looks like an input");
  }
  if (reasons.empty()) return;
  culprit->certain = false;
  culprit->doubt = reasons[0];
  for (std::size_t i = 1; i < reasons.size(); ++i) culprit->doubt += "; " + reasons[i];
}

}  // namespace sherlorch
