#include "core/graph/flight_recorder.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace sherlorch {

FlightRecorder::FlightRecorder(std::size_t capacity) : mask_(capacity - 1), bytes_(capacity * kBytesPerSlot) {
  // Anonymous memory is zero and takes a page only when a slot in it is used; a zero stamp is no op.
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  words_ = static_cast<std::atomic<std::uint64_t>*>(memory);
}

FlightRecorder::~FlightRecorder() { munmap(words_, bytes_); }

OpSeq FlightRecorder::first() const noexcept {
  const OpSeq next = end();
  return next > capacity() ? next - capacity() : 1;
}

FlightTensor FlightRecorder::unpack_tensor(std::uint64_t first, std::uint64_t second) noexcept {
  FlightTensor tensor;
  tensor.storage = first & 0xffffffffffff;
  tensor.role = static_cast<TensorRole>(first >> 48 & 3);
  tensor.dtype = static_cast<DType>(first >> 50 & 15);
  tensor.gaps = (first >> 54 & 1) != 0;
  tensor.tag = static_cast<std::uint8_t>(first >> 56);
  const int shift = (first >> 55 & 1) != 0 ? 4 : 0;
  tensor.begin = static_cast<std::int64_t>((second & 0xffffffff) << shift);
  tensor.end = static_cast<std::int64_t>((second >> 32) << shift);
  return tensor;
}

void FlightRecorder::unpack_header(const std::uint64_t* words, FlightHeader* header, std::size_t* tensors) noexcept {
  header->seq = words[0] >> 1;
  header->op = static_cast<OperatorId>(words[1]);
  header->site = static_cast<SiteId>(words[1] >> 32);
  header->module = static_cast<ModuleId>(words[2]);
  header->sequence_end = static_cast<std::uint32_t>(words[2] >> 32);
  header->node_sequence = static_cast<std::uint32_t>(words[3]);
  const auto largest_bits = static_cast<std::uint32_t>(words[3] >> 32);
  __builtin_memcpy(&header->largest, &largest_bits, sizeof(largest_bits));
  header->thread = words[4] & 0xffff;
  header->phase = static_cast<Phase>(words[4] >> 16 & 3);
  header->nonfinite = (words[4] >> 18 & 1) != 0;
  header->absorbed = (words[4] >> 19 & 1) != 0;
  const std::uint32_t nodes = words[4] >> 20 & 0xfff;
  header->nodes = nodes < 2048 ? nodes : (nodes & 2047) * 64;
  header->node_thread = static_cast<std::uint16_t>(words[4] >> 48);
  header->nested = (words[4] >> 47 & 1) != 0;
  *tensors = words[4] >> 32 & 0x7fff;
}

bool FlightRecorder::read_header(OpSeq ticket, FlightHeader* header) const noexcept {
  const std::atomic<std::uint64_t>* words = slot(ticket);
  const std::uint64_t stamp = ticket << 1;
  std::uint64_t copy[5] = {words[0].load(std::memory_order_acquire)};
  if (copy[0] != stamp) return false;
  for (int i = 1; i < 5; ++i) copy[i] = words[i].load(std::memory_order_acquire);
  if (words[0].load(std::memory_order_acquire) != stamp) return false;
  std::size_t tensors = 0;
  unpack_header(copy, header, &tensors);
  return true;
}

bool FlightRecorder::read(OpSeq ticket, FlightOp* op) const {
  const std::atomic<std::uint64_t>* words = slot(ticket);
  const std::uint64_t stamp = ticket << 1;
  std::uint64_t copy[kWordsPerSlot];
  copy[0] = words[0].load(std::memory_order_acquire);
  if (copy[0] != stamp) return false;
  for (std::size_t i = 1; i < kWordsPerSlot; ++i) copy[i] = words[i].load(std::memory_order_acquire);
  if (words[0].load(std::memory_order_acquire) != stamp) return false;
  std::size_t tensors = 0;
  unpack_header(copy, op, &tensors);
  op->tensors.clear();
  for (std::size_t i = 0; i < tensors && i < kTensorsInFirst; ++i) {
    op->tensors.push_back(unpack_tensor(copy[5 + 2 * i], copy[6 + 2 * i]));
  }
  while (op->tensors.size() < tensors) {
    const std::uint64_t next_stamp = ++ticket << 1 | 1;
    const std::atomic<std::uint64_t>* more = slot(ticket);
    if (more[0].load(std::memory_order_acquire) != next_stamp) return false;
    for (std::size_t k = 0; k < kTensorsInNext && op->tensors.size() < tensors; ++k) {
      op->tensors.push_back(unpack_tensor(more[1 + 2 * k].load(std::memory_order_acquire),
                                          more[2 + 2 * k].load(std::memory_order_acquire)));
    }
    if (more[0].load(std::memory_order_acquire) != next_stamp) return false;
  }
  return true;
}

void FlightRecorder::backwards(OpSeq begin, OpSeq end, const std::function<bool(const FlightOp&)>& f) const {
  begin = std::max(begin, first());
  end = std::min(end, this->end());
  FlightOp op;
  for (OpSeq ticket = end; ticket-- > begin;) {
    if (read(ticket, &op) && !f(op)) return;
  }
}

void FlightRecorder::forwards(OpSeq begin, OpSeq end, const std::function<bool(const FlightOp&)>& f) const {
  begin = std::max(begin, first());
  end = std::min(end, this->end());
  FlightOp op;
  for (OpSeq ticket = begin; ticket < end; ++ticket) {
    if (read(ticket, &op) && !f(op)) return;
  }
}

OpSeq FlightRecorder::find_forward(ThreadId thread, std::uint32_t sequence, OpSeq before) const noexcept {
  const auto ends_after = [&](const FlightHeader& op) {
    return static_cast<std::int32_t>(op.sequence_end - sequence) > 0;
  };
  const OpSeq end = std::min(before, this->end());
  // Invariant: the first op of the thread that ends after the number, if there is one, lies in [low, high).
  OpSeq low = first();
  OpSeq high = end;
  OpSeq found = 0;
  FlightHeader header;
  while (low < high) {
    // The nearest op of this thread at or before the middle.
    const OpSeq middle = low + (high - low) / 2;
    OpSeq probe = middle + 1;
    bool of_thread = false;
    while (!of_thread && probe-- > low) of_thread = read_header(probe, &header) && header.thread == thread;
    if (of_thread && ends_after(header)) {
      found = high = probe;
    } else {
      low = middle + 1;
    }
  }
  if (found == 0) return 0;
  // It made the node, or it ran inside the op that did, which is recorded after all that ran inside of it.
  constexpr OpSeq kMostLooked = 65'536;  // chosen: ops inside of one
  for (OpSeq seq = found; seq < end && seq - found < kMostLooked; ++seq) {
    if (!read_header(seq, &header) || header.thread != thread) continue;
    if (header.sequence_end - sequence <= header.nodes) return seq;
    if (!header.nested) return 0;
  }
  return 0;
}

}  // namespace sherlorch
