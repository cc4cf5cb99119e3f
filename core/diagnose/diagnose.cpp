#include "core/diagnose/diagnose.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/diagnose/culprit_builder.h"
#include "core/diagnose/find_node.h"
#include "core/diagnose/step_builder.h"
#include "core/diagnose/trace_back.h"
#include "core/graph/last_writer.h"

namespace sherlorch {

namespace {

class Builder {
 public:
  Builder(Graph& graph, const Target& target, const View& view, StepElements* elements)
      : graph_(graph), target_(target), view_(view), steps_(graph, view), culprits_(graph, view, steps_, elements) {}

  Diagnosis build() {
    diagnosis_.total_ops = view_.total_ops;
    diagnosis_.blind_spots = view_.blind_spots;
    if (target_.bad.empty()) {
      clean();
      return std::move(diagnosis_);
    }
    std::lock_guard lock(graph_.mutex);
    ElementSet unexplained;
    read_ = read_target(graph_, target_.facts.storage, target_.facts.geometry, target_.bad.all(), view_.visible,
                        &unexplained);
    name_target();
    history_ = trace_back(graph_, read_, view_.visible);
    for (const Visit* visit : history_.culprits) add_culprit(*visit);
    if (!unexplained.empty()) add_unread_origins(unexplained);
    for (const Visit* visit : history_.deliberate) add_deliberate(*visit);
    if (history_.unmapped > 0) {
      const bool one = history_.unmapped == 1;
      diagnosis_.blind_spots.push_back(
          {"unmapped_op", history_.unmapped,
           std::to_string(history_.unmapped) +
               (one ? " op on the way has no element map: each of its outputs was taken to depend on all of its inputs"
                    : " ops on the way have no element map: each of their outputs was taken to depend on all of their "
                      "inputs")});
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
    if (graph_.flight.first() <= view_.begin) {  // nothing of this trace has been lost
      throw UntrackedTensorError(
          "This tensor was never seen by the trace: no op inside it made, changed or read it. Diagnose a tensor that "
          "was computed while the trace was active, or move the code that makes it inside the trace.");
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
      step = steps_.of_record(*writer, {});
    }
    if (step.op_name.empty()) step.op_name = "tensor";
    steps_.describe(target_.facts, target_.bad, &step);
    step.dtype = target_.dtype;
    step.device = target_.device;
  }

  void add_culprit(const Visit& visit) {
    const Visit* shown = nullptr;
    Culprit culprit = culprits_.identify(visit, &shown);
    if (shown == nullptr) {
      add_unread(*visit.record, std::move(culprit));
    } else if (!merge(culprit, *visit.record)) {
      culprits_.tell(visit, *shown, {read_, via_, &diagnosis_.target.counts}, &culprit);
      diagnosis_.culprits.push_back(std::move(culprit));
    }
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

  void add_deliberate(const Visit& visit) {
    Step step = steps_.of_record(*visit.record, visit.wanted);
    if (step.op_name.empty()) {
      const StorageLabel label = steps_.label(visit.record->outputs[0].facts, visit.record->seq);
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
      culprit.step = steps_.of_record(record, {});
    } else if (!first_reader(&culprit.step)) {
      culprit.step = diagnosis_.target;
      culprit.step.op_name = origin_name(culprit.origin);
    }
    finish_unread(target_.bad, std::move(culprit));
  }

  // Bad elements of the target that nothing in the shadow accounts for.
  void add_unread_origins(const ElementSet& unexplained) {
    const auto origins = split_by_last_writer(unexplained, [&](std::int64_t i) {
      const ByteRead read{target_.facts.storage, target_.tag, target_.facts.dtype, target_.facts.geometry.byte_of(i)};
      return find_last_writer(graph_.flight, first_ticket(graph_, view_), graph_.flight.end(), read, &view_.visible);
    });
    for (const auto& [writer, elements] : origins) add_unread_origin(writer, intersect(target_.bad, elements));
  }

  void add_unread_origin(const LastWriter& writer, const BadElements& bad) {
    Culprit culprit;
    FlightHeader header;
    const bool written = writer.seq != 0 && graph_.flight.read_header(writer.seq, &header);
    if (written) {
      culprit.step = steps_.of_flight(header);
    } else if (!first_reader(&culprit.step)) {
      throw UntrackedTensorError(
          "This tensor was never seen by the trace: no op inside it made, changed or read it. Its values are "
          "non-finite already; diagnose a tensor that was computed while the trace was active, or move the code that "
          "makes it inside the trace.");
    }
    if (written && writer.reinterpreted) {
      culprit.origin = Origin::kOp;
      finish_unread(bad, std::move(culprit));
      explain_reinterpreted(&diagnosis_.culprits.back());
      return;
    }
    const StorageLabel label = steps_.label(target_.facts, graph_.flight.end());
    culprit.origin = Origin::kInput;
    culprit.origin_label = "the target";
    if (written && writer.uninitialized) {
      culprit.origin = Origin::kUninitialized;
      culprit.origin_label = "memory that was never written";
    } else if (!label.name.empty() || target_.facts.is_parameter) {
      culprit.origin = Origin::kParameter;
      culprit.origin_label = label.name.empty() ? "a parameter" : label.text();
    }
    const bool in_part = written && !writer.uninitialized && scanned_in_part(view_, target_.facts.geometry);
    if (written && !writer.uninitialized && !in_part) culprit.origin_detail = "external write";
    const std::string op = in_part ? op_in_short(culprit.step) : "";
    if (in_part) culprit.origin_label += ", written by " + op;
    finish_unread(bad, std::move(culprit));
    if (in_part) {
      diagnosis_.culprits.back().certain = false;
      diagnosis_.culprits.back().doubt = in_part_text(op);
    }
  }

  void finish_unread(const BadElements& bad, Culprit culprit) {
    steps_.describe(target_.facts, bad, &culprit.step);
    culprit.step.dtype = target_.dtype;
    explain_unread(culprit.origin_detail == "external write" ? op_in_short(culprit.step) : "", &culprit);
    culprits_.doubt(nullptr, nullptr, &culprit);
    if (read_.edges.empty()) {
      diagnosis_.target = culprit.step;
      steps_.describe(target_.facts, target_.bad, &diagnosis_.target);
    }
    culprit.path.push_back(culprit.step);
    diagnosis_.culprits.push_back(std::move(culprit));
  }

  // The oldest op of the trace that read the target's memory, a view op included.
  bool first_reader(Step* step) const {
    bool found = false;
    graph_.flight.forwards(first_ticket(graph_, view_), graph_.flight.end(), [&](const FlightOp& op) {
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
  CulpritBuilder culprits_;
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

}  // namespace sherlorch
