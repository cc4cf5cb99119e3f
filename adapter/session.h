// The one recording of the process and the windows that look at it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/diagnose/diagnose.h"
#include "core/record/recorder.h"
#include "sherlorch/export.h"

namespace sherlorch {

class Session;

// By storage; several tensors may lie in one.
using StorageLabels = std::unordered_map<StorageKey, std::vector<StorageLabel>>;

struct WindowOptions {
  bool sites = true;
  bool module_paths = true;
  bool scan_views = false;                   // fast_shape_ops=False
  bool keep_operands = false;                // copy what in-place ops overwrite, before they do
  std::uint32_t sample_every = 1;            // of very large tensors one block in so many is scanned
  std::uint32_t dtypes = ~std::uint32_t{0};  // bit DType: types that are looked at
};

// The user's share (sample=1/16) as WindowOptions::sample_every. A share of 1 or more, or none: 1.
SHERLORCH_API std::uint32_t sample_every(double share) noexcept;

// What one tracker sees of the recording: the ops in its intervals. Thread-safe.
class SHERLORCH_API Window {
 public:
  explicit Window(const WindowOptions& options);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // Counted. True if it is the first one; and the last one.
  bool start();
  bool stop();
  void enable();
  void disable();
  void reset();
  bool started() const;
  bool active() const;  // started, and not disabled
  std::uint64_t op_count() const;
  void set_trap(bool armed);
  bool trap_armed_for(OpSeq seq) const;

  // Names of parameters, buffers and gradients. Replaces earlier ones.
  void name_storages(StorageLabels labels);
  // No module path for ops from here on; or again.
  void hide_modules();
  void show_modules();
  void add_blind_spot(std::string kind, std::uint64_t count, std::string text);

  bool visible(OpSeq seq) const;
  bool checks(DType dtype) const noexcept { return (options_.dtypes >> static_cast<unsigned>(dtype) & 1) != 0; }
  // The view for a diagnosis: a snapshot.
  View view() const;

 private:
  friend class Session;
  struct Interval {
    OpSeq begin = 0;
    OpSeq end = 0;
    std::uint64_t ops_begin = 0;
    std::uint64_t ops_end = 0;
    bool open = false;
  };
  bool recording_locked() const { return started_ > 0 && enabled_; }
  void update_locked(bool was);

  mutable std::mutex mutex_;
  WindowOptions options_;
  int started_ = 0;
  bool enabled_ = true;
  std::vector<Interval> intervals_;
  std::vector<Interval> hidden_;  // in which module paths are not told
  std::atomic<bool> trap_{false};
  StorageLabels labels_;
  std::vector<BlindSpot> extra_blind_spots_;
  std::array<std::uint64_t, static_cast<std::size_t>(Blind::kNumBlinds)> blind_base_{};
};

class SHERLORCH_API Session {
 public:
  // Never destroyed: op callbacks may still come while the process ends.
  static Session& get();

  Recorder& recorder() noexcept { return *recorder_; }
  static bool recording() noexcept { return recording_.load(std::memory_order_relaxed); }
  // A window begins (+1) or ends (-1) to record, and wants so much looked at: the most thorough one counts.
  void count_windows(int change, std::uint32_t sample_every);
  // A window that records wants copies of operands that are about to be overwritten.
  bool keeps_operands() const noexcept { return operand_keepers_.load(std::memory_order_relaxed) != 0; }
  void add(Window* window);
  void remove(Window* window);
  // Calls the front's trap if a window with an armed trap sees this op.
  void trap(OpSeq seq) noexcept;

 private:
  Session();

  std::unique_ptr<Recorder> recorder_;
  static constinit std::atomic<bool> recording_;  // static: asked twice an op
  std::atomic<int> traps_{0};
  std::atomic<int> view_scanners_{0};
  std::atomic<int> operand_keepers_{0};
  // Lock order: registry_mutex_, then a window's, then recording_mutex_.
  std::mutex registry_mutex_;
  std::vector<Window*> windows_;
  std::mutex recording_mutex_;
  int recording_windows_ = 0;
  std::multiset<std::uint32_t> samples_;  // of the recording windows that have sample=
  friend class Window;
};

}  // namespace sherlorch
