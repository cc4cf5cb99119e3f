// Bad values that no op of the recording made: where do they come from?
#include <algorithm>
#include <mutex>
#include <utility>

#include "core/operators/relation.h"
#include "core/record/bad_op.h"
#include "core/record/inputs_by_entry.h"

namespace sherlorch {

namespace {

BadElements intersect(const BadElements& bad, const ElementSet& set) {
  return {set_intersection(bad.nan, set), set_intersection(bad.pos_inf, set), set_intersection(bad.neg_inf, set)};
}

// The last op of this recording that wrote the byte, or handed it out unwritten; 0 if the flight recorder holds none.
struct LastWriter {
  OpSeq seq = 0;
  bool uninitialized = false;
};

LastWriter last_writer(const FlightRecorder& flight, OpSeq begin, OpSeq end, const CallTensor& tensor,
                       std::int64_t byte) {
  LastWriter last;
  const std::uint8_t tag = address_tag(tensor.data, tensor.offset);
  flight.backwards(begin, end, [&](const FlightOp& op) {
    for (const FlightTensor& written : op.tensors) {
      if (written.storage != tensor.storage || written.tag != tag || byte < written.begin || byte >= written.end)
        continue;
      if (written.role != TensorRole::kWrite && written.role != TensorRole::kUninitialized) continue;
      last = {op.seq, written.role == TensorRole::kUninitialized};
      return false;
    }
    return true;
  });
  return last;
}

}  // namespace

OpRecord* BadOp::open_origin(Seen& seen, const BadElements& unexplained) {
  if (seen.guard == nullptr) return nullptr;
  const CallTensor& tensor = *seen.tensor;
  TensorFacts facts = tensor_facts(tensor);
  const ElementSet all = unexplained.all();
  const std::int64_t bytes = facts.geometry.end_byte() - facts.geometry.begin_byte();

  // Another storage object over the same memory (numpy and back, a buffer): the writes to that one answer.
  std::int64_t offset = 0;
  const auto* first_byte = static_cast<const char*>(tensor.data) - tensor.offset + facts.geometry.begin_byte();
  const StorageKey other = graph_.shadow.find_by_address(first_byte, bytes, tensor.storage, &offset);
  if (other != 0) {
    const StorageKey storage = tensor.storage;
    open(seen);
    graph_.shadow.adopt(storage, other, offset - facts.geometry.begin_byte(), facts.geometry);
    return graph_.shadow.newest_writer(storage, facts.geometry);
  }

  auto origin = std::make_unique<OpRecord>();
  origin->kind = OpKind::kOrigin;
  origin->seq = header_->seq;
  origin->thread = call_.thread;
  origin->origin_arg = tensor.arg;
  const LastWriter last = last_writer(graph_.flight, recorder_.recording_begin(), header_->seq, tensor,
                                      facts.geometry.byte_of(all.first()));
  const bool number = tensor.dims == 0 && tensor.arg > 0 && call_.traits->takes_number;
  if (last.seq == 0 && number) {
    // x[1:] = inf: torch makes a tensor of the number without an op.
    origin->origin = OriginKind::kConstant;
  } else if (last.seq == 0) {
    origin->origin = OriginKind::kInput;
  } else {
    origin->origin = last.uninitialized ? OriginKind::kUninitialized : OriginKind::kExternal;
    origin->last_writer = last.seq;
    FlightHeader header;
    if (last.uninitialized && graph_.flight.read_header(last.seq, &header)) {
      origin->op = header.op;
      origin->site = header.site;
      origin->module = header.module;
    }
  }
  OutputRecord output;
  output.facts = std::move(facts);
  output.bad = unexplained;
  if (origin->origin == OriginKind::kInput && seen.additive_mask) {
    output.deliberate = all;
  } else if (origin->origin == OriginKind::kConstant) {
    output.deliberate = set_union(unexplained.pos_inf, unexplained.neg_inf);
    output.introduced = unexplained.nan;
  } else {
    output.introduced = all;
  }
  origin->outputs.push_back(std::move(output));
  OpRecord* kept = graph_.store.add(std::move(origin));
  const StorageKey storage = tensor.storage;
  open(seen);
  // Only the unexplained elements are the origin's; what other writes made stays theirs.
  graph_.shadow.add_resident(storage, kept, 0, all);
  graph_.store.release(kept);
  return kept;
}

void BadOp::note_existing(Recorder& recorder, const CallTensor& tensor, OpCall call) {
  CallTensor copy = tensor;
  FlightHeader header;
  header.seq = recorder.graph_.flight.end();
  BadOp op(recorder, call, &header);
  op.bad_output_ = true;  // so that the tensor is looked at
  op.look_at_input(&copy, false);
  std::lock_guard lock(recorder.graph_.mutex);
  OpRecord scratch;
  for (Seen& seen : op.inputs_) op.add_input(&scratch, seen);
  recorder.shadows_.store(recorder.graph_.shadow.size(), std::memory_order_relaxed);
}

// lift_fresh: a literal of the program (torch.tensor), or foreign memory (from_numpy, frombuffer).
void BadOp::enter_literal() {
  Shadow& shadow = graph_.shadow;
  for (Seen& seen : outputs_) {
    if (seen.guard == nullptr) continue;
    const CallTensor& tensor = *seen.tensor;
    TensorFacts facts = tensor_facts(tensor);
    // torch.tensor() allocates its memory by an op of its own just before; foreign memory has no such op.
    const LastWriter last =
        last_writer(graph_.flight, recorder_.recording_begin(), header_->seq, tensor, facts.geometry.begin_byte());
    if (last.seq == 0) {
      ElementSet unexplained;
      const ElementSet all = seen.bad.all();
      shadow.attribute(tensor.storage, facts.geometry, all, &unexplained);
      if (!unexplained.empty()) open_origin(seen, intersect(seen.bad, unexplained));
      continue;
    }
    auto record = std::make_unique<OpRecord>();
    fill_basics(record.get());
    OutputRecord output;
    output.bad = seen.bad;
    // A NaN that item() has just taken out of a tensor and that comes back as a literal is the same NaN; an infinity is
    // taken at its word.
    OpRecord* item = recorder_.last_items_[0];
    if (item != nullptr && !seen.bad.nan.empty()) {
      InputRecord input;
      input.scalar = true;
      input.bad.nan = ElementSet::range(0, 1);
      ReadEdge edge;
      edge.writer = item;
      edge.elements = ElementSet::range(0, 1);
      input.edges.push_back(std::move(edge));
      record->inputs.push_back(std::move(input));
    } else if (!seen.bad.nan.empty()) {
      record->kind = OpKind::kOrigin;
      record->origin = OriginKind::kConstant;
      output.introduced = seen.bad.nan;
    }
    output.deliberate = set_union(seen.bad.pos_inf, seen.bad.neg_inf);
    const Geometry geometry = facts.geometry;
    output.facts = std::move(facts);
    record->outputs.push_back(std::move(output));
    OpRecord* kept = graph_.store.add(std::move(record));
    const StorageKey storage = tensor.storage;
    open(seen);
    shadow.write(storage, geometry, kept, 0, kept->outputs[0].bad.all());
    graph_.store.release(kept);
  }
}

// The introduced elements of an output that may depend on what the same memory held before the op.
ElementSet BadOp::read_before(const OpRecord& record, std::size_t o, const std::vector<std::size_t>& inputs) const {
  const OutputRecord& output = record.outputs[o];
  ElementSet reached;
  for (const std::size_t i : inputs) {
    const InputRecord& input = record.inputs[i];
    if (input.scalar || input.facts.arg != output.facts.arg || input.facts.list_index != output.facts.list_index)
      continue;
    bool mapped = true;
    const Relation relation = relate(graph_.tables.operators.get(call_.op), record, o, i, &mapped);
    reached = set_union(reached, relation.reached(output.introduced, output.introduced, output.facts.geometry.sizes,
                                                  input.facts.geometry.sizes));
  }
  return reached;
}

// An in-place op introduced something, and what its tensor held before is not known to have been finite: ask the flight
// recorder who wrote it last. Memory that nobody wrote was bad already.
void BadOp::explain_first_touch(OpRecord* record) {
  bool changed = false;
  const InputsByEntry meet(graph_.tables.operators.get(call_.op), *record, InputsByEntry::Which::kAll);
  for (std::size_t o = 0; o < record->outputs.size(); ++o) {
    OutputRecord& output = record->outputs[o];
    if (!output.facts.written_arg || output.introduced.empty()) continue;
    if (call_.traits->overwrites) continue;
    const CallTensor& tensor = *outputs_[o].tensor;
    // Only where the op reads what the tensor held: not an out= argument, not what a fill overwrites.
    const ElementSet readable = read_before(*record, o, meet.of(output.facts.list_index));
    std::vector<std::int64_t> unwritten;
    std::int64_t looked = 0;
    readable.for_each([&](std::int64_t i) {
      const LastWriter last = last_writer(graph_.flight, recorder_.recording_begin(), header_->seq, tensor,
                                          output.facts.geometry.byte_of(i));
      if (last.seq != 0 && last.uninitialized) unwritten.push_back(i);
      return ++looked < 16;  // each look goes through the flight recorder
    });
    if (unwritten.empty()) continue;
    // All of the memory came from the same allocation: what was not written since is judged alike.
    const ElementSet elements = looked < readable.count() ? readable : ElementSet::of(unwritten);
    auto origin = std::make_unique<OpRecord>();
    origin->kind = OpKind::kOrigin;
    origin->origin = OriginKind::kUninitialized;
    origin->seq = header_->seq;
    OutputRecord held;
    held.facts = output.facts;
    held.bad = intersect(output.bad, elements);
    held.introduced = elements;
    origin->outputs.push_back(std::move(held));
    OpRecord* kept = graph_.store.add(std::move(origin));
    for (const std::size_t i : meet.of(output.facts.list_index)) {
      InputRecord& input = record->inputs[i];
      if (input.facts.arg != output.facts.arg || input.facts.list_index != output.facts.list_index || input.scalar)
        continue;
      input.bad = kept->outputs[0].bad;
      ReadEdge edge;
      edge.writer = kept;
      edge.elements = elements;
      input.edges.push_back(std::move(edge));
    }
    output.introduced = set_difference(output.introduced, elements);
    to_release_.push_back(kept);
    changed = true;
  }
  if (!changed) return;
  introduced_ = 0;
  for (const OutputRecord& output : record->outputs) {
    if (!output.introduced.empty()) introduced_ = record->seq;
  }
}

}  // namespace sherlorch
