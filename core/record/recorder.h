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
#include "core/record/storage_notes.h"
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
  // notes): what is bad in it is in the shadow.
  bool known(StorageKey storage) const noexcept { return notes_.has(storage, StorageNotes::kKnown); }
  // False if no op of the recording has written into this storage or handed it out.
  bool written(StorageKey storage) const noexcept { return notes_.has(storage, StorageNotes::kWritten); }

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
  std::uint64_t op_count() const noexcept { return graph_.flight.op_count(); }

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
  std::atomic<int> inject_failures_{0};
  std::atomic<OpSeq> recording_begin_{1};
  std::atomic<bool> scan_views_{false};
  std::atomic<std::uint32_t> sample_every_{1};
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Blind::kNumBlinds)> blinds_{};
  StorageNotes notes_;
  // The last number of each class (NaN, +Inf, -Inf) taken out of a tensor by item(); guarded by the graph's mutex.
  std::array<OpRecord*, 3> last_items_{};
};

}  // namespace sherlorch
