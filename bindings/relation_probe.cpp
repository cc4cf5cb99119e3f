#include "bindings/relation_probe.h"

#include <mutex>

#include "adapter/session.h"
#include "core/operators/relation.h"

namespace sherlorch {

std::optional<std::vector<std::int64_t>> last_relation(std::size_t output, std::size_t input,
                                                       const std::vector<std::int64_t>& elements) {
  Graph& graph = Session::get().recorder().graph();
  std::lock_guard lock(graph.mutex);
  const OpRecord* record = graph.store.newest_op();
  if (record == nullptr || output >= record->outputs.size() || input >= record->inputs.size()) return std::nullopt;
  bool mapped = true;
  const Relation relation = relate(graph.tables.operators.get(record->op), *record, output, input, &mapped);
  const Geometry& out = record->outputs[output].facts.geometry;
  const Geometry& in = record->inputs[input].facts.geometry;
  const ElementSet image =
      relation.reached(ElementSet::range(0, out.numel()), ElementSet::of(elements), out.sizes, in.sizes);
  std::vector<std::int64_t> reached;
  image.for_each([&](std::int64_t element) {
    reached.push_back(element);
    return true;
  });
  return reached;
}

std::string last_operator() {
  Graph& graph = Session::get().recorder().graph();
  std::lock_guard lock(graph.mutex);
  const OpRecord* record = graph.store.newest_op();
  return record == nullptr ? "" : graph.tables.operators.get(record->op).full_name();
}

}  // namespace sherlorch
