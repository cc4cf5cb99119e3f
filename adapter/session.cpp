#include "adapter/session.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "adapter/frontend.h"
#include "adapter/observer.h"
#include "adapter/tensor_facts.h"

namespace sherlorch {

namespace {

Frontend g_frontend;

std::string blind_text(Blind blind, std::uint64_t count) {
  const std::string n = std::to_string(count);
  const std::string ops = count == 1 ? " op" : " ops";
  switch (blind) {
    case Blind::kRecorderError:
      return n + ops + " could not be recorded because of an error inside sherlorch itself";
    case Blind::kDevice:
      return n + (count == 1 ? " tensor" : " tensors") + " on another device than the CPU were not looked at";
    case Blind::kNoStorage:
      return n + (count == 1 ? " tensor" : " tensors") +
             " without readable memory (opaque or sparse layouts) were not looked at";
    case Blind::kCompiled:
      return n + " calls into compiled code were not traced op by op";
    case Blind::kNoValues:
      return n + (count == 1 ? " tensor" : " tensors") + " without values (meta or fake) were not looked at";
    case Blind::kSampled:
      return n + (count == 1 ? " large tensor was" : " large tensors were") +
             " looked at in part (sample=): a bad value elsewhere in them shows at the first op that makes one of it, "
             "which then names the op before as a suspect";
    case Blind::kQuantized:
      return n + (count == 1 ? " quantized tensor was" : " quantized tensors were") + " not looked at";
    default:
      return n;
  }
}

}  // namespace

void set_frontend(const Frontend& frontend) { g_frontend = frontend; }
const Frontend& frontend() noexcept { return g_frontend; }

constinit std::atomic<bool> Session::recording_{false};

Session& Session::get() {
  static auto* session = new Session();
  return *session;
}

Session::Session() {
  RecorderHooks hooks;
  hooks.guards = storage_guards();
  hooks.acquire_guard = acquire_storage_guard;
  hooks.capture_stack = [](std::vector<SiteId>* stack) {
    if (frontend().capture_stack != nullptr) frontend().capture_stack(stack);
  };
  hooks.scan_large = scan_large;
  hooks.on_introduced = [](OpSeq seq) noexcept { Session::get().trap(seq); };
  recorder_ = std::make_unique<Recorder>(hooks);
  // A DataLoader worker is forked while other threads may be recording: the child must not inherit a lock that nobody
  // will open.
  pthread_atfork([] { Session::get().recorder().graph().mutex.lock(); },
                 [] { Session::get().recorder().graph().mutex.unlock(); },
                 [] { Session::get().recorder().graph().mutex.unlock(); });
}

void Session::add(Window* window) {
  std::lock_guard lock(registry_mutex_);
  windows_.push_back(window);
}

void Session::remove(Window* window) {
  bool last = false;
  {
    std::lock_guard lock(registry_mutex_);
    std::erase(windows_, window);
    last = windows_.empty();
  }
  // Nobody is left to ask: let go of every record and storage guard.
  if (last) recorder_->clear();
}

void Session::count_windows(int change, std::uint32_t sample_every) {
  std::lock_guard lock(recording_mutex_);
  const bool was = recording_windows_ > 0;
  recording_windows_ += change;
  if (sample_every > 1) {
    if (change > 0) {
      samples_.insert(sample_every);
    } else {
      samples_.erase(samples_.find(sample_every));
    }
  }
  const bool some_look_at_all = static_cast<std::size_t>(recording_windows_) > samples_.size();
  recorder_->set_sample(some_look_at_all || samples_.empty() ? 1 : *samples_.begin());
  const bool is = recording_windows_ > 0;
  if (was == is) return;
  if (is) recorder_->begin_recording();
  switch_observer(is);
  recording_.store(is, std::memory_order_relaxed);
}

void Session::trap(OpSeq seq) noexcept {
  if (traps_.load(std::memory_order_relaxed) == 0 || frontend().trap == nullptr) return;
  {
    std::lock_guard lock(registry_mutex_);
    const bool armed = std::any_of(windows_.begin(), windows_.end(),
                                   [&](const Window* window) { return window->trap_armed_for(seq); });
    if (!armed) return;
  }
  frontend().trap(seq);
}

std::uint32_t sample_every(double share) noexcept {
  return share > 0 && share < 1 ? static_cast<std::uint32_t>(std::min(std::round(1 / share), 1e9)) : 1;
}

Window::Window(const WindowOptions& options) : options_(options) {
  Session::get().add(this);
  reset();
}

Window::~Window() {
  {
    std::lock_guard lock(mutex_);
    const bool was = recording_locked();
    started_ = 0;
    update_locked(was);
  }
  set_trap(false);
  Session::get().remove(this);
}

void Window::update_locked(bool was) {
  const bool is = recording_locked();
  if (was == is) return;
  Session& session = Session::get();
  Recorder& recorder = session.recorder();
  if (options_.keep_operands) session.operand_keepers_ += is ? 1 : -1;
  if (options_.scan_views) {
    recorder.set_scan_views((session.view_scanners_ += is ? 1 : -1) > 0);
  }
  if (is) {
    session.count_windows(+1, options_.sample_every);
    const OpSeq now = recorder.graph().flight.end();
    if (!intervals_.empty() && intervals_.back().end == now) {
      // Nothing was recorded since it was left: a tracker that is entered a million times stays small.
      intervals_.back().open = true;
      return;
    }
    Interval interval;
    interval.begin = now;
    interval.ops_begin = recorder.op_count();
    interval.open = true;
    intervals_.push_back(interval);
  } else {
    session.count_windows(-1, options_.sample_every);
    Interval& interval = intervals_.back();
    interval.end = recorder.graph().flight.end();
    interval.ops_end = recorder.op_count();
    interval.open = false;
  }
}

bool Window::start() {
  std::lock_guard lock(mutex_);
  const bool was = recording_locked();
  ++started_;
  update_locked(was);
  return started_ == 1;
}

bool Window::stop() {
  std::lock_guard lock(mutex_);
  if (started_ == 0) return false;
  const bool was = recording_locked();
  --started_;
  update_locked(was);
  return started_ == 0;
}

void Window::enable() {
  std::lock_guard lock(mutex_);
  const bool was = recording_locked();
  enabled_ = true;
  update_locked(was);
}

void Window::disable() {
  std::lock_guard lock(mutex_);
  const bool was = recording_locked();
  enabled_ = false;
  update_locked(was);
}

void Window::reset() {
  std::lock_guard lock(mutex_);
  Recorder& recorder = Session::get().recorder();
  const bool open = recording_locked();
  intervals_.clear();
  extra_blind_spots_.clear();
  for (std::size_t i = 0; i < blind_base_.size(); ++i) blind_base_[i] = recorder.blind_count(static_cast<Blind>(i));
  if (!open) return;
  Interval interval;
  interval.begin = recorder.graph().flight.end();
  interval.ops_begin = recorder.op_count();
  interval.open = true;
  intervals_.push_back(interval);
}

bool Window::started() const {
  std::lock_guard lock(mutex_);
  return started_ > 0;
}

bool Window::active() const {
  std::lock_guard lock(mutex_);
  return recording_locked();
}

std::uint64_t Window::op_count() const {
  std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  for (const Interval& interval : intervals_) {
    count += (interval.open ? Session::get().recorder().op_count() : interval.ops_end) - interval.ops_begin;
  }
  return count;
}

void Window::set_trap(bool armed) {
  if (trap_.exchange(armed) != armed) Session::get().traps_.fetch_add(armed ? 1 : -1);
}

bool Window::trap_armed_for(OpSeq seq) const { return trap_.load(std::memory_order_relaxed) && visible(seq); }

void Window::name_storages(StorageLabels labels) {
  std::lock_guard lock(mutex_);
  labels_ = std::move(labels);
}

void Window::hide_modules() {
  std::lock_guard lock(mutex_);
  if (!hidden_.empty() && hidden_.back().open) return;
  Interval interval;
  interval.begin = Session::get().recorder().graph().flight.end();
  interval.open = true;
  hidden_.push_back(interval);
}

void Window::show_modules() {
  std::lock_guard lock(mutex_);
  if (hidden_.empty() || !hidden_.back().open) return;
  hidden_.back().end = Session::get().recorder().graph().flight.end();
  hidden_.back().open = false;
}

void Window::add_blind_spot(std::string kind, std::uint64_t count, std::string text) {
  std::lock_guard lock(mutex_);
  for (BlindSpot& known : extra_blind_spots_) {
    if (known.kind == kind) {
      known.count += count;
      known.text = std::move(text);
      return;
    }
  }
  extra_blind_spots_.push_back({std::move(kind), count, std::move(text)});
}

bool Window::visible(OpSeq seq) const {
  std::lock_guard lock(mutex_);
  for (auto it = intervals_.rbegin(); it != intervals_.rend(); ++it) {
    if (seq >= it->begin) return it->open || seq < it->end;
  }
  return false;
}

View Window::view() const {
  View view;
  view.total_ops = op_count();
  std::lock_guard lock(mutex_);
  view.sites = options_.sites;
  view.scans_views = options_.scan_views;
  view.sampled = options_.sample_every > 1;
  auto within = [](const std::vector<Interval>& intervals, OpSeq seq) {
    for (auto it = intervals.rbegin(); it != intervals.rend(); ++it) {
      if (seq >= it->begin) return it->open || seq < it->end;
    }
    return false;
  };
  view.visible = [intervals = intervals_, within](OpSeq seq) { return within(intervals, seq); };
  if (!intervals_.empty()) view.begin = intervals_.front().begin;
  view.names_modules = [hidden = hidden_, on = options_.module_paths, within](OpSeq seq) {
    return on && !within(hidden, seq);
  };
  view.labels = [labels = labels_](StorageKey storage) {
    const auto found = labels.find(storage);
    return found == labels.end() ? std::vector<StorageLabel>() : found->second;
  };
  view.dtype_text = dtype_text;
  view.thread_text = thread_text;
  Recorder& recorder = Session::get().recorder();
  for (std::size_t i = 0; i < blind_base_.size(); ++i) {
    const auto blind = static_cast<Blind>(i);
    if (blind == Blind::kUnmappedOp) continue;  // the diagnosis counts those that matter to it
    const std::uint64_t count = recorder.blind_count(blind) - blind_base_[i];
    if (count > 0) view.blind_spots.push_back({blind_key(blind), count, blind_text(blind, count)});
  }
  for (const BlindSpot& spot : extra_blind_spots_) view.blind_spots.push_back(spot);
  return view;
}

}  // namespace sherlorch
