// What a Python tracer and its diagnoses are on the native side. tracker_type.h makes a Python type of the first.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "adapter/session.h"
#include "adapter/storage_names.h"
#include "core/diagnose/diagnose.h"
#include "core/diagnose/timeline.h"
#include "core/report/html.h"

namespace sherlorch {

namespace py = pybind11;

// Ops of the flight recorder that are kept with a diagnosis, for its page. Chosen: 3 MB, 3 MB of page, 0.02 s.
inline constexpr std::size_t kKeptOps = 100'000;

struct NativeDiagnosis {
  Diagnosis diagnosis;
  StepElements elements;
  Timeline timeline;
  std::vector<PageModule> modules;

  std::string to_html(std::size_t last_ops, std::map<std::string, std::string> file_labels) const;
};

class NativeTracker {
 public:
  // `eager`: compiled functions are to run eagerly while it records (see tracker_type.h).
  NativeTracker(const WindowOptions& options, bool eager) : window_(options), eager_(eager) {}
  ~NativeTracker();

  Window& window() { return window_; }
  bool eager() const noexcept { return eager_; }

  std::unique_ptr<NativeDiagnosis> diagnose(const py::object& tensor,
                                            const std::optional<std::vector<std::int64_t>>& index);
  std::unique_ptr<NativeDiagnosis> diagnose_op(OpSeq seq);
  py::object node_of(const py::object& tensor);
  py::object bystanders(const py::object& tensor, std::size_t limit);
  // The ops that the flight recorder holds of its windows, the newest `limit` of them.
  std::vector<TimelineOp> last_ops(std::size_t limit) const;

  void name_modules(const std::vector<std::pair<py::object, std::string>>& entries);
  // All that the model has now.
  void name_tensors(int model, const std::vector<std::tuple<py::object, std::string, bool>>& entries);
  // Gradients as they are now; replaces those named before.
  void name_gradients(const std::vector<std::pair<py::object, std::string>>& entries);

  // None: no trap.
  void set_trap(const py::object& callback);

 private:
  void finish(NativeDiagnosis* result) const;

  Window window_;
  bool eager_;
  bool trapped_ = false;
  std::mutex names_mutex_;
  StorageNames names_;
};

// The frontend's trap: an op introduced something; the armed trackers' callbacks are called on the main thread as soon
// as the op has returned.
void on_trap(OpSeq seq) noexcept;

// Borrowed. Throws TypeError for anything but a torch.Tensor.
const at::TensorBase& tensor_of(const py::handle& object);

// "Linear": the class of a module, without its package.
std::string class_name(const py::handle& module);

// json.loads().
py::object loads(const std::string& json);

// Source lines as Python's linecache knows them: notebook cells too.
bool read_source_line(const std::string& file, int line, std::string* text);

}  // namespace sherlorch
