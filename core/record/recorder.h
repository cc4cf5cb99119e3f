// The one writer of the graph.
//
// Hot: record() of an op that wrote only finite values into storages without a shadow scans what was written, takes a
// ticket and fills a slot of the flight recorder. No lock, no allocation, no look-up.
// Cold: anything non-finite, or anything that touches a shadowed storage, goes to bad_op.cpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/graph/graph.h"
#include "core/record/op_call.h"
#include "core/scan/scan.h"

namespace sherlorch {

// What the recorder needs from above. All of it is called on the thread that runs the op.
struct RecorderHooks {
  StorageGuardOps guards;
  // Makes a guard for the storage of this tensor handle; null if it has none.
  void* (*acquire_guard)(void* handle) noexcept = nullptr;
  // The sites of the Python stack of the calling thread, outermost first. May be null.
  void (*capture_stack)(std::vector<SiteId>* stack) = nullptr;
  // Scans a large tensor with several threads. May be null.
  ScanResult (*scan_large)(const CallTensor& tensor) noexcept = nullptr;
  // An op has introduced a non-finite value by accident (not a deliberate infinity). May be null.
  void (*on_introduced)(OpSeq seq) noexcept = nullptr;
};

// Counted reasons for which something was not seen.
enum class Blind : std::uint8_t {
  kRecorderError,  // an exception inside the recorder; the op was dropped
  kDevice,         // a tensor on a device that is not read
  kNoStorage,      // opaque layouts, sparse tensors without values
  kNoValues,       // meta and fake tensors
  kQuantized,
  kUnmappedOp,  // a bad op without an element map: all its outputs were taken to depend on all its inputs
  kCompiled,    // a compiled region ran as it is
  kSampled,     // a large tensor was looked at in part (sample=)
  kNumBlinds,
};
const char* blind_key(Blind blind) noexcept;

class Recorder {
 public:
  // From this size on scan_large is used, if there. Chosen: below 1 MiB starting threads costs more than it saves.
  static constexpr std::int64_t kLargeBytes = std::int64_t{1} << 20;

  explicit Recorder(const RecorderHooks& hooks);

  // Records one op that has just returned (or failed: then outputs hold only the written arguments). Returns its
  // ticket. Never throws; what goes wrong is counted as a blind spot.
  OpSeq record(OpCall& call) noexcept;

  // Called before an op that reads and overwrites this tensor runs, unless known(storage): bad values that it holds
  // already must be seen now or never.
  void before_write(const CallTensor& tensor, const OpCall& call) noexcept;
  // True if all of this storage has been written, and scanned, by ops of the recording (or of one that shares its
  // filter bit): what is bad in it is in the shadow.
  bool known(StorageKey storage) const noexcept { return known_.holds(storage); }
  // False if no op of the recording has written into this storage or handed it out.
  bool written(StorageKey storage) const noexcept { return written_.holds(storage); }

  // True if some live storage has a shadow. Relaxed: a thread that has just learnt of a tensor from another thread
  // synchronized with it by that.
  bool has_shadows() const noexcept { return shadows_.load(std::memory_order_relaxed) != 0; }
  bool maybe_shadowed(StorageKey storage) const noexcept { return graph_.shadow.maybe_shadowed(storage); }

  void count_blind(Blind blind, std::uint64_t n = 1) noexcept {
    blinds_[static_cast<std::size_t>(blind)].fetch_add(n, std::memory_order_relaxed);
  }
  std::uint64_t blind_count(Blind blind) const noexcept {
    return blinds_[static_cast<std::size_t>(blind)].load(std::memory_order_relaxed);
  }
  std::uint64_t op_count() const noexcept { return ops_.load(std::memory_order_relaxed); }

  // Scan what views show as well, though they write nothing (fast_shape_ops=False): for checking that nothing is
  // missed.
  void set_scan_views(bool on) noexcept { scan_views_.store(on, std::memory_order_relaxed); }
  // Of tensors of kSampledFromBytes or more, scan one block in so many when they are written; 1: all of them.
  void set_sample(std::uint32_t every) noexcept { sample_every_.store(every, std::memory_order_relaxed); }
  // How many tensors this thread has scanned: for tests.
  static std::uint64_t scans_of_this_thread() noexcept;

  // A new recording begins after a time in which nobody looked: nothing is known of any storage.
  void begin_recording() noexcept;
  // The first ticket of the present recording.
  OpSeq recording_begin() const noexcept { return recording_begin_.load(std::memory_order_relaxed); }
  // Drops all shadows and records.
  void clear();

  Graph& graph() noexcept { return graph_; }
  const RecorderHooks& hooks() const noexcept { return hooks_; }

  // For tests: makes the next `n` cold records throw inside the recorder.
  void inject_failures(int n) noexcept { inject_failures_.store(n, std::memory_order_relaxed); }

 private:
  friend class BadOp;
  // Storages that something has happened to during the recording; may name others too.
  class StorageFilter {
   public:
    bool holds(StorageKey storage) const noexcept { return holds_bit(bit(storage)); }
    bool holds_bit(std::uint64_t at) const noexcept {
      return (words_[at >> 6].load(std::memory_order_relaxed) >> (at & 63) & 1) != 0;
    }
    void add(StorageKey storage) noexcept {
      const std::uint64_t at = bit(storage);
      std::atomic<std::uint64_t>& word = words_[at >> 6];
      const std::uint64_t mask = std::uint64_t{1} << (at & 63);
      // A lost update between two threads only makes one later check look at memory that need not be looked at.
      const std::uint64_t old = word.load(std::memory_order_relaxed);
      if ((old & mask) != 0) return;
      const std::uint32_t nth = set_.fetch_add(1, std::memory_order_relaxed);
      if (nth < kMostNoted) noted_[nth].store(static_cast<std::uint16_t>(at >> 6), std::memory_order_relaxed);
      word.store(old | mask, std::memory_order_relaxed);
    }
    void remove(StorageKey storage) noexcept {
      const std::uint64_t at = bit(storage);
      words_[at >> 6].fetch_and(~(std::uint64_t{1} << (at & 63)), std::memory_order_relaxed);
    }
    // A short recording pays for what it has set only: to go through all words would empty the processor's first cache,
    // at each `with` of a program that has one around every step.
    void clear() noexcept {
      const std::uint32_t set = set_.exchange(0, std::memory_order_relaxed);
      if (set <= kMostNoted) {
        for (std::uint32_t i = 0; i < set; ++i) {
          words_[noted_[i].load(std::memory_order_relaxed)].store(0, std::memory_order_relaxed);
        }
      } else {
        for (auto& word : words_) word.store(0, std::memory_order_relaxed);
      }
    }

    static std::uint64_t bit(StorageKey storage) noexcept { return storage * 0x9e3779b97f4a7c15ull >> 47; }  // 17 bits

   private:
    static constexpr std::uint32_t kMostNoted = 1024;
    std::array<std::atomic<std::uint64_t>, 2048> words_{};  // 16 KiB
    // Which words hold a bit, while they are few.
    std::atomic<std::uint32_t> set_{0};
    std::array<std::atomic<std::uint16_t>, kMostNoted> noted_{};
  };

  // `may_sample`: a very large tensor may be looked at in part.
  bool scan(CallTensor* tensor, bool may_sample = false) noexcept;
  ScanResult scan_large(const CallTensor& tensor, bool may_sample) noexcept;
  bool in_part(const CallTensor& tensor) const noexcept;
  void scan_what_the_sample_left(OpCall& call, FlightHeader* header) noexcept;
  void note_write(const OpCall& call, const CallTensor& output) noexcept;
  void record_cold(OpCall& call, FlightHeader* header) noexcept;

  RecorderHooks hooks_;
  Graph graph_;
  std::atomic<std::size_t> shadows_{0};
  std::atomic<std::uint64_t> ops_{0};
  std::atomic<int> inject_failures_{0};
  std::atomic<OpSeq> recording_begin_{1};
  std::atomic<bool> scan_views_{false};
  std::atomic<std::uint32_t> sample_every_{1};
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Blind::kNumBlinds)> blinds_{};
  StorageFilter known_;
  StorageFilter written_;
  // The last number of each class (NaN, +Inf, -Inf) taken out of a tensor by item(); guarded by the graph's mutex.
  std::array<OpRecord*, 3> last_items_{};
};

}  // namespace sherlorch
