#include "core/diagnose/trace_back.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <queue>
#include <utility>

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

// From a record to its visit. Open addressing: a history may be 100,000 records long, and a node a record would take
// most of the time.
class VisitTable {
 public:
  explicit VisitTable(std::deque<Visit>& visits) : visits_(visits), slots_(64, nullptr) {}

  // The visit of this record, and whether it is new.
  std::pair<Visit*, bool> find_or_add(OpRecord* record) {
    if (2 * (visits_.size() + 1) > slots_.size()) grow();
    Visit*& slot = slot_of(record);
    if (slot != nullptr) return {slot, false};
    slot = &visits_.emplace_back();
    slot->record = record;
    return {slot, true};
  }

 private:
  Visit*& slot_of(const OpRecord* record) {
    const std::size_t mask = slots_.size() - 1;
    // Fibonacci hashing; the lowest bits of an address are always zero.
    std::size_t at = (((reinterpret_cast<std::uintptr_t>(record) >> 4) * 0x9e3779b97f4a7c15ULL) >> 20) & mask;
    while (slots_[at] != nullptr && slots_[at]->record != record) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    slots_.assign(2 * slots_.size(), nullptr);
    for (Visit& visit : visits_) slot_of(visit.record) = &visit;
  }

  std::deque<Visit>& visits_;
  std::vector<Visit*> slots_;  // a power of two of them, at most half of them taken
};

Kinds kinds_of(const Visit& visit) {
  Kinds kinds;
  for (std::size_t o = 0; o < visit.wanted.size(); ++o) {
    const ElementSet& wanted = visit.wanted[o];
    if (wanted.empty()) continue;
    const BadElements& bad = visit.record->outputs[o].bad;
    kinds.nan |= bad.nan.intersects(wanted);
    kinds.pos_inf |= bad.pos_inf.intersects(wanted);
    kinds.neg_inf |= bad.neg_inf.intersects(wanted);
  }
  return kinds;
}

// All readers of a record are newer, so `next` is final when the record's turn comes, and its doubts are known.
Doubts doubts_of(const Visit& visit) {
  if (visit.next == nullptr) return {};
  const OpRecord& reader = *visit.next->record;
  const InputRecord& input = reader.inputs[visit.next_input];
  Doubts doubts = visit.next->doubts;
  doubts.folded += visit.folded;
  doubts.number |= input.scalar;
  // Where all of the input is bad it does not matter which of it the op used.
  const bool mixed = reader.unmapped && !input.scalar && input.bad.count() < input.facts.geometry.numel();
  if (mixed) ++doubts.unmapped;
  return doubts;
}

class Walk {
 public:
  Walk(const Graph& graph, const std::function<bool(OpSeq)>& visible)
      : graph_(graph), visible_(visible), table_(history_.visits) {}

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
    const auto [visit, added] = table_.find_or_add(edge.writer);
    const std::uint32_t distance = reader == nullptr ? 0 : reader->distance + 1;
    if (added) {
      visit->wanted.resize(edge.writer->outputs.size());
      queue_.push(visit);
    }
    if (added || (accidental && (!visit->accidental || distance < visit->distance))) {
      visit->distance = distance;
      visit->next = reader;
      visit->next_input = reader_input;
      visit->folded = reader == nullptr ? 0 : edge.folded;
    }
    visit->accidental |= accidental;
    if (reader != nullptr) visit->first_reader = reader;  // readers come newest first
    const bool scalar = reader != nullptr && reader->record->inputs[reader_input].scalar;
    ElementSet theirs = scalar ? edge.writer->outputs[edge.output].bad.all() : writer_elements(edge, input, elements);
    ElementSet& wanted = visit->wanted[edge.output];
    wanted = wanted.empty() ? std::move(theirs) : set_union(wanted, theirs);
  }

  void step(Visit* visit) {
    const OpRecord& record = *visit->record;
    visit->kinds = kinds_of(*visit);
    visit->doubts = doubts_of(*visit);
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
    const DimArray& out_sizes = record.outputs[o].facts.geometry.sizes;
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
  VisitTable table_;
  std::priority_queue<Visit*, std::vector<Visit*>, Older> queue_;
};

}  // namespace

TargetRead read_target(const Graph& graph, StorageKey storage, const Geometry& geometry, const ElementSet& bad,
                       const std::function<bool(OpSeq)>& visible, ElementSet* unexplained) {
  TargetRead read;
  read.geometry = geometry;
  read.edges = graph.shadow.attribute(storage, geometry, bad, unexplained);
  // What was made outside the trace is, to this trace, nobody's.
  std::erase_if(read.edges, [&](const ReadEdge& edge) {
    if (visible(edge.writer->seq)) return false;
    *unexplained = set_union(*unexplained, edge.elements);
    return true;
  });
  return read;
}

History trace_back(const Graph& graph, const TargetRead& target, const std::function<bool(OpSeq)>& visible) {
  return Walk(graph, visible).run(target);
}

}  // namespace sherlorch
