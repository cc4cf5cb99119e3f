// The flight recorder: the last N ops of the process, whatever they were, in a fixed block of memory.
//
//   slot (13 words, 104 bytes)
//   +--------+---------------------------+------------------------------------------+
//   | stamp  | op site module phase ...  | up to 4 tensors: storage, bytes, role     |
//   +--------+---------------------------+------------------------------------------+
//   | stamp' | up to 6 more tensors, when the op before has more than 4               |
//   +--------+------------------------------------------------------------------------+
//
// A ticket (OpSeq) is the number of a slot counted from the start of the process; slot = ticket mod capacity. Writers
// take tickets with one atomic addition and then own their slots, so there is no lock. A slot is read as under a
// sequence lock: stamp, words, stamp again; the words are released and acquired one by one, which on x86 costs nothing
// and lets the thread sanitizer follow. A reader that loses the race is told so and skips the slot.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/ids.h"

namespace sherlorch {

enum class TensorRole : std::uint8_t {
  kRead = 0,
  kWrite = 1,
  kAlias = 2,          // an output that shares memory with an input: nothing was written
  kUninitialized = 3,  // memory handed out without being written (empty, resize_)
};

// One tensor of an op, as the flight recorder keeps it. Bytes are counted from the start of the storage; ranges past
// 64 GiB saturate, which makes them too long, never too short.
struct FlightTensor {
  StorageKey storage = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  TensorRole role = TensorRole::kRead;
  DType dtype = DType::kOther;
  bool gaps = false;     // not every byte between begin and end is an element's
  std::uint8_t tag = 0;  // a hash of the data address: tells a reused storage address apart, most of the time
};

// FlightTensor::tag of a tensor whose element 0 is at `data`, `offset` bytes into its storage.
inline std::uint8_t address_tag(const void* data, std::int64_t offset) noexcept {
  const std::uint64_t base = reinterpret_cast<std::uintptr_t>(data) - static_cast<std::uint64_t>(offset);
  return static_cast<std::uint8_t>((base * 0x9e3779b97f4a7c15ull) >> 56);
}

// The fixed part of an op.
struct FlightHeader {
  OpSeq seq = 0;
  OperatorId op = 0;
  SiteId site = 0;
  ModuleId module = 0;
  ThreadId thread = 0;  // 16 bits are kept
  Phase phase = Phase::kForward;
  bool nonfinite = false;          // something that it wrote was non-finite
  bool absorbed = false;           // read something known to be non-finite and wrote only finite values
  bool nested = false;             // ran inside another op that is recorded, after it
  std::uint32_t sequence_end = 0;  // autograd's next sequence number of this thread after the op (low 32 bits)
  // How many autograd nodes were made while it ran: they have the numbers before sequence_end. From 2048 on rounded
  // down to a multiple of 64.
  std::uint32_t nodes = 0;
  std::uint32_t node_sequence = 0;  // backward: sequence number of the node inside which it ran
  std::uint16_t node_thread = 0;    // backward: torch's logical id of the thread of that node's forward op; 0: none
  float largest = 0;                // largest magnitude written
};

struct FlightOp : FlightHeader {
  std::vector<FlightTensor> tensors;
};

class FlightRecorder {
 public:
  static constexpr std::size_t kWordsPerSlot = 13;
  static constexpr std::size_t kTensorsInFirst = 4;
  static constexpr std::size_t kTensorsInNext = 6;
  static constexpr std::size_t kBytesPerSlot = kWordsPerSlot * 8;
  // Chosen: 27 MB of address space, of which only slots that were used take memory.
  static constexpr std::size_t kDefaultCapacity = std::size_t{1} << 18;
  // An op with more tensors than this (a foreach over thousands of parameters) is kept with the first ones only.
  static constexpr std::size_t kMaxTensors = 1024;

  // capacity: slots, a power of two. Throws std::bad_alloc.
  explicit FlightRecorder(std::size_t capacity = kDefaultCapacity);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  // Takes a ticket for an op with this many tensors. Thread-safe, wait-free.
  OpSeq take_ticket(std::size_t tensors) noexcept {
    const std::size_t slots = slots_for(tensors);
    if (slots > 1) more_slots_.fetch_add(slots - 1, std::memory_order_relaxed);
    return next_.fetch_add(slots, std::memory_order_relaxed);
  }
  // How many tickets were taken. One that another thread takes at this moment may count by its slots.
  std::uint64_t op_count() const noexcept {
    const std::uint64_t more = more_slots_.load(std::memory_order_relaxed);
    return end() - 1 - more;
  }

  // Writes the op that took ticket header.seq. `tensor(i)` gives the i-th FlightTensor. Wait-free, never allocates.
  // A reader sees all of an op or nothing, but for one case: a writer that sleeps in here while others take a whole lap
  // of tickets (a quarter of a million) goes on writing into the slot of a newer op.
  template <typename TensorAt>
  void write(const FlightHeader& header, std::size_t count, TensorAt&& tensor) noexcept {
    const std::size_t kept = count < kMaxTensors ? count : kMaxTensors;
    std::atomic<std::uint64_t>* words = slot(header.seq);
    words[0].store(0, std::memory_order_release);
    pack_header(header, kept, words);
    std::size_t i = 0;
    for (; i < kept && i < kTensorsInFirst; ++i) pack_tensor(tensor(i), words + 5 + 2 * i);
    OpSeq ticket = header.seq;
    while (i < kept) {
      std::atomic<std::uint64_t>* more = slot(++ticket);
      more[0].store(0, std::memory_order_release);
      for (std::size_t k = 0; k < kTensorsInNext && i < kept; ++k, ++i) pack_tensor(tensor(i), more + 1 + 2 * k);
      more[0].store(ticket << 1 | 1, std::memory_order_release);
    }
    words[0].store(header.seq << 1, std::memory_order_release);
    // The slots of the next op are not in any cache: this asks for them in time.
    const char* next = reinterpret_cast<const char*>(slot(header.seq + slots_for(count)));
    __builtin_prefetch(next, 1);
    __builtin_prefetch(next + 64, 1);
    __builtin_prefetch(next + 128, 1);
  }

  // The newest ticket taken so far plus one; tickets below first() have been overwritten.
  OpSeq end() const noexcept { return next_.load(std::memory_order_relaxed); }
  OpSeq first() const noexcept;

  // Reads the op with this ticket. False if no op starts there, it was overwritten, or is being written now.
  bool read(OpSeq ticket, FlightOp* op) const;
  bool read_header(OpSeq ticket, FlightHeader* header) const noexcept;

  // Calls f for each op with begin <= seq < end, newest first, until f returns false.
  void backwards(OpSeq begin, OpSeq end, const std::function<bool(const FlightOp&)>& f) const;
  // The same, oldest first.
  void forwards(OpSeq begin, OpSeq end, const std::function<bool(const FlightOp&)>& f) const;

  // The op of this thread (torch's logical id is mapped by the adapter; here it is ThreadId) that made the autograd
  // node with this sequence number, looking only at ops before `before`; 0 if the recorder no longer holds it. Where
  // one op ran inside another, the inner one if it made the node, else the outer one. Cost: a binary search, since
  // sequence_end never falls on one thread.
  OpSeq find_forward(ThreadId thread, std::uint32_t sequence, OpSeq before) const noexcept;

  std::size_t capacity() const noexcept { return mask_ + 1; }

  static constexpr std::size_t slots_for(std::size_t tensors) noexcept {
    if (tensors <= kTensorsInFirst) return 1;
    if (tensors > kMaxTensors) tensors = kMaxTensors;
    return 1 + (tensors - kTensorsInFirst + kTensorsInNext - 1) / kTensorsInNext;
  }

 private:
  std::atomic<std::uint64_t>* slot(OpSeq ticket) const noexcept { return words_ + (ticket & mask_) * kWordsPerSlot; }
  static std::uint64_t pack_nodes(std::uint32_t nodes) noexcept;
  static void pack_header(const FlightHeader& header, std::size_t tensors, std::atomic<std::uint64_t>* words) noexcept;
  static void pack_tensor(const FlightTensor& tensor, std::atomic<std::uint64_t>* words) noexcept;
  static FlightTensor unpack_tensor(std::uint64_t first, std::uint64_t second) noexcept;
  static void unpack_header(const std::uint64_t* words, FlightHeader* header, std::size_t* tensors) noexcept;

  std::atomic<std::uint64_t> next_{1};
  std::atomic<std::uint64_t> more_slots_{0};  // than one an op
  std::size_t mask_ = 0;
  std::atomic<std::uint64_t>* words_ = nullptr;
  std::size_t bytes_ = 0;
};

// 12 bits: the number itself, or 64ths of it.
inline std::uint64_t FlightRecorder::pack_nodes(std::uint32_t nodes) noexcept {
  if (nodes < 2048) return nodes;
  return 2048 | (nodes / 64 < 2047 ? nodes / 64 : 2047);
}

inline void FlightRecorder::pack_header(const FlightHeader& header, std::size_t tensors,
                                        std::atomic<std::uint64_t>* words) noexcept {
  std::uint32_t largest_bits = 0;
  static_assert(sizeof(largest_bits) == sizeof(header.largest));
  __builtin_memcpy(&largest_bits, &header.largest, sizeof(largest_bits));
  const std::uint64_t nodes = pack_nodes(header.nodes);
  words[1].store(std::uint64_t{header.op} | std::uint64_t{header.site} << 32, std::memory_order_release);
  words[2].store(std::uint64_t{header.module} | std::uint64_t{header.sequence_end} << 32, std::memory_order_release);
  words[3].store(std::uint64_t{header.node_sequence} | std::uint64_t{largest_bits} << 32, std::memory_order_release);
  words[4].store(std::uint64_t{header.thread & 0xffff} | std::uint64_t(header.phase) << 16 |
                     std::uint64_t{header.nonfinite} << 18 | std::uint64_t{header.absorbed} << 19 | nodes << 20 |
                     std::uint64_t(tensors) << 32 | std::uint64_t{header.nested} << 47 |
                     std::uint64_t{header.node_thread} << 48,
                 std::memory_order_release);
}

inline void FlightRecorder::pack_tensor(const FlightTensor& tensor, std::atomic<std::uint64_t>* words) noexcept {
  constexpr std::int64_t kFine = std::int64_t{1} << 32;
  std::uint64_t coarse = 0;
  std::uint64_t begin = static_cast<std::uint64_t>(tensor.begin);
  std::uint64_t end = static_cast<std::uint64_t>(tensor.end);
  if (tensor.end >= kFine) {
    coarse = 1;
    begin >>= 4;
    end = (end + 15) >> 4;
    if (begin > 0xffffffff) begin = 0xffffffff;
    if (end > 0xffffffff) end = 0xffffffff;
  }
  words[0].store((tensor.storage & 0xffffffffffff) | std::uint64_t(tensor.role) << 48 |
                     std::uint64_t(tensor.dtype) << 50 | std::uint64_t{tensor.gaps} << 54 | coarse << 55 |
                     std::uint64_t{tensor.tag} << 56,
                 std::memory_order_release);
  words[1].store(begin | end << 32, std::memory_order_release);
}

}  // namespace sherlorch
