#include "core/record/bad_op.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/base/shared_bytes.h"
#include "core/graph/edges.h"
#include "core/operators/relation.h"
#include "core/record/inputs_by_entry.h"

namespace sherlorch {

namespace {

// c10::ScalarType of the types that an index or a mask can have.
enum : std::uint8_t { kByte = 0, kChar = 1, kShort = 2, kInt = 3, kLong = 4, kBool = 11 };

bool is_integer(std::uint8_t scalar_type) noexcept { return scalar_type <= kLong || scalar_type == kBool; }

std::int64_t read_integer(const void* element, std::uint8_t scalar_type) noexcept {
  const auto* bytes = static_cast<const char*>(element);
  auto load = [&]<typename T>(T value) {
    __builtin_memcpy(&value, bytes, sizeof(T));
    return static_cast<std::int64_t>(value);
  };
  switch (scalar_type) {
    case kByte:
      return load(std::uint8_t{});
    case kChar:
      return load(std::int8_t{});
    case kShort:
      return load(std::int16_t{});
    case kInt:
      return load(std::int32_t{});
    case kLong:
      return load(std::int64_t{});
    case kBool:
      return load(std::uint8_t{}) != 0 ? 1 : 0;
    default:
      return 0;
  }
}

BadElements bad_of(const Census& census) { return {census.nan_at, census.pos_inf_at, census.neg_inf_at}; }

// Two tensors of one storage whose byte ranges overlap have an element in common. Columns of one matrix lie between
// each other and do not.
bool overlap(const CallTensor& a, const CallTensor& b) {
  constexpr std::int64_t kMostLooked = 4096;
  if ((a.contiguous && b.contiguous) || a.item_size != b.item_size || a.numel > kMostLooked) return true;
  return !sharing_bytes(tensor_facts(b).geometry, ElementSet::range(0, b.numel), tensor_facts(a).geometry,
                        ElementSet::range(0, a.numel))
              .empty();
}

// An additive attention mask: nothing but 0 and -Inf. Such a -Inf was put there on purpose, whoever made it.
bool is_additive_mask(const CallTensor& tensor, const BadElements& bad) {
  constexpr std::int64_t kMostLooked = std::int64_t{1} << 20;
  if (!bad.nan.empty() || !bad.pos_inf.empty() || is_complex(tensor.dtype) || tensor.numel > kMostLooked) return false;
  const Geometry geometry = tensor_facts(tensor).geometry;
  const auto* base = static_cast<const char*>(tensor.data) - tensor.offset;
  for (std::int64_t i = 0; i < tensor.numel; ++i) {
    const double value = read_element(base + geometry.byte_of(i), tensor.dtype).real;
    if (value != 0 && !(std::isinf(value) && value < 0)) return false;
  }
  return true;
}

}  // namespace

TensorFacts tensor_facts(const CallTensor& tensor) {
  TensorFacts facts;
  facts.arg = tensor.arg;
  facts.list_index = tensor.list_index;
  facts.storage = tensor.storage;
  facts.dtype = tensor.dtype;
  facts.scalar_type = tensor.scalar_type;
  facts.is_parameter = tensor.is_parameter;
  facts.geometry.offset = tensor.offset;
  facts.geometry.item_size = tensor.item_size;
  facts.geometry.sizes.assign(tensor.sizes, tensor.sizes + tensor.dims);
  facts.geometry.strides.resize(tensor.dims);
  for (int d = 0; d < tensor.dims; ++d) {
    facts.geometry.strides[d] = tensor.strides[d] * static_cast<std::int64_t>(tensor.item_size);
  }
  return facts;
}

double read_number(const void* element, DType dtype, std::uint8_t scalar_type) noexcept {
  if (can_be_nonfinite(dtype)) return read_element(element, dtype).real;
  return static_cast<double>(read_integer(element, scalar_type));
}

BadOp::~BadOp() {
  for (auto* list : {&outputs_, &inputs_}) {
    for (Seen& seen : *list) {
      if (seen.guard != nullptr) recorder_.hooks_.guards.release(seen.guard);
    }
  }
}

void BadOp::record() {
  look();
  {
    std::lock_guard lock(graph_.mutex);
    if (graph_.shadow.wants_sweep()) graph_.shadow.sweep();
    if (call_.traits->literal) {
      enter_literal();
    } else {
      enter();
    }
    recorder_.shadows_.store(graph_.shadow.size(), std::memory_order_relaxed);
  }
  if (introduced_ != 0 && recorder_.hooks_.on_introduced != nullptr) recorder_.hooks_.on_introduced(introduced_);
}

// One op may write a list of thousands of chunks of one storage, so the ranges are sorted.
void BadOp::note_overwritten() {
  for (const CallTensor& output : call_.outputs) {
    if (output.role != TensorRole::kWrite || output.fresh_return) continue;
    const Geometry geometry = tensor_facts(output).geometry;
    overwritten_.push_back({&output, geometry.begin_byte(), geometry.end_byte(), 0});
  }
  std::sort(overwritten_.begin(), overwritten_.end(), [](const Range& a, const Range& b) {
    return std::tie(a.tensor->storage, a.begin) < std::tie(b.tensor->storage, b.begin);
  });
  for (std::size_t i = 0; i < overwritten_.size(); ++i) {
    Range& range = overwritten_[i];
    const bool first = i == 0 || overwritten_[i - 1].tensor->storage != range.tensor->storage;
    range.farthest = first ? range.end : std::max(range.end, overwritten_[i - 1].farthest);
  }
}

bool BadOp::is_overwritten(const CallTensor& tensor) const {
  if (overwritten_.empty()) return false;
  const Geometry geometry = tensor_facts(tensor).geometry;
  const std::int64_t begin = geometry.begin_byte();
  // From the last one that begins before the tensor ends.
  auto range = std::partition_point(overwritten_.begin(), overwritten_.end(), [&](const Range& each) {
    return std::tie(each.tensor->storage, each.begin) < std::make_tuple(tensor.storage, geometry.end_byte());
  });
  while (range != overwritten_.begin()) {
    --range;
    if (range->tensor->storage != tensor.storage || range->farthest <= begin) return false;
    if (range->end > begin && overlap(tensor, *range->tensor)) return true;
  }
  return false;
}

// Reads all memory that will be needed, before the lock is taken.
void BadOp::look() {
  for (CallTensor& output : call_.outputs) {
    const bool wanted =
        output.role == TensorRole::kWrite || (call_.traits->literal && output.role == TensorRole::kAlias);
    if (!wanted) continue;
    if (output.role == TensorRole::kAlias) recorder_.scan(&output);
    Seen& seen = outputs_.emplace_back();
    seen.tensor = &output;
    if (!output.nonfinite) continue;
    seen.looked = true;
    seen.bad =
        bad_of(take_census(output.data, {output.sizes, output.dims}, {output.strides, output.dims}, output.dtype));
    seen.guard = recorder_.hooks_.acquire_guard(output.handle);
    bad_output_ |= seen.guard != nullptr;
  }
  if (!bad_output_ && !call_.traits->item) return;
  note_overwritten();
  inputs_.reserve(call_.inputs.size() + call_.hidden_inputs.size());
  for (CallTensor& input : call_.inputs) look_at_input(&input, false);
  for (CallTensor& input : call_.hidden_inputs) look_at_input(&input, true);
}

void BadOp::look_at_input(CallTensor* tensor, bool hidden) {
  Seen seen;
  seen.tensor = tensor;
  seen.overwritten = tensor->before == nullptr && is_overwritten(*tensor);
  const bool readable = !hidden && !seen.overwritten && tensor->data != nullptr && tensor->numel > 0;
  if (readable && can_be_nonfinite(tensor->dtype)) {
    seen.looked = true;
    CallTensor content = *tensor;
    content.data = tensor->readable();
    if (recorder_.scan(&content)) {
      seen.bad = bad_of(
          take_census(content.data, {tensor->sizes, tensor->dims}, {tensor->strides, tensor->dims}, tensor->dtype));
      seen.additive_mask = is_additive_mask(content, seen.bad);
      seen.guard = recorder_.hooks_.acquire_guard(tensor->handle);
    }
  } else if (readable && is_integer(tensor->scalar_type) &&
             tensor->numel <= static_cast<std::int64_t>(TensorFacts::kMaxIndexValues) &&
             needs_integer_values(graph_.tables.operators.get(call_.op), tensor->arg)) {
    const Geometry geometry = tensor_facts(*tensor).geometry;
    const auto* base = static_cast<const char*>(tensor->data) - tensor->offset;
    seen.integer_values.reserve(static_cast<std::size_t>(tensor->numel));
    for (std::int64_t i = 0; i < tensor->numel; ++i) {
      seen.integer_values.push_back(read_integer(base + geometry.byte_of(i), tensor->scalar_type));
    }
  }
  inputs_.push_back(std::move(seen));
}

void BadOp::open(Seen& seen) {
  graph_.shadow.open(seen.tensor->storage, std::exchange(seen.guard, nullptr), header_->seq);
}

void BadOp::fill_basics(OpRecord* record) const {
  record->seq = header_->seq;
  record->op = call_.op;
  record->site = call_.site;
  record->module = call_.module;
  record->thread = call_.thread;
  record->phase = call_.phase;
  record->gradient_of = call_.gradient_of;
  if (call_.node_name != nullptr) record->autograd_node = graph_.tables.strings.intern(call_.node_name);
  if (!call_.in_node && !call_.engine_work) return;
  record->engine_work = call_.engine_work;
  record->node_sequence = static_cast<std::int64_t>(call_.node_sequence);
  // The line that the user can change is that of the forward op. An op of a double backward leads to one of the first
  // backward pass, and that to its own forward op.
  FlightHeader forward;
  forward.node_thread = static_cast<std::uint16_t>(call_.node_thread);
  forward.node_sequence = static_cast<std::uint32_t>(call_.node_sequence);
  OpSeq before = header_->seq;
  for (int hops = 0; hops < 16 && forward.node_thread != 0; ++hops) {
    const OpSeq found = graph_.flight.find_forward(forward.node_thread, forward.node_sequence, before);
    if (found == 0 || !graph_.flight.read_header(found, &forward)) break;
    record->forward_seq = found;
    record->forward_op = forward.op;
    record->site = forward.site;
    record->module = forward.module;
    before = found;
    if (forward.phase != Phase::kBackward) break;
  }
}

void BadOp::fill_args(OpRecord* record) const {
  for (const CallScalar& scalar : call_.scalars) {
    ScalarArg arg;
    arg.arg = scalar.arg;
    switch (scalar.kind) {
      case CallScalar::Kind::kNone:
        continue;
      case CallScalar::Kind::kInt:
        arg.kind = ScalarArg::Kind::kInt;
        arg.i = scalar.ints[0];
        break;
      case CallScalar::Kind::kBool:
        arg.kind = ScalarArg::Kind::kBool;
        arg.i = scalar.ints[0];
        break;
      case CallScalar::Kind::kDouble:
        arg.kind = ScalarArg::Kind::kDouble;
        arg.d = scalar.number;
        if (std::isnan(scalar.number)) record->constant_nan = true;
        break;
      case CallScalar::Kind::kIntList:
        arg.kind = ScalarArg::Kind::kIntList;
        arg.list.assign(scalar.ints, scalar.ints + scalar.count);
        break;
    }
    record->args.push_back(std::move(arg));
  }
}

void BadOp::add_input(OpRecord* record, Seen& seen) {
  InputRecord input;
  input.facts = tensor_facts(*seen.tensor);
  input.facts.integer_values = std::move(seen.integer_values);
  input.overwritten = seen.overwritten;
  Shadow& shadow = graph_.shadow;
  const StorageKey storage = seen.tensor->storage;
  input.bad = seen.looked ? std::move(seen.bad) : shadow.expected(storage, input.facts.geometry);
  if (!input.bad.empty()) {
    ElementSet unexplained;
    const ElementSet all = input.bad.all();
    input.edges = shadow.attribute(storage, input.facts.geometry, all, &unexplained);
    if (!unexplained.empty() && seen.looked) {
      seen.bad = intersect(input.bad, unexplained);
      if (open_origin(seen, seen.bad) != nullptr) {
        input.edges = shadow.attribute(storage, input.facts.geometry, all, &unexplained);
      }
    }
    OpSeq newest = 0;
    for (const ReadEdge& edge : input.edges) {
      newest = std::max(newest, edge.writer->seq);
      const ElementSet& deliberate = edge.writer->outputs[edge.output].deliberate;
      input.deliberate = set_union(input.deliberate, elements_from(edge, input.facts.geometry, deliberate));
    }
    input.via = shadow.find_view(storage, input.facts.geometry, newest);
  }
  record->inputs.push_back(std::move(input));
}

// A non-finite Python number among the arguments may have come out of a tensor through item(): then the tensor's
// history goes on through it. Fills (masked_fill, full) are taken at their word, as literals, unless it is a NaN.
void BadOp::add_numbers(OpRecord* record) {
  for (const ScalarArg& arg : record->args) {
    if (arg.kind != ScalarArg::Kind::kDouble || std::isfinite(arg.d)) continue;
    if (call_.traits->fills && !std::isnan(arg.d)) continue;
    OpRecord* item = recorder_.last_items_[std::isnan(arg.d) ? 0 : arg.d > 0 ? 1 : 2];
    if (item == nullptr) continue;
    InputRecord input;
    input.scalar = true;
    input.facts.arg = arg.arg;
    ElementSet element = ElementSet::range(0, 1);
    (std::isnan(arg.d) ? input.bad.nan : arg.d > 0 ? input.bad.pos_inf : input.bad.neg_inf) = element;
    if (!item->outputs[0].deliberate.empty()) input.deliberate = element;
    ReadEdge edge;
    edge.writer = item;
    edge.elements = element;
    input.edges.push_back(std::move(edge));
    record->inputs.push_back(std::move(input));
  }
}

// Sorts the bad elements of each output: carried on, asked for, or introduced here.
void BadOp::classify(OpRecord* record) {
  const OperatorInfo& op = graph_.tables.operators.get(call_.op);
  bool number_pos = false;
  bool number_neg = false;
  for (const ScalarArg& arg : record->args) {
    if (arg.kind != ScalarArg::Kind::kDouble || !std::isinf(arg.d)) continue;
    const bool linked = std::any_of(record->inputs.begin(), record->inputs.end(), [&](const InputRecord& input) {
      return input.scalar && input.facts.arg == arg.arg;
    });
    if (!linked) (arg.d > 0 ? number_pos : number_neg) = true;
  }
  const InputsByEntry meet(op, *record, InputsByEntry::Which::kBad);
  for (std::size_t o = 0; o < record->outputs.size(); ++o) {
    OutputRecord& output = record->outputs[o];
    const ElementSet wanted = output.bad.all();
    if (wanted.empty()) continue;
    const DimArray& out_sizes = output.facts.geometry.sizes;
    ElementSet accidental;
    ElementSet from_pos = number_pos ? wanted : ElementSet();
    ElementSet from_neg = number_neg ? wanted : ElementSet();
    for (const std::size_t i : meet.of(output.facts.list_index)) {
      const InputRecord& input = record->inputs[i];
      bool mapped = true;
      const Relation relation = input.scalar ? Relation::everything() : relate(op, *record, o, i, &mapped);
      if (!mapped) record->unmapped = true;
      auto reach = [&](const ElementSet& given, ElementSet* into) {
        if (given.empty()) return;
        *into = set_union(*into, relation.reached(wanted, given, out_sizes, input.facts.geometry.sizes));
      };
      reach(set_difference(input.bad.all(), input.deliberate), &accidental);
      if (!input.deliberate.empty()) {
        reach(set_intersection(input.deliberate, input.bad.pos_inf), &from_pos);
        reach(set_intersection(input.deliberate, input.bad.neg_inf), &from_neg);
      }
    }
    const ElementSet rest = set_difference(wanted, accidental);
    if (rest.empty()) continue;
    output.deliberate = set_intersection(rest, set_union(set_intersection(output.bad.pos_inf, from_pos),
                                                         set_intersection(output.bad.neg_inf, from_neg)));
    output.introduced = set_difference(rest, output.deliberate);
    output.converted = set_intersection(output.introduced, set_union(from_pos, from_neg));
    if (!output.introduced.empty()) introduced_ = record->seq;
  }
  if (record->unmapped) recorder_.count_blind(Blind::kUnmappedOp);
}

void BadOp::enter() {
  Shadow& shadow = graph_.shadow;
  if (bad_output_) {
    auto record = std::make_unique<OpRecord>();
    fill_basics(record.get());
    fill_args(record.get());
    record->inputs.reserve(inputs_.size());
    for (Seen& seen : inputs_) add_input(record.get(), seen);
    for (Seen& seen : outputs_) {
      OutputRecord output;
      output.facts = tensor_facts(*seen.tensor);
      output.facts.written_arg = !seen.tensor->fresh_return;
      output.largest = seen.tensor->largest;
      output.bad = seen.bad;
      record->outputs.push_back(std::move(output));
    }
    add_numbers(record.get());
    classify(record.get());
    if (introduced_ != 0) explain_overwritten(record.get());
    if (introduced_ != 0) {
      sample_witness(record.get());
      if (recorder_.hooks_.capture_stack != nullptr) recorder_.hooks_.capture_stack(&record->stack);
    }
    OpRecord* kept = graph_.store.add(std::move(record));
    for (OpRecord* held : to_release_) graph_.store.release(held);
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      Seen& seen = outputs_[o];
      if (seen.guard == nullptr) continue;
      open(seen);
      shadow.write(seen.tensor->storage, kept->outputs[o].facts.geometry, kept, static_cast<std::uint16_t>(o),
                   kept->outputs[o].bad.all());
    }
    graph_.store.release(kept);
  } else if (call_.traits->item) {
    enter_item();
  }
  bool read_bad = false;
  for (const CallTensor& input : call_.inputs) {
    if (!shadow.has(input.storage)) continue;
    const Geometry geometry = tensor_facts(input).geometry;
    read_bad |= shadow.overlaps(input.storage, geometry.begin_byte(), geometry.end_byte());
  }
  bool wrote = false;
  for (const CallTensor& output : call_.outputs) {
    // resize_ hands out new memory behind the old, which keeps its values.
    if (output.role == TensorRole::kAlias || (output.role == TensorRole::kUninitialized && !output.fresh_return))
      continue;
    wrote = true;
    if (!output.nonfinite && shadow.has(output.storage)) shadow.erase(output.storage, tensor_facts(output).geometry);
  }
  header_->absorbed = read_bad && wrote && !bad_output_;
  enter_views();
}

void BadOp::enter_item() {
  for (Seen& seen : inputs_) {
    if (seen.bad.empty()) continue;
    auto record = std::make_unique<OpRecord>();
    fill_basics(record.get());
    add_input(record.get(), seen);
    const BadElements& bad = record->inputs[0].bad;
    OutputRecord output;
    output.facts.geometry = contiguous_geometry({}, 8);
    output.facts.dtype = seen.tensor->dtype;
    const ElementSet element = ElementSet::range(0, 1);
    const int kind = !bad.nan.empty() ? 0 : !bad.pos_inf.empty() ? 1 : 2;
    (kind == 0 ? output.bad.nan : kind == 1 ? output.bad.pos_inf : output.bad.neg_inf) = element;
    if (!record->inputs[0].deliberate.empty()) output.deliberate = element;
    record->outputs.push_back(std::move(output));
    OpRecord*& last = recorder_.last_items_[kind];
    if (last != nullptr) graph_.store.release(last);
    last = graph_.store.add(std::move(record));
    return;
  }
}

// View ops of bad memory, for the path: what is read through them shows them.
void BadOp::enter_views() {
  Shadow& shadow = graph_.shadow;
  for (const CallTensor& output : call_.outputs) {
    if (output.role != TensorRole::kAlias || !shadow.has(output.storage) || output.numel == 0) continue;
    auto record = std::make_unique<OpRecord>();
    record->kind = OpKind::kView;
    fill_basics(record.get());
    OutputRecord view;
    view.facts = tensor_facts(output);
    const Geometry& geometry = view.facts.geometry;
    if (!shadow.overlaps(output.storage, geometry.begin_byte(), geometry.end_byte())) continue;
    for (const CallTensor& input : call_.inputs) {
      if (input.storage != output.storage) continue;
      InputRecord read;
      read.facts = tensor_facts(input);
      read.via = shadow.current_view(input.storage, read.facts.geometry);
      record->inputs.push_back(std::move(read));
      break;
    }
    record->outputs.push_back(std::move(view));
    OpRecord* kept = graph_.store.add(std::move(record));
    shadow.add_view(output.storage, kept);
    graph_.store.release(kept);
  }
}

}  // namespace sherlorch
