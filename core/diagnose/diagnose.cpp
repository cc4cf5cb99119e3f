#include "core/diagnose/diagnose.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/diagnose/step_builder.h"
#include "core/diagnose/trace_back.h"
#include "core/graph/edges.h"
#include "core/operators/relation.h"
#include "core/scan/sample.h"

namespace sherlorch {

namespace {

bool refers_to(const FlightTensor& tensor, const Target& target) {
  const Geometry& geometry = target.facts.geometry;
  return tensor.storage == (target.facts.storage & 0xffffffffffff) && tensor.tag == target.tag &&
         tensor.begin < geometry.end_byte() && geometry.begin_byte() < tensor.end;
}

class Builder {
 public:
  Builder(Graph& graph, const Target& target, const View& view, StepElements* elements)
      : graph_(graph), target_(target), view_(view), steps_(graph, view), elements_(elements) {}

  Diagnosis build() {
    diagnosis_.total_ops = view_.total_ops;
    diagnosis_.blind_spots = view_.blind_spots;
    if (target_.bad.empty()) {
      clean();
      return std::move(diagnosis_);
    }
    std::lock_guard lock(graph_.mutex);
    ElementSet unexplained;
    read_.geometry = target_.facts.geometry;
    read_.edges = graph_.shadow.attribute(target_.facts.storage, read_.geometry, target_.bad.all(), &unexplained);
    // What was made outside the trace is, to this trace, nobody's.
    std::erase_if(read_.edges, [&](const ReadEdge& edge) {
      if (view_.visible(edge.writer->seq)) return false;
      unexplained = set_union(unexplained, edge.elements);
      return true;
    });
    name_target();
    history_ = trace_back(graph_, read_, view_.visible);
    for (const Visit* visit : history_.culprits) add_culprit(*visit);
    if (!unexplained.empty()) add_unread_origin();
    for (const Visit* visit : history_.deliberate) add_deliberate(*visit);
    if (history_.unmapped > 0) {
      diagnosis_.blind_spots.push_back({"unmapped_op", history_.unmapped,
                                        std::to_string(history_.unmapped) +
                                            " ops on the way have no element map: each of their outputs was taken to "
                                            "depend on all of their inputs"});
    }
    if (diagnosis_.culprits.empty() && !diagnosis_.deliberate.empty()) {
      diagnosis_.note = "Every infinity in this tensor was put there on purpose (see the masks and literals listed).";
    }
    return std::move(diagnosis_);
  }

 private:
  void clean() {
    Step node;
    if (find_node(graph_, target_, view_, &node)) {
      diagnosis_.target = std::move(node);
      return;
    }
    if (graph_.flight.first() == 1) {
      throw UntrackedTensorError(
          "This tensor was never seen by the trace: no op inside it made, changed or read it. Diagnose a tensor that "
          "was "
          "computed while the trace was active, or move the code that makes it inside the trace.");
    }
    steps_.describe(target_.facts, target_.bad, &diagnosis_.target);
    diagnosis_.target.op_name = "tensor";
    diagnosis_.note = "The op that made this tensor has left the flight recorder; its values are finite now.";
  }

  // The target is shown as the view through which it is seen, or else as the newest op that wrote into it.
  void name_target() {
    OpRecord* writer = nullptr;
    for (const ReadEdge& edge : read_.edges) {
      if (writer == nullptr || edge.writer->seq > writer->seq) writer = edge.writer;
    }
    if (writer != nullptr) {
      via_ = graph_.shadow.find_view(target_.facts.storage, read_.geometry, writer->seq);
      if (via_ != nullptr && !view_.visible(via_->seq)) via_ = nullptr;
    }
    Step& step = diagnosis_.target;
    if (via_ != nullptr) {
      step = steps_.of_view(*via_, target_.bad);
    } else if (writer != nullptr && view_.visible(writer->seq)) {
      step = steps_.of_record(*writer, nullptr);
    }
    if (step.op_name.empty()) step.op_name = "tensor";
    steps_.describe(target_.facts, target_.bad, &step);
    step.dtype = target_.dtype;
    step.device = target_.device;
  }

  Origin origin_of(const OpRecord& record, Culprit* culprit) const {
    if (!view_.visible(record.seq)) {
      culprit->origin_detail = "made outside this trace";
      return Origin::kInput;
    }
    switch (record.origin) {
      case OriginKind::kConstant:
        culprit->origin_label = "a literal in the program";
        return Origin::kConstant;
      case OriginKind::kUninitialized:
        culprit->origin_label = "memory that was never written";
        return Origin::kUninitialized;
      case OriginKind::kExternal:
        culprit->origin_detail = "external write";
        break;
      default:
        break;
    }
    const TensorFacts& facts = record.outputs[0].facts;
    const StorageLabel label = view_.label(facts.storage);
    if (!label.name.empty()) {
      culprit->origin_label = (label.buffer ? "buffer " : "parameter ") + label.name;
      if (label.buffer && culprit->origin_detail.empty()) culprit->origin_detail = "buffer";
      return Origin::kParameter;
    }
    if (facts.is_parameter) {
      culprit->origin_label = "a parameter";
      return Origin::kParameter;
    }
    return Origin::kInput;
  }

  void add_culprit(const Visit& visit) {
    const OpRecord& record = *visit.record;
    const bool is_origin = record.kind == OpKind::kOrigin || !view_.visible(record.seq);
    Culprit culprit;
    const Visit* shown = &visit;
    if (is_origin) {
      culprit.origin = origin_of(record, &culprit);
      // Blamed at the first op of the target's history that read it.
      if (visit.first_reader != nullptr) {
        shown = &history_.visits.at(visit.first_reader);
      } else {
        add_unread(record, std::move(culprit));
        return;
      }
    } else if (constant(visit)) {
      culprit.origin = Origin::kConstant;
    }
    culprit.step = steps_.of_record(*shown->record, &shown->wanted);
    for (const SiteId site : shown->record->stack) culprit.stack.push_back(steps_.location(site));
    if (is_origin && culprit.origin_label.empty()) {
      const OperatorInfo& op = graph_.tables.operators.get(shown->record->op);
      culprit.origin_label = "argument " + std::to_string(record.origin_arg) + " of " + std::string(op.short_name());
      if (record.origin_arg < op.arguments.size())
        culprit.origin_label += " (" + op.arguments[record.origin_arg].name + ")";
    }
    if (culprit.origin_detail == "external write" && record.last_writer != 0) {
      FlightHeader last;
      if (graph_.flight.read_header(record.last_writer, &last)) {
        const Step writer = steps_.of_flight(last);
        const std::string op = writer.op_name + (writer.location.known() ? " at " + writer.location.text() : "");
        if (scanned_in_part(record.outputs[0].facts)) {
          culprit.origin_detail = "";
          culprit.origin_label += ", written by " + op;
          culprit.doubt = kScannedInPart;
        } else {
          culprit.origin_label += ", changed from outside torch after " + op + " had written it";
        }
      }
    }
    name_node(*shown, &culprit.step);
    if (merge(culprit, record)) return;
    for (const ElementSet& set : shown->wanted) note_samples(set, *shown->record, &culprit);
    explain_culprit(graph_, view_, *shown, &culprit);
    build_path(*shown, &culprit);
    doubt(*shown, &culprit);
    culprit.step.transition = culprit.path.front().transition;
    culprit.step.element = culprit.path.front().element;
    culprit.path.front() = culprit.step;
    diagnosis_.culprits.push_back(std::move(culprit));
  }

  static constexpr const char* kScannedInPart =
      "sample=: the op that wrote this was scanned in part, so it may have made the bad value, or have passed it on, "
      "or "
      "the memory was changed from outside torch";
  bool scanned_in_part(const TensorFacts& facts) const {
    return view_.sampled && facts.geometry.end_byte() - facts.geometry.begin_byte() >= kSampledFromBytes;
  }

  // What on the way is not certain.
  static void doubt(const Visit& first, Culprit* culprit) {
    std::vector<std::string> reasons;
    if (!culprit->doubt.empty()) reasons.push_back(culprit->doubt);
    bool number = false;
    std::uint64_t folded = 0;
    for (const Visit* visit = &first; visit->next != nullptr; visit = visit->next) {
      const InputRecord& input = visit->next->record->inputs[visit->next_input];
      number |= input.scalar;
      for (const ReadEdge& edge : input.edges) {
        if (edge.writer == visit->record) folded += edge.folded;
      }
    }
    if (number) {
      reasons.emplace_back(
          "on the way the value was a Python number; it was taken for the last such number that item() gave");
    }
    if (folded > 0) {
      reasons.push_back("the history was long: " + std::to_string(folded) +
                        " ops that only carried the value on were let go, and with them which elements they read");
    }
    if (reasons.empty()) return;
    culprit->certain = false;
    culprit->doubt = reasons[0];
    for (std::size_t i = 1; i < reasons.size(); ++i) culprit->doubt += "; " + reasons[i];
  }

  // A culprit inside an autograd node is the node's doing: it goes by the node's name and shows what the node gave out,
  // and operator_name tells which ATen op inside it was the first to go wrong.
  void name_node(const Visit& visit, Step* step) const {
    const OpRecord& record = *visit.record;
    if (record.node_sequence < 0 || record.engine_work || step->autograd_node.empty()) return;
    step->op_name = step->autograd_node;
    const Visit* last = &visit;
    while (last->next != nullptr && last->next->record->node_sequence == record.node_sequence &&
           last->next->record->autograd_node == record.autograd_node && !last->next->record->engine_work) {
      last = last->next;
    }
    const OutputRecord& output = last->record->outputs[shown_output(*last)];
    steps_.describe(output.facts, output.bad, step);
  }

  static bool constant(const Visit& visit) {
    for (std::size_t o = 0; o < visit.wanted.size(); ++o) {
      const OutputRecord& output = visit.record->outputs[o];
      if (visit.record->constant_nan && visit.wanted[o].intersects(output.introduced)) return true;
      if (visit.wanted[o].intersects(output.converted)) return true;
    }
    return false;
  }

  // One line in a loop is one culprit that did it several times.
  bool merge(const Culprit& culprit, const OpRecord& record) {
    const auto key = std::make_tuple(culprit.step.operator_name, culprit.step.location.text(), culprit.step.phase,
                                     culprit.step.autograd_node, culprit.step.module_path, culprit.origin,
                                     record.kind == OpKind::kOrigin ? record.outputs[0].facts.storage : StorageKey{0});
    auto [entry, added] = merged_.try_emplace(key, diagnosis_.culprits.size());
    if (added || !culprit.step.location.known()) return false;
    ++diagnosis_.culprits[entry->second].times;
    return true;
  }

  void note_samples(const ElementSet& wanted, const OpRecord& record, Culprit* culprit) const {
    if (!culprit->bad_samples.empty() || wanted.empty()) return;
    for (const OutputRecord& output : record.outputs) {
      const std::vector<std::int64_t>& sizes = output.facts.geometry.sizes;
      if (sizes.size() < 2 || sizes[0] < 2) continue;
      std::int64_t row = 1;
      for (std::size_t d = 1; d < sizes.size(); ++d) row *= sizes[d];
      std::vector<std::int64_t> samples;
      const ElementSet bad = output.bad.all();
      for (const Run& run : bad.runs()) {
        for (std::int64_t s = run.begin / row; s <= (run.end - 1) / row; ++s) {
          if (samples.empty() || samples.back() != s) samples.push_back(s);
        }
      }
      if (static_cast<std::int64_t>(samples.size()) == sizes[0]) return;  // all of them: it does not tell
      culprit->bad_sample_count = static_cast<std::int64_t>(samples.size());
      if (samples.size() > 16) samples.resize(16);
      culprit->bad_samples = std::move(samples);
      return;
    }
  }

  // The ops from `first` to the target, with the views in between, the transitions, and one chain of elements.
  // Of a very long path the middle is left out, but for its transitions; Step::folded says how many ops are missing.
  void build_path(const Visit& first, Culprit* culprit) {
    // Chosen: more than anybody reads, few enough that 100,000 ops are diagnosed at once.
    constexpr std::size_t kKeptAtEachEnd = 1000;
    constexpr std::size_t kKeptTransitions = 200;
    std::vector<const Visit*> hops;
    for (const Visit* visit = &first; visit != nullptr; visit = visit->next) hops.push_back(visit);
    const bool cut = hops.size() > 2 * kKeptAtEachEnd;
    const std::vector<std::int64_t> chain = cut ? std::vector<std::int64_t>() : element_chain(hops);
    FinitenessCounts before;
    std::size_t transitions = 0;
    for (std::size_t k = 0; k < hops.size(); ++k) {
      const Visit& visit = *hops[k];
      const FinitenessCounts relevant = relevant_counts(visit);
      Transition transition = transition_between(k == 0 ? nullptr : &before, relevant);
      before = relevant;
      const bool end = k < kKeptAtEachEnd || k + kKeptAtEachEnd >= hops.size();
      if (!end && (transition == Transition::kNone || ++transitions > kKeptTransitions)) {
        culprit->path.back().folded += 1 + folded_after(visit);
        continue;
      }
      Step step = steps_.of_record(*visit.record, &visit.wanted);
      const std::size_t shown = shown_output(visit);
      const Geometry& geometry = visit.record->outputs[shown].facts.geometry;
      if (k < chain.size() && chain[k] >= 0 && chain[k] < geometry.numel()) step.element = geometry.index_of(chain[k]);
      // What was bad before any op touched it was not made here.
      const bool made_here = culprit->origin == Origin::kOp || culprit->origin == Origin::kConstant;
      step.transition = k == 0 && !made_here ? Transition::kNone : transition;
      step.folded = folded_after(visit);
      if (elements_ != nullptr) (*elements_)[step.seq] = visit.record->outputs[shown].bad.all();
      culprit->path.push_back(std::move(step));
      add_views(visit, culprit);
    }
  }

  // Ops that the store has let go between this one and the next (see OpStore).
  static std::uint64_t folded_after(const Visit& visit) {
    if (visit.next == nullptr) return 0;
    std::uint64_t folded = 0;
    for (const ReadEdge& edge : visit.next->record->inputs[visit.next_input].edges) {
      if (edge.writer == visit.record) folded += edge.folded;
    }
    return folded;
  }

  // The views through which the next op reads what this one wrote.
  void add_views(const Visit& visit, Culprit* culprit) {
    const bool last = visit.next == nullptr;
    std::vector<const OpRecord*> views;
    const OpRecord* via = last ? via_ : visit.next->record->inputs[visit.next_input].via;
    for (; via != nullptr; via = via->inputs.empty() ? nullptr : via->inputs[0].via) views.push_back(via);
    std::reverse(views.begin(), views.end());
    const FinitenessCounts written = culprit->path.back().counts;
    for (const OpRecord* view : views) {
      Step step = steps_.of_view(*view, BadElements());
      const TensorFacts& facts = view->outputs[0].facts;
      if (view == via_ && last) {
        step.counts = diagnosis_.target.counts;
      } else {
        step.counts = counts_of(graph_.shadow.expected(facts.storage, facts.geometry), facts.geometry);
        if (step.counts.finite()) {  // overwritten since: as far as we know it held what was written
          const std::int64_t numel = step.counts.numel;
          step.counts = written;
          step.counts.numel = numel;
          step.counts.first_nan.clear();
          step.counts.first_pos_inf.clear();
          step.counts.first_neg_inf.clear();
        }
      }
      culprit->path.push_back(std::move(step));
    }
  }

  static std::size_t shown_output(const Visit& visit) {
    std::size_t shown = 0;
    while (shown + 1 < visit.wanted.size() && visit.wanted[shown].empty()) ++shown;
    return shown;
  }

  static FinitenessCounts relevant_counts(const Visit& visit) {
    FinitenessCounts counts;
    for (std::size_t o = 0; o < visit.wanted.size(); ++o) {
      const BadElements& bad = visit.record->outputs[o].bad;
      counts.nan += set_intersection(bad.nan, visit.wanted[o]).count();
      counts.pos_inf += set_intersection(bad.pos_inf, visit.wanted[o]).count();
      counts.neg_inf += set_intersection(bad.neg_inf, visit.wanted[o]).count();
    }
    return counts;
  }

  // One bad element of the target, followed back to `first`: an element of each op's output, culprit first; -1 unknown.
  std::vector<std::int64_t> element_chain(const std::vector<const Visit*>& hops) const {
    std::vector<std::int64_t> chain(hops.size(), -1);
    ElementSet wanted;  // of the reader's output
    for (std::size_t k = hops.size(); k-- > 0;) {
      const Visit& visit = *hops[k];
      ElementSet theirs;
      if (k + 1 == hops.size()) {
        for (const ReadEdge& edge : read_.edges) {
          if (edge.writer != visit.record || !theirs.empty()) continue;
          theirs = writer_elements(edge, read_.geometry, edge.elements);
        }
      } else {
        const Visit& reader = *hops[k + 1];
        const InputRecord& input = reader.record->inputs[reader_input(visit)];
        bool mapped = true;
        const std::size_t o = shown_output(reader);
        const Relation relation = input.scalar ? Relation::everything()
                                               : relate(graph_.tables.operators.get(reader.record->op), *reader.record,
                                                        o, reader_input(visit), &mapped);
        for (const ReadEdge& edge : input.edges) {
          if (edge.writer != visit.record || !theirs.empty()) continue;
          const ElementSet sources =
              input.scalar || wanted.empty()
                  ? edge.elements
                  : relation.sources(wanted, edge.elements, reader.record->outputs[o].facts.geometry.sizes,
                                     input.facts.geometry.sizes);
          theirs = input.scalar ? ElementSet::range(0, 1) : writer_elements(edge, input.facts.geometry, sources);
        }
      }
      const std::size_t shown = shown_output(visit);
      if (k == 0) {
        const ElementSet made = set_intersection(theirs, visit.record->outputs[shown].introduced);
        if (!made.empty()) theirs = made;
      }
      if (theirs.empty()) break;
      chain[k] = theirs.first();
      wanted = ElementSet::range(theirs.first(), theirs.first() + 1);
    }
    return chain;
  }
  static std::size_t reader_input(const Visit& visit) { return visit.next_input; }

  void add_deliberate(const Visit& visit) {
    Step step = steps_.of_record(*visit.record, &visit.wanted);
    if (step.op_name.empty()) {
      const StorageLabel label = view_.label(visit.record->outputs[0].facts.storage);
      step.op_name = label.name.empty() ? "input" : label.name;
    }
    for (const Step& known : diagnosis_.deliberate) {
      if (known.op_name == step.op_name && known.location.text() == step.location.text()) return;
    }
    diagnosis_.deliberate.push_back(std::move(step));
  }

  // The target itself holds an origin's values, and no op of its history has read them.
  void add_unread(const OpRecord& record, Culprit culprit) {
    if (record.op != 0 && view_.visible(record.seq)) {
      culprit.step = steps_.of_record(record, nullptr);
    } else if (!first_reader(&culprit.step)) {
      culprit.step = diagnosis_.target;
      culprit.step.op_name = origin_name(culprit.origin);
    }
    finish_unread(std::move(culprit));
  }

  // Bad elements of the target that nothing in the shadow accounts for.
  void add_unread_origin() {
    Culprit culprit;
    const StorageLabel label = view_.label(target_.facts.storage);
    if (!label.name.empty() || target_.facts.is_parameter) {
      culprit.origin = Origin::kParameter;
      culprit.origin_label =
          label.name.empty() ? "a parameter" : (label.buffer ? "buffer " : "parameter ") + label.name;
    } else {
      culprit.origin = Origin::kInput;
      culprit.origin_label = "a tensor from before the trace";
    }
    bool written = false;
    graph_.flight.backwards(graph_.flight.first(), graph_.flight.end(), [&](const FlightOp& op) {
      if (!view_.visible(op.seq)) return true;
      for (const FlightTensor& tensor : op.tensors) {
        if (!refers_to(tensor, target_) || tensor.role == TensorRole::kRead || tensor.role == TensorRole::kAlias)
          continue;
        written = true;
        if (tensor.role == TensorRole::kUninitialized) {
          culprit.origin = Origin::kUninitialized;
          culprit.origin_label = "memory that was never written";
        } else if (scanned_in_part(target_.facts)) {
          culprit.origin_label = "written by " + std::string(graph_.tables.operators.get(op.op).short_name());
          culprit.doubt = kScannedInPart;
          culprit.certain = false;
        } else {
          culprit.origin_detail = "external write";
          culprit.origin_label = "changed from outside torch";
        }
        culprit.step = steps_.of_flight(op);
        return false;
      }
      return true;
    });
    Step reader;
    const bool read = first_reader(&reader);
    if (!written && !read) {
      throw UntrackedTensorError(
          "This tensor was never seen by the trace: no op inside it made, changed or read it. Its values are "
          "non-finite "
          "already; diagnose a tensor that was computed while the trace was active, or move the code that makes it "
          "inside "
          "the trace.");
    }
    if (read && !written) culprit.step = std::move(reader);
    finish_unread(std::move(culprit));
  }

  void finish_unread(Culprit culprit) {
    steps_.describe(target_.facts, target_.bad, &culprit.step);
    culprit.step.dtype = target_.dtype;
    culprit.cause = Cause::kBadOrigin;
    culprit.headline = "the values were non-finite before any op of the trace computed with them";
    diagnosis_.target = culprit.step;
    culprit.path.push_back(culprit.step);
    diagnosis_.culprits.push_back(std::move(culprit));
  }

  // The oldest op of the trace that read the target's memory, a view op included.
  bool first_reader(Step* step) const {
    bool found = false;
    graph_.flight.forwards(graph_.flight.first(), graph_.flight.end(), [&](const FlightOp& op) {
      if (!view_.visible(op.seq)) return true;
      for (const FlightTensor& tensor : op.tensors) {
        if (tensor.role != TensorRole::kRead || !refers_to(tensor, target_)) continue;
        *step = steps_.of_flight(op);
        found = true;
        return false;
      }
      return true;
    });
    return found;
  }

  Graph& graph_;
  const Target& target_;
  const View& view_;
  StepBuilder steps_;
  StepElements* elements_;
  TargetRead read_;
  const OpRecord* via_ = nullptr;
  History history_;
  Diagnosis diagnosis_;
  std::map<std::tuple<std::string, std::string, Phase, std::string, std::string, Origin, StorageKey>, std::size_t>
      merged_;
};

}  // namespace

Diagnosis diagnose(Graph& graph, const Target& target, const View& view, StepElements* elements) {
  return Builder(graph, target, view, elements).build();
}

bool find_node(Graph& graph, const Target& target, const View& view, Step* step) {
  const StepBuilder steps(graph, view);
  {
    std::lock_guard lock(graph.mutex);
    OpRecord* found = graph.shadow.find_view(target.facts.storage, target.facts.geometry, 0);
    OpRecord* writer = graph.shadow.newest_writer(target.facts.storage, target.facts.geometry);
    const bool is_view = found != nullptr && (writer == nullptr || found->seq > writer->seq);
    if (!is_view) found = writer;
    if (found != nullptr && found->kind != OpKind::kOrigin && view.visible(found->seq)) {
      *step = is_view ? steps.of_view(*found, target.bad) : steps.of_record(*found, nullptr);
      steps.describe(target.facts, target.bad, step);
      return true;
    }
  }
  bool found = false;
  graph.flight.backwards(graph.flight.first(), graph.flight.end(), [&](const FlightOp& op) {
    if (!view.visible(op.seq)) return true;
    for (const FlightTensor& tensor : op.tensors) {
      if (!refers_to(tensor, target)) continue;
      // A tensor that was only read in the trace is known by its first reader; keep looking for who made it.
      const bool made = tensor.role != TensorRole::kRead;
      if (found && !made) continue;
      *step = steps.of_flight(op);
      steps.describe(target.facts, target.bad, step);
      step->inherited = tensor.role == TensorRole::kAlias && !view.scans_views;
      found = true;
      if (made) return false;
    }
    return true;
  });
  return found;
}

std::vector<FlightStep> timeline(Graph& graph, const View& view, std::size_t limit) {
  const StepBuilder steps(graph, view);
  std::vector<FlightStep> result;
  graph.flight.backwards(graph.flight.first(), graph.flight.end(), [&](const FlightOp& op) {
    if (!view.visible(op.seq)) return true;
    if (result.size() >= limit) return false;
    result.push_back({steps.of_flight(op), op.largest, op.nonfinite, op.absorbed});
    return result.size() < limit;
  });
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace sherlorch
