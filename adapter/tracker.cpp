#include "sherlorch/tracker.h"

#include <mutex>
#include <optional>

#include "adapter/frontend.h"
#include "adapter/question.h"
#include "adapter/session.h"
#include "adapter/storage_names.h"
#include "adapter/tensor_facts.h"

namespace sherlorch {

namespace {

WindowOptions window_options(const TrackerOptions& options) {
  WindowOptions window;
  window.sites = options.locations;
  window.module_paths = options.module_paths;
  window.sample_every = sample_every(options.sample);
  window.scan_views = options.scan_views;
  window.keep_operands = options.keep_operands;
  if (!options.dtypes.empty()) window.dtypes = 0;
  for (const c10::ScalarType dtype : options.dtypes) {
    const DType known = dtype_of(static_cast<std::uint8_t>(dtype));
    // Integers can't be non-finite; to name them asks for nothing.
    if (known != DType::kOther) window.dtypes |= std::uint32_t{1} << static_cast<unsigned>(known);
  }
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

  Diagnosis diagnose(const at::TensorBase& tensor, const std::optional<std::vector<std::int64_t>>& index) const {
    Diagnosis diagnosis = sherlorch::diagnose(window, tensor, index, nullptr);
    explain_missing_lines(&diagnosis);
    return diagnosis;
  }

  Window window;
  std::mutex mutex;  // guards what follows
  StorageNames names;
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
  for (const NamedTensor& named : tensors) impl_->names.name(named);
  impl_->window.name_storages(impl_->names.labels());
}

bool Tracker::has_issue(const at::TensorBase& tensor) const { return sherlorch::has_issue(tensor); }

Diagnosis Tracker::diagnose(const at::TensorBase& tensor) const { return impl_->diagnose(tensor, std::nullopt); }

Diagnosis Tracker::diagnose(const at::TensorBase& tensor, c10::IntArrayRef index) const {
  return impl_->diagnose(tensor, index.vec());
}

}  // namespace sherlorch
