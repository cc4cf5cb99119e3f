#include "core/diagnose/trace_back.h"

#include <algorithm>
#include <cstdint>
#include <memory>
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

// Asks the memory for records before the walk needs them. From a record to the one that wrote its input it is several
// loads, each of which waits for the one before; but in a long history that writer is nearly always the record that was
// made before it, and those can be asked for beforehand. It only ever costs time.
class Lookahead {
 public:
  // The walk is at this record.
  void follow(const OpRecord& at) {
    const bool dense = last_ != nullptr && OpStore::older(*last_) == &at;
    last_ = &at;
    if (inputs_ == nullptr || inputs_->seq >= at.seq) {  // the walk has overtaken it
      if (!dense) return;
      inputs_ = older(&at);
      whole_ = older(inputs_);
    }
    inputs_ = whole_;
    whole_ = older(whole_);
    if (inputs_ != nullptr) fetch_inputs(*inputs_);
    if (whole_ != nullptr) fetch_whole(*whole_);
  }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kMostInputs = 4;

  // `bytes` of what the walk reads of it.
  static void fetch(const void* first, std::size_t bytes) {
    const char* byte = static_cast<const char*>(first);
    for (std::size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(byte + at);
    __builtin_prefetch(byte + bytes - 1);
  }
  static void fetch_inputs(const OpRecord& record) {
    for (std::size_t i = 0; i < std::min(record.inputs.size(), kMostInputs); ++i) {
      fetch(&record.inputs[i], sizeof(InputRecord) - sizeof(BadElements));
    }
  }
  // Up to where its only output ends, as most have it.
  static void fetch_whole(const OpRecord& record) {
    const auto* const end = reinterpret_cast<const char*>(&record.outputs + 1) - sizeof(ElementSet);
    fetch(&record, static_cast<std::size_t>(end - reinterpret_cast<const char*>(&record)));
  }

  static const OpRecord* older(const OpRecord* record) { return record == nullptr ? nullptr : OpStore::older(*record); }

  const OpRecord* last_ = nullptr;
  const OpRecord* inputs_ = nullptr;  // the record whose inputs are asked for; null: none
  const OpRecord* whole_ = nullptr;   // made before it: itself
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
  Walk(const Graph& graph, const std::function<bool(OpSeq)>& visible) : graph_(graph), visible_(visible) {
    history_.visits.reserve(graph.store.size());  // so that no visit moves
  }

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
    const auto [visit, added] = visit_of(edge.writer);
    const std::uint32_t distance = reader == nullptr ? 0 : reader->distance + 1;
    if (added) queue_.push(visit);
    if (added || (accidental && (!visit->accidental || distance < visit->distance))) {
      visit->distance = distance;
      visit->next = reader;
      visit->next_input = static_cast<std::uint32_t>(reader_input);
      visit->folded = reader == nullptr ? 0 : edge.folded;
    }
    visit->accidental |= accidental;
    if (reader != nullptr) visit->first_reader = reader;  // readers come newest first
    const bool scalar = reader != nullptr && reader->record->inputs[reader_input].scalar;
    ElementSet& wanted = visit->wanted[edge.output];
    if (scalar) {
      add(edge.writer->outputs[edge.output].bad.all(), &wanted);
    } else if (same_elements(edge, input)) {
      add(elements, &wanted);
    } else {
      add(writer_elements(edge, input, elements), &wanted);
    }
  }

  static void add(const ElementSet& more, ElementSet* set) {
    if (set->empty()) {
      *set = more;
    } else if (*set != more || more.coarse() != set->coarse()) {
      *set = set_union(*set, more);
    }
  }

  // The visit of this record, and whether it is new.
  std::pair<Visit*, bool> visit_of(OpRecord* record) {
    std::vector<Visit>& visits = history_.visits;
    const std::size_t known = record->walk_entry;
    if (known < visits.size() && visits[known].record == record) return {&visits[known], false};
    record->walk_entry = static_cast<std::uint32_t>(visits.size());
    return {&visits.emplace_back(record), true};
  }

  const MappedOperator& operator_of(OperatorId id) {
    if (id >= operators_.size()) operators_.resize(id + 1);
    if (operators_[id] == nullptr) {
      operators_[id] = std::make_unique<MappedOperator>(graph_.tables.operators.get(id));
    }
    return *operators_[id];
  }

  void step(Visit* visit) {
    const OpRecord& record = *visit->record;
    lookahead_.follow(record);
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
    const MappedOperator& op = operator_of(record.op);
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

  void carry(Visit* visit, const MappedOperator& op, std::size_t o, const ElementSet& accidental,
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
      if (input.deliberate.empty() && op.surely_identity(record, o, i)) {  // the usual case, without temporaries
        if (accidental.empty()) continue;
        for (const ReadEdge& edge : input.edges) {
          if (edge.elements == accidental && edge.elements.coarse() == accidental.coarse()) {
            reach(edge, geometry, edge.elements, visit, i, true);
          } else {
            reach(edge, geometry, set_intersection(accidental, edge.elements), visit, i, true);
          }
        }
        continue;
      }
      bool mapped = true;
      const Relation relation = op.relate(record, o, i, &mapped);
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
  Lookahead lookahead_;
  std::vector<std::unique_ptr<MappedOperator>> operators_;  // by id; null where none has been met
  std::priority_queue<Visit*, std::vector<Visit*>, Older> queue_;
};

}  // namespace

TargetRead read_target(const Graph& graph, StorageKey storage, const Geometry& geometry, const ElementSet& bad,
                       const std::function<bool(OpSeq)>& visible, ElementSet* unexplained) {
  TargetRead read;
  read.geometry = geometry;
  read.edges = graph.shadow.attribute(storage, geometry, bad, unexplained);
  // What was made outside the trace is, to this trace, nobody's.
  const auto drop = [&](const ReadEdge& edge) {
    if (visible(edge.writer->seq)) return false;
    *unexplained = set_union(*unexplained, edge.elements);
    return true;
  };
  read.edges.erase(std::remove_if(read.edges.begin(), read.edges.end(), drop), read.edges.end());
  return read;
}

History trace_back(const Graph& graph, const TargetRead& target, const std::function<bool(OpSeq)>& visible) {
  return Walk(graph, visible).run(target);
}

}  // namespace sherlorch
