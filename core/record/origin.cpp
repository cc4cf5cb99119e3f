// Bad values that no op of the recording made: where do they come from?
#include <mutex>
#include <utility>

#include "core/operators/relation.h"
#include "core/record/bad_op.h"
#include "core/record/inputs_by_entry.h"

namespace sherlorch {

LastWriter BadOp::last_writer(const CallTensor& tensor, std::int64_t byte) const {
  if (!recorder_.written(tensor.storage)) return {};
  const ByteRead read{tensor.storage, address_tag(tensor.data, tensor.offset), tensor.dtype, byte};
  return find_last_writer(graph_.flight, recorder_.recording_begin(), header_->seq, read);
}

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

  // Usually one origin. Several where parts of the memory have different last writers that wrote it unscanned.
  const auto origins =
      split_by_last_writer(all, [&](std::int64_t i) { return last_writer(tensor, facts.geometry.byte_of(i)); });
  const StorageKey storage = tensor.storage;
  OpRecord* kept = nullptr;
  for (const auto& [writer, elements] : origins) {
    kept = graph_.store.add(make_origin(seen, facts, intersect(unexplained, elements), writer));
    if (seen.guard != nullptr) open(seen);
    // Only the unexplained elements are the origin's; what other writes made stays theirs.
    graph_.shadow.add_resident(storage, kept, 0, elements);
    graph_.store.release(kept);
  }
  return kept;
}

std::unique_ptr<OpRecord> BadOp::make_origin(const Seen& seen, const TensorFacts& facts, const BadElements& bad,
                                             const LastWriter& last) const {
  auto origin = std::make_unique<OpRecord>();
  origin->kind = OpKind::kOrigin;
  origin->seq = header_->seq;
  origin->thread = call_.thread;
  origin->origin_arg = seen.tensor->arg;
  FlightHeader header;
  if (last.seq == 0) {
    origin->origin = OriginKind::kInput;
  } else if (last.reinterpreted && graph_.flight.read_header(last.seq, &header)) {
    // Written as numbers of another type (through view(torch.int32), say), whose bits are these values.
    origin->kind = OpKind::kOp;
    origin->reinterpreted = true;
    origin->seq = last.seq;
    origin->op = header.op;
    origin->site = header.site;
    origin->module = header.module;
    origin->thread = header.thread;
    origin->phase = header.phase;
  } else {
    origin->origin = last.uninitialized ? OriginKind::kUninitialized : OriginKind::kExternal;
    origin->last_writer = last.seq;
    if (last.uninitialized && graph_.flight.read_header(last.seq, &header)) {
      origin->op = header.op;
      origin->site = header.site;
      origin->module = header.module;
    }
  }
  OutputRecord output;
  output.facts = facts;
  output.bad = bad;
  const bool mask = origin->origin == OriginKind::kInput && seen.additive_mask;
  (mask ? output.deliberate : output.introduced) = bad.all();
  origin->outputs.push_back(std::move(output));
  return origin;
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

// lift_fresh: a literal of the program (torch.tensor([inf]), x[1:] = inf), foreign memory (from_numpy, frombuffer), or
// a copy of another tensor or array that torch.tensor() has made by an op of its own.
void BadOp::enter_literal() {
  Shadow& shadow = graph_.shadow;
  for (Seen& seen : outputs_) {
    if (seen.guard == nullptr) continue;
    const CallTensor& tensor = *seen.tensor;
    TensorFacts facts = tensor_facts(tensor);
    ElementSet unexplained;
    shadow.attribute(tensor.storage, facts.geometry, seen.bad.all(), &unexplained);
    if (unexplained.empty()) continue;
    seen.bad = intersect(seen.bad, unexplained);
    if (tensor.foreign) {
      open_origin(seen, seen.bad);
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

// An in-place op introduced something, and what its tensor held is gone. Some of it was bad already: memory that nobody
// had written (the flight recorder tells), and what became a NaN though the op makes none of finite values (then
// something outside of torch, numpy say, changed the memory after its last writer).
void BadOp::explain_overwritten(OpRecord* record) {
  if (call_.traits->overwrites) return;
  bool changed = false;
  const InputsByEntry meet(graph_.tables.operators.get(call_.op), *record, InputsByEntry::Which::kAll);
  for (std::size_t o = 0; o < record->outputs.size(); ++o) {
    OutputRecord& output = record->outputs[o];
    if (!output.facts.written_arg || output.introduced.empty()) continue;
    const Seen& seen = outputs_[o];
    const CallTensor& tensor = *seen.tensor;
    const std::vector<std::size_t>& inputs = meet.of(output.facts.list_index);
    // Only where the op reads what the tensor held: not an out= argument, not what a fill overwrites.
    const ElementSet readable = read_before(*record, o, inputs);
    ElementSet impossible;
    if (call_.traits->makes_no_nan && !is_complex(tensor.dtype) && !record->constant_nan)
      impossible = set_difference(set_intersection(readable, output.bad.nan), output.converted);
    const auto parts = split_by_last_writer(
        readable, [&](std::int64_t i) { return last_writer(tensor, output.facts.geometry.byte_of(i)); });
    for (const auto& [writer, part] : parts) {
      const ElementSet held = writer.uninitialized ? part : set_intersection(part, impossible);
      if (held.empty()) continue;
      OpRecord* kept = graph_.store.add(make_origin(seen, output.facts, intersect(output.bad, held), writer));
      for (const std::size_t i : inputs) {
        InputRecord& input = record->inputs[i];
        if (input.facts.arg != output.facts.arg || input.facts.list_index != output.facts.list_index || input.scalar)
          continue;
        const BadElements& bad = kept->outputs[0].bad;
        input.bad = {set_union(input.bad.nan, bad.nan), set_union(input.bad.pos_inf, bad.pos_inf),
                     set_union(input.bad.neg_inf, bad.neg_inf)};
        ReadEdge edge;
        edge.writer = kept;
        edge.elements = held;
        input.edges.push_back(std::move(edge));
      }
      output.introduced = set_difference(output.introduced, held);
      to_release_.push_back(kept);
      changed = true;
    }
  }
  if (!changed) return;
  introduced_ = 0;
  for (const OutputRecord& output : record->outputs) {
    if (!output.introduced.empty()) introduced_ = record->seq;
  }
}

}  // namespace sherlorch
