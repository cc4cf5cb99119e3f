#include "core/diagnose/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/diagnose/find_node.h"
#include "core/diagnose/step_builder.h"

namespace sherlorch {
namespace {

bool scanned(const FlightOp& op) {
  return std::any_of(op.tensors.begin(), op.tensors.end(), [](const FlightTensor& tensor) {
    return tensor.role == TensorRole::kWrite && can_be_nonfinite(tensor.dtype);
  });
}

// Where the forward op of a backward op is written. One node runs several ops in a row, so the last answer is kept.
class ForwardPlaces {
 public:
  explicit ForwardPlaces(const FlightRecorder& flight) : flight_(flight) {}

  void apply(const FlightOp& op, FlightStep* step) {
    if (op.node_thread == 0) return;
    if (op.node_thread != thread_ || op.node_sequence != sequence_) look_up(op);
    if (!found_) return;
    step->site = site_;
    step->module = module_;
  }

 private:
  void look_up(const FlightOp& op) {
    thread_ = op.node_thread;
    sequence_ = op.node_sequence;
    found_ = false;
    FlightHeader forward = op;
    // A double backward leads to an op of the first backward pass, and that to its own forward op.
    for (int hops = 0; hops < 16 && forward.node_thread != 0; ++hops) {
      const OpSeq seq = flight_.find_forward(forward.node_thread, forward.node_sequence, forward.seq);
      if (seq == 0 || !flight_.read_header(seq, &forward)) break;
      site_ = forward.site;
      module_ = forward.module;
      found_ = true;
    }
  }

  const FlightRecorder& flight_;
  ThreadId thread_ = 0;
  std::uint32_t sequence_ = 0;
  bool found_ = false;
  SiteId site_ = 0;
  ModuleId module_ = 0;
};

}  // namespace

Timeline timeline(const Graph& graph, const View& view, std::size_t limit) {
  const StepBuilder builder(graph, view);
  ForwardPlaces forward(graph.flight);
  Timeline result;
  if (limit == 0) return result;
  const OpSeq begin = first_ticket(graph, view);
  const OpSeq end = graph.flight.end();
  // One block: what a growing vector takes and copies on the way cost more than reading the ops.
  if (begin < end) result.steps.reserve(std::min<std::size_t>(limit, end - begin));
  graph.flight.backwards(begin, end, [&](const FlightOp& op) {
    if (!view.visible(op.seq)) return true;
    FlightStep step;
    step.seq = op.seq;
    step.op = op.op;
    step.site = op.site;
    step.module = op.module;
    step.thread = op.thread;
    step.phase = op.phase;
    step.nonfinite = op.nonfinite;
    step.largest = scanned(op) && !op.nonfinite ? op.largest : std::numeric_limits<float>::quiet_NaN();
    forward.apply(op, &step);
    if (!view.names_modules(op.seq)) step.module = 0;
    if (!result.op_names.contains(step.op)) result.op_names[step.op] = builder.op_name(step.op);
    if (!result.places.contains(step.site)) result.places[step.site] = builder.location(step.site).text();
    if (!result.modules.contains(step.module)) result.modules[step.module] = graph.tables.modules.name(step.module);
    if (!result.threads.contains(step.thread)) result.threads[step.thread] = view.thread_text(step.thread);
    result.steps.push_back(step);
    return result.steps.size() < limit;
  });
  std::reverse(result.steps.begin(), result.steps.end());
  return result;
}

}  // namespace sherlorch
