// What was seen and did not matter.
#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "core/diagnose/diagnose.h"
#include "core/diagnose/step_builder.h"
#include "core/diagnose/trace_back.h"

namespace sherlorch {

std::vector<Step> bystanders(Graph& graph, const Target& target, const View& view, std::size_t limit) {
  if (limit == 0) return {};
  const StepBuilder steps(graph, view);
  std::lock_guard lock(graph.mutex);
  ElementSet unexplained;
  const TargetRead read =
      read_target(graph, target.facts.storage, target.facts.geometry, target.bad.all(), view.visible, &unexplained);
  const History history = trace_back(graph, read, view.visible);
  std::unordered_set<const OpRecord*> mattered;
  for (const Visit* visit : history.culprits) {
    mattered.insert(visit->record);
    if (visit->first_reader != nullptr) mattered.insert(visit->first_reader->record);
  }
  std::vector<Step> found;
  graph.store.backwards([&](const OpRecord& record) {
    if (record.kind != OpKind::kOp || !view.visible(record.seq) || mattered.contains(&record)) return true;
    const auto made = std::find_if(record.outputs.begin(), record.outputs.end(),
                                   [](const OutputRecord& output) { return !output.introduced.empty(); });
    if (made == record.outputs.end()) return true;
    Step step = steps.of_record(record, {});
    steps.describe(made->facts, made->bad, &step);
    found.push_back(std::move(step));
    return found.size() < limit;
  });
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace sherlorch
