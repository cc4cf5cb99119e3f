#include "core/diagnose/path_builder.h"

#include <algorithm>
#include <utility>

#include "core/graph/edges.h"
#include "core/operators/relation.h"

namespace sherlorch {

namespace {

// Chosen: more than anybody reads, few enough that 100,000 ops are diagnosed at once.
constexpr std::size_t kKeptAtEachEnd = 1000;
constexpr std::size_t kKeptTransitions = 200;

bool same_node(const OpRecord& a, const OpRecord& b) {
  return a.node_sequence >= 0 && a.node_sequence == b.node_sequence && a.autograd_node == b.autograd_node &&
         !a.engine_work && !b.engine_work;
}

// In the words of counts: what an overwritten view is taken to have held.
FinitenessCounts as_written(const FinitenessCounts& written, std::int64_t numel) {
  FinitenessCounts counts = written;
  counts.numel = numel;
  counts.first_nan.clear();
  counts.first_pos_inf.clear();
  counts.first_neg_inf.clear();
  return counts;
}

}  // namespace

const Visit* end_of_node(const Visit& first) {
  const Visit* last = &first;
  while (last->next != nullptr && same_node(*last->next->record, *first.record)) last = last->next;
  return last;
}

void PathBuilder::build(const Visit& first, const PathEnd& end, Culprit* culprit) const {
  std::vector<const Visit*> hops;
  for (const Visit* visit = end_of_node(first); visit != nullptr; visit = visit->next) hops.push_back(visit);
  const bool cut = hops.size() > 2 * kKeptAtEachEnd;
  const std::vector<std::int64_t> chain = cut ? std::vector<std::int64_t>() : element_chain(hops, end.read);
  std::vector<Step>& path = culprit->path;
  const Kinds* before = nullptr;
  std::size_t transitions = 0;
  for (std::size_t k = 0; k < hops.size(); ++k) {
    const Visit& visit = *hops[k];
    const Transition transition = transition_between(before, visit.kinds);
    before = &visit.kinds;
    const bool at_end = k < kKeptAtEachEnd || k + kKeptAtEachEnd >= hops.size();
    if (!at_end && (transition == Transition::kNone || ++transitions > kKeptTransitions)) {
      path.back().folded += 1 + visit.folded;
      continue;
    }
    Step step = k == 0 ? culprit->step : steps_.of_record(*visit.record, visit.wanted);
    if (k == 1) std::replace(step.parents.begin(), step.parents.end(), hops[0]->record->seq, culprit->step.seq);
    const OutputRecord& output = visit.record->outputs[visit.shown_output()];
    const Geometry& geometry = output.facts.geometry;
    if (k < chain.size() && chain[k] >= 0 && chain[k] < geometry.numel()) step.element = geometry.index_of(chain[k]);
    // What was bad before any op touched it was not made here.
    const bool made_here = culprit->origin == Origin::kOp || culprit->origin == Origin::kConstant;
    step.transition = k == 0 && !made_here ? Transition::kNone : transition;
    step.folded = visit.folded;
    if (elements_ != nullptr) (*elements_)[step.seq] = output.bad.all();
    path.push_back(std::move(step));
    if (k == 0) culprit->step = path.front();
    add_views(visit, end, &path);
  }
}

// The views through which the next op reads what this one wrote.
void PathBuilder::add_views(const Visit& visit, const PathEnd& end, std::vector<Step>* path) const {
  const bool last = visit.next == nullptr;
  std::vector<const OpRecord*> views;
  const OpRecord* via = last ? end.via : visit.next->record->inputs[visit.next_input].via;
  for (; via != nullptr; via = via->inputs.empty() ? nullptr : via->inputs[0].via) views.push_back(via);
  std::reverse(views.begin(), views.end());
  const FinitenessCounts written = path->back().counts;
  for (const OpRecord* view : views) {
    Step step = steps_.of_view(*view, BadElements());
    const TensorFacts& facts = view->outputs[0].facts;
    if (view == end.via && last) {
      step.counts = *end.counts;
    } else {
      step.counts = counts_of(graph_.shadow.expected(facts.storage, facts.geometry), facts.geometry);
      // overwritten since: as far as we know it held what was written
      if (step.counts.finite()) step.counts = as_written(written, step.counts.numel);
    }
    path->push_back(std::move(step));
  }
}

// One bad element of the target, followed back to the first hop: an element of each hop's output; -1 unknown.
std::vector<std::int64_t> PathBuilder::element_chain(const std::vector<const Visit*>& hops,
                                                     const TargetRead& target) const {
  std::vector<std::int64_t> chain(hops.size(), -1);
  ElementSet wanted;  // of the reader's output
  for (std::size_t k = hops.size(); k-- > 0;) {
    const Visit& visit = *hops[k];
    ElementSet theirs;
    if (k + 1 == hops.size()) {
      for (const ReadEdge& edge : target.edges) {
        if (edge.writer == visit.record && theirs.empty())
          theirs = writer_elements(edge, target.geometry, edge.elements);
      }
    } else {
      theirs = sources_of(visit, wanted);
    }
    if (k == 0) {
      const ElementSet made = set_intersection(theirs, visit.record->outputs[visit.shown_output()].introduced);
      if (!made.empty()) theirs = made;
    }
    if (theirs.empty()) break;
    chain[k] = theirs.first();
    wanted = ElementSet::range(theirs.first(), theirs.first() + 1);
  }
  return chain;
}

ElementSet PathBuilder::sources_of(const Visit& visit, const ElementSet& wanted) const {
  const Visit& reader = *visit.next;
  const OpRecord& record = *reader.record;
  const InputRecord& input = record.inputs[visit.next_input];
  for (const ReadEdge& edge : input.edges) {
    if (edge.writer != visit.record) continue;
    if (input.scalar) return ElementSet::range(0, 1);
    if (wanted.empty()) return writer_elements(edge, input.facts.geometry, edge.elements);
    const std::size_t o = reader.shown_output();
    bool mapped = true;
    const Relation relation = relate(graph_.tables.operators.get(record.op), record, o, visit.next_input, &mapped);
    ElementSet theirs = writer_elements(
        edge, input.facts.geometry,
        relation.sources(wanted, edge.elements, record.outputs[o].facts.geometry.sizes, input.facts.geometry.sizes));
    if (!theirs.empty()) return theirs;
  }
  return {};
}

}  // namespace sherlorch
