#include "sherlorch/tracker.h"

#include <mutex>
#include <optional>
#include <unordered_map>

#include "adapter/frontend.h"
#include "adapter/question.h"
#include "adapter/session.h"
#include "adapter/tensor_facts.h"

namespace sherlorch {

namespace {

WindowOptions window_options(const TrackerOptions& options) {
  WindowOptions window;
  window.sites = options.locations;
  window.module_paths = options.module_paths;
  window.sample_every = sample_every(options.sample);
  return window;
}

// Without Python's frames no step has a line: the report says so, and how to find the op all the same.
void explain_missing_lines(Diagnosis* diagnosis) {
  if (frontend().capture != nullptr || diagnosis->culprits.empty()) return;
  if (!diagnosis->note.empty()) diagnosis->note += ' ';
  diagnosis->note +=
      "The ops were called from C++, which tells no source lines: find the op by its name, its shape and its "
      "neighbours on the path.";
}

}  // namespace

struct Tracker::Impl {
  explicit Impl(const WindowOptions& options) : window(options) {}
  ~Impl() {
    for (const auto& [key, label] : labels) guards.release(reinterpret_cast<void*>(key));
  }

  Diagnosis diagnose(const at::TensorBase& tensor, const std::optional<std::vector<std::int64_t>>& index) const {
    Diagnosis diagnosis = sherlorch::diagnose(window, tensor, index, nullptr);
    explain_missing_lines(&diagnosis);
    return diagnosis;
  }

  Window window;
  std::mutex mutex;  // guards what follows
  // Each entry owns a guard: as long as a name is known, no other storage can have its address.
  std::unordered_map<StorageKey, StorageLabel> labels;
  const StorageGuardOps guards = storage_guards();
};

Tracker::Tracker(const TrackerOptions& options) : impl_(std::make_unique<Impl>(window_options(options))) {
  if (options.start) impl_->window.start();
}
Tracker::~Tracker() = default;
Tracker::Tracker(Tracker&& other) noexcept = default;
Tracker& Tracker::operator=(Tracker&& other) noexcept = default;

void Tracker::start() { impl_->window.start(); }
void Tracker::stop() { impl_->window.stop(); }
void Tracker::disable() { impl_->window.disable(); }
void Tracker::enable() { impl_->window.enable(); }
void Tracker::reset() { impl_->window.reset(); }
bool Tracker::recording() const { return impl_->window.active(); }
std::uint64_t Tracker::op_count() const { return impl_->window.op_count(); }

void Tracker::name(const at::TensorBase& tensor, std::string name, bool buffer) {
  this->name(std::vector<NamedTensor>{{tensor, std::move(name), buffer}});
}

void Tracker::name(const std::vector<NamedTensor>& tensors) {
  std::lock_guard lock(impl_->mutex);
  for (const NamedTensor& named : tensors) {
    const StorageKey key = storage_key(named.tensor);
    if (key == 0) continue;
    const bool is_new = impl_->labels.insert_or_assign(key, StorageLabel{named.name, named.buffer}).second;
    if (is_new) acquire_storage_guard(reinterpret_cast<void*>(key));
  }
  impl_->window.name_storages(impl_->labels);
}

bool Tracker::has_issue(const at::TensorBase& tensor) const { return sherlorch::has_issue(tensor); }

Diagnosis Tracker::diagnose(const at::TensorBase& tensor) const { return impl_->diagnose(tensor, std::nullopt); }

Diagnosis Tracker::diagnose(const at::TensorBase& tensor, c10::IntArrayRef index) const {
  return impl_->diagnose(tensor, index.vec());
}

}  // namespace sherlorch
