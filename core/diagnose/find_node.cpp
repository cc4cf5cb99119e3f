#include "core/diagnose/find_node.h"

#include <algorithm>
#include <mutex>

#include "core/diagnose/step_builder.h"
#include "core/scan/sample.h"

namespace sherlorch {

bool refers_to(const FlightTensor& tensor, const Target& target) {
  const Geometry& geometry = target.facts.geometry;
  return tensor.storage == (target.facts.storage & 0xffffffffffff) && tensor.tag == target.tag &&
         tensor.begin < geometry.end_byte() && geometry.begin_byte() < tensor.end;
}

bool scanned_in_part(const View& view, const Geometry& geometry) {
  return view.sampled && geometry.end_byte() - geometry.begin_byte() >= kSampledFromBytes;
}

OpSeq first_ticket(const Graph& graph, const View& view) { return std::max(graph.flight.first(), view.begin); }

bool find_node(Graph& graph, const Target& target, const View& view, Step* step) {
  const StepBuilder steps(graph, view);
  {
    std::lock_guard lock(graph.mutex);
    OpRecord* found = graph.shadow.find_view(target.facts.storage, target.facts.geometry, 0);
    OpRecord* writer = graph.shadow.newest_writer(target.facts.storage, target.facts.geometry);
    const bool is_view = found != nullptr && (writer == nullptr || found->seq > writer->seq);
    if (!is_view) found = writer;
    if (found != nullptr && found->kind != OpKind::kOrigin && view.visible(found->seq)) {
      *step = is_view ? steps.of_view(*found, target.bad) : steps.of_record(*found, {});
      steps.describe(target.facts, target.bad, step);
      return true;
    }
  }
  bool found = false;
  graph.flight.backwards(first_ticket(graph, view), graph.flight.end(), [&](const FlightOp& op) {
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

}  // namespace sherlorch
