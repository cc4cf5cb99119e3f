#include "core/record/recorder.h"

#include "core/record/bad_op.h"
#include "core/scan/sample.h"

namespace sherlorch {

namespace {

// Byte range of a tensor in its storage.
void byte_range(const CallTensor& tensor, std::int64_t* begin, std::int64_t* end) noexcept {
  const auto item = static_cast<std::int64_t>(tensor.item_size);
  *begin = tensor.offset;
  if (tensor.numel == 0) {
    *end = tensor.offset;
  } else if (tensor.contiguous) {
    *end = tensor.offset + tensor.numel * item;
  } else {
    std::int64_t low = 0;
    std::int64_t high = 0;
    for (int d = 0; d < tensor.dims; ++d) {
      const std::int64_t reach = (tensor.sizes[d] - 1) * tensor.strides[d];
      (reach < 0 ? low : high) += reach;
    }
    *begin = tensor.offset + low * item;
    *end = tensor.offset + (high + 1) * item;
  }
}

FlightTensor flight_tensor(const CallTensor& tensor) noexcept {
  FlightTensor flight;
  flight.storage = tensor.storage;
  byte_range(tensor, &flight.begin, &flight.end);
  flight.gaps = flight.end - flight.begin > tensor.numel * static_cast<std::int64_t>(tensor.item_size);
  flight.role = tensor.role;
  flight.dtype = tensor.dtype;
  flight.tag = address_tag(tensor.data, tensor.offset);
  return flight;
}

// initial-exec: without the call that a dynamically loaded library's thread-locals cost.
thread_local std::uint64_t scans __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace

const char* blind_key(Blind blind) noexcept {
  switch (blind) {
    case Blind::kRecorderError:
      return "recorder_error";
    case Blind::kDevice:
      return "device";
    case Blind::kNoStorage:
      return "no_storage";
    case Blind::kNoValues:
      return "no_values";
    case Blind::kQuantized:
      return "quantized";
    case Blind::kUnmappedOp:
      return "unmapped_op";
    case Blind::kCompiled:
      return "compiled";
    case Blind::kSampled:
      return "sampled";
    case Blind::kNumBlinds:
      break;
  }
  return "unknown";
}

Recorder::Recorder(const RecorderHooks& hooks) : hooks_(hooks), graph_(hooks.guards) {}

std::uint64_t Recorder::scans_of_this_thread() noexcept { return scans; }

bool Recorder::scan(CallTensor* tensor, bool may_sample) noexcept {
  if (tensor->data == nullptr || tensor->numel == 0 || !can_be_nonfinite(tensor->dtype)) return false;
  ++scans;
  ScanResult result;
  if (tensor->numel * tensor->item_size >= kLargeBytes) {
    result = scan_large(*tensor, may_sample);
  } else if (tensor->contiguous) {
    result = scan_contiguous(tensor->data, static_cast<std::size_t>(tensor->numel), tensor->dtype);
  } else {
    result = scan_strided(tensor->data, {tensor->sizes, tensor->dims}, {tensor->strides, tensor->dims}, tensor->dtype);
  }
  tensor->nonfinite = result.nonfinite;
  tensor->largest = result.largest;
  return result.nonfinite;
}

bool Recorder::in_part(const CallTensor& tensor) const noexcept {
  return sample_every_.load(std::memory_order_relaxed) > 1 && tensor.contiguous &&
         tensor.numel * tensor.item_size >= kSampledFromBytes;
}

ScanResult Recorder::scan_large(const CallTensor& tensor, bool may_sample) noexcept {
  if (may_sample && in_part(tensor)) {
    count_blind(Blind::kSampled);
    return scan_sample(tensor.data, static_cast<std::size_t>(tensor.numel), tensor.dtype,
                       sample_every_.load(std::memory_order_relaxed));
  }
  if (hooks_.scan_large != nullptr) return hooks_.scan_large(tensor);
  return scan_strided(tensor.data, {tensor.sizes, tensor.dims}, {tensor.strides, tensor.dims}, tensor.dtype);
}

// The op touches something bad, so what it wrote is not judged by a part.
void Recorder::scan_what_the_sample_left(OpCall& call, FlightHeader* header) noexcept {
  if (sample_every_.load(std::memory_order_relaxed) <= 1) return;
  for (CallTensor& output : call.outputs) {
    if (output.role != TensorRole::kWrite || output.nonfinite) continue;
    if (output.numel * output.item_size >= kSampledFromBytes && scan(&output)) header->nonfinite = true;
  }
}

OpSeq Recorder::record(OpCall& call) noexcept {
  const std::size_t tensors = call.inputs.size() + call.outputs.size();
  FlightHeader header;
  header.seq = graph_.flight.take_ticket(tensors);
  header.op = call.op;
  header.site = call.site;
  header.module = call.module;
  header.thread = call.thread;
  header.phase = call.phase;
  header.nested = call.nested;
  header.sequence_end = static_cast<std::uint32_t>(call.sequence_after);
  header.nodes = static_cast<std::uint32_t>(call.sequence_after - call.sequence);
  if (call.in_node || call.engine_work) {
    header.node_sequence = static_cast<std::uint32_t>(call.node_sequence);
    header.node_thread = static_cast<std::uint16_t>(call.node_thread);
  }
  bool cold = call.has_nonfinite_scalar || call.traits->literal;
  for (CallTensor& output : call.outputs) {
    if (output.role == TensorRole::kWrite) {
      if (scan(&output, true)) header.nonfinite = true;
      if (output.largest > header.largest) header.largest = output.largest;
    } else if (output.role == TensorRole::kAlias && scan_views_.load(std::memory_order_relaxed)) {
      scan(&output);
    }
    // The usual case, whole tensors at addresses that are used again: nothing to note.
    if (output.role != TensorRole::kWrite || !output.whole_storage || !can_be_nonfinite(output.dtype) ||
        !notes_.has(output.storage, StorageNotes::kKnown | StorageNotes::kWritten) || in_part(output)) {
      note_write(call, output);
    }
  }
  cold |= header.nonfinite;
  if (has_shadows() && !cold) {
    for (const CallTensor& tensor : call.inputs) cold |= maybe_shadowed(tensor.storage);
    for (const CallTensor& tensor : call.outputs) cold |= maybe_shadowed(tensor.storage);
    cold |= !call.hidden_inputs.empty();
  }
  if (cold) [[unlikely]]
    record_cold(call, &header);
  const std::size_t inputs = call.inputs.size();
  graph_.flight.write(header, tensors, [&](std::size_t i) noexcept {
    FlightTensor tensor = flight_tensor(i < inputs ? call.inputs[i] : call.outputs[i - inputs]);
    // The values of a literal were written by hand, between the op that allocated them and this one.
    if (i >= inputs && call.traits->literal) tensor.role = TensorRole::kWrite;
    return tensor;
  });
  return header.seq;
}

// Keeps the notes of storages.
void Recorder::note_write(const OpCall& call, const CallTensor& output) noexcept {
  bool forget = false;
  switch (output.role) {
    case TensorRole::kWrite:
      if (output.whole_storage && can_be_nonfinite(output.dtype) && !in_part(output)) {
        notes_.add(output.storage, StorageNotes::kKnown | StorageNotes::kWritten);
        break;
      }
      notes_.add(output.storage, StorageNotes::kWritten);
      if (!can_be_nonfinite(output.dtype)) {
        // An integer written through a view of another dtype may have made a float bad.
        forget = true;
      }
      break;
    case TensorRole::kUninitialized:
      notes_.add(output.storage, StorageNotes::kWritten);
      break;
    case TensorRole::kAlias:
      // Memory from elsewhere, maybe at an address that was known (set_, from_numpy).
      if (call.traits->literal) notes_.add(output.storage, StorageNotes::kWritten);
      forget = call.traits->metadata_only || call.traits->literal;
      break;
    case TensorRole::kRead:
      break;
  }
  if (forget && known(output.storage)) notes_.remove(output.storage, StorageNotes::kKnown);
}

void Recorder::record_cold(OpCall& call, FlightHeader* header) noexcept {
  scan_what_the_sample_left(call, header);
  try {
    if (inject_failures_.load(std::memory_order_relaxed) > 0) {
      inject_failures_.fetch_sub(1, std::memory_order_relaxed);
      throw std::bad_alloc();
    }
    BadOp(*this, call, header).record();
  } catch (...) {
    count_blind(Blind::kRecorderError);
  }
}

void Recorder::before_write(const CallTensor& tensor, const OpCall& call) noexcept {
  try {
    CallTensor copy = tensor;
    if (tensor.whole_storage) notes_.add(tensor.storage, StorageNotes::kKnown);
    if (scan(&copy)) BadOp::note_existing(*this, copy, call);
  } catch (...) {
    count_blind(Blind::kRecorderError);
  }
}

void Recorder::begin_recording() noexcept {
  recording_begin_.store(graph_.flight.end(), std::memory_order_relaxed);
  notes_.clear();
}

void Recorder::clear() {
  std::lock_guard lock(graph_.mutex);
  for (OpRecord*& item : last_items_) {
    if (item != nullptr) graph_.store.release(item);
    item = nullptr;
  }
  graph_.shadow.clear();
  shadows_.store(0, std::memory_order_relaxed);
}

}  // namespace sherlorch
