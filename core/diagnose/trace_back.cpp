#include "core/diagnose/trace_back.h"

#include <algorithm>
#include <queue>

#include "core/graph/edges.h"
#include "core/operators/relation.h"

namespace sherlorch {

namespace {

// Newest first; an origin, which has the ticket of its first reader, comes after it.
struct Older {
  bool operator()(const Visit* a, const Visit* b) const {
    if (a->record->seq != b->record->seq) return a->record->seq < b->record->seq;
    return a->record->kind == OpKind::kOrigin && b->record->kind != OpKind::kOrigin;
  }
};

class Walk {
 public:
  Walk(const Graph& graph, const std::function<bool(OpSeq)>& visible) : graph_(graph), visible_(visible) {}

  History run(const TargetRead& target) {
    for (const ReadEdge& edge : target.edges) reach(edge, target.geometry, edge.elements, nullptr, 0, true);
    while (!queue_.empty()) {
      Visit* visit = queue_.top();
      queue_.pop();
      step(visit);
    }
    auto by_time = [](const Visit* a, const Visit* b) { return a->record->seq < b->record->seq; };
    std::sort(history_.culprits.begin(), history_.culprits.end(), by_time);
    std::sort(history_.deliberate.begin(), history_.deliberate.end(), by_time);
    return std::move(history_);
  }

 private:
  // These elements of `reader`'s input (null: of the target), which the edge's writer wrote, matter.
  void reach(const ReadEdge& edge, const Geometry& input, const ElementSet& elements, const Visit* reader,
             std::size_t reader_input, bool accidental) {
    if (elements.empty()) return;
    auto [entry, added] = history_.visits.try_emplace(edge.writer);
    Visit* visit = &entry->second;
    const std::uint32_t distance = reader == nullptr ? 0 : reader->distance + 1;
    if (added) {
      visit->record = edge.writer;
      visit->wanted.resize(edge.writer->outputs.size());
      visit->distance = distance;
      visit->next = reader;
      visit->next_input = reader_input;
      queue_.push(visit);
    } else if (accidental && (!visit->accidental || distance < visit->distance)) {
      visit->distance = distance;
      visit->next = reader;
      visit->next_input = reader_input;
    }
    visit->accidental |= accidental;
    if (reader != nullptr) visit->first_reader = reader->record;  // readers come newest first
    const bool scalar = reader != nullptr && reader->record->inputs[reader_input].scalar;
    ElementSet theirs = scalar ? edge.writer->outputs[edge.output].bad.all() : writer_elements(edge, input, elements);
    ElementSet& wanted = visit->wanted[edge.output];
    wanted = wanted.empty() ? std::move(theirs) : set_union(wanted, theirs);
  }

  void step(Visit* visit) {
    const OpRecord& record = *visit->record;
    if (record.kind == OpKind::kOrigin || !visible_(record.seq)) {
      bool bad = !visible_(record.seq);
      for (std::size_t o = 0; o < record.outputs.size(); ++o) {
        bad |= !set_difference(visit->wanted[o], record.outputs[o].deliberate).empty();
      }
      (bad ? history_.culprits : history_.deliberate).push_back(visit);
      return;
    }
    const OperatorInfo& op = graph_.tables.operators.get(record.op);
    bool culprit = false;
    bool asked = false;
    for (std::size_t o = 0; o < record.outputs.size(); ++o) {
      const ElementSet& wanted = visit->wanted[o];
      if (wanted.empty()) continue;
      const OutputRecord& output = record.outputs[o];
      if (output.introduced.empty() && output.deliberate.empty()) {  // the usual case, a carrier
        carry(visit, op, o, wanted, ElementSet());
        continue;
      }
      culprit |= wanted.intersects(output.introduced);
      asked |= wanted.intersects(output.deliberate);
      const ElementSet carried = set_difference(wanted, output.introduced);
      carry(visit, op, o, set_difference(carried, output.deliberate),
            set_union(set_intersection(carried, output.deliberate), set_intersection(wanted, output.converted)));
    }
    if (culprit) history_.culprits.push_back(visit);
    if (asked && !record.has_bad_input()) history_.deliberate.push_back(visit);
    if (record.unmapped) ++history_.unmapped;
  }

  void carry(Visit* visit, const OperatorInfo& op, std::size_t o, const ElementSet& accidental,
             const ElementSet& deliberate) {
    const OpRecord& record = *visit->record;
    const std::vector<std::int64_t>& out_sizes = record.outputs[o].facts.geometry.sizes;
    for (std::size_t i = 0; i < record.inputs.size(); ++i) {
      const InputRecord& input = record.inputs[i];
      if (input.edges.empty()) continue;
      const Geometry& geometry = input.facts.geometry;
      if (input.scalar) {
        for (const ReadEdge& edge : input.edges) reach(edge, geometry, edge.elements, visit, i, !accidental.empty());
        continue;
      }
      bool mapped = true;
      const Relation relation = relate(op, record, o, i, &mapped);
      if (relation.is_nothing()) continue;
      for (const ReadEdge& edge : input.edges) {
        if (!accidental.empty()) {
          const ElementSet& candidates =
              input.deliberate.empty() ? edge.elements : set_difference(edge.elements, input.deliberate);
          reach(edge, geometry, relation.sources(accidental, candidates, out_sizes, geometry.sizes), visit, i, true);
        }
        if (!deliberate.empty() && !input.deliberate.empty()) {
          const ElementSet candidates = set_intersection(edge.elements, input.deliberate);
          reach(edge, geometry, relation.sources(deliberate, candidates, out_sizes, geometry.sizes), visit, i, false);
        }
      }
    }
  }

  const Graph& graph_;
  const std::function<bool(OpSeq)>& visible_;
  History history_;
  std::priority_queue<Visit*, std::vector<Visit*>, Older> queue_;
};

}  // namespace

History trace_back(const Graph& graph, const TargetRead& target, const std::function<bool(OpSeq)>& visible) {
  return Walk(graph, visible).run(target);
}

}  // namespace sherlorch
