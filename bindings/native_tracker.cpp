#include "bindings/native_tracker.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "adapter/question.h"
#include "bindings/python_tensor.h"
#include "core/report/chrome_trace.h"
#include "sherlorch/errors.h"
#include "sherlorch/report.h"

namespace sherlorch {

namespace {

Timeline timeline_of(const Window& window, std::size_t limit) {
  return timeline(Session::get().recorder().graph(), window.view(), limit);
}

// The newest `limit` of them in words.
std::vector<TimelineOp> in_words(const Timeline& timeline, std::size_t limit) {
  const std::size_t count = std::min(limit, timeline.steps.size());
  std::vector<TimelineOp> ops;
  ops.reserve(count);
  for (auto step = timeline.steps.end() - static_cast<std::ptrdiff_t>(count); step != timeline.steps.end(); ++step) {
    TimelineOp op;
    op.seq = step->seq;
    op.op_name = timeline.op_names.at(step->op);
    op.location = timeline.places.at(step->site);
    op.module_path = timeline.modules.at(step->module);
    op.thread_name = timeline.threads.at(step->thread);
    op.phase = step->phase;
    op.largest = step->largest;
    op.nonfinite = step->nonfinite;
    op.start_us = static_cast<double>(op.seq);
    ops.push_back(std::move(op));
  }
  return ops;
}

// The trees of modules of which one ran an op that the diagnosis or the timeline names.
std::vector<PageModule> trees_of(const Diagnosis& diagnosis, const Timeline& timeline) {
  const auto root = [](const std::string& path) { return path.substr(0, path.find('.')); };
  std::set<std::string> roots;
  for (const auto& [id, path] : timeline.modules) roots.insert(root(path));
  for (const Culprit& culprit : diagnosis.culprits) {
    for (const Step& step : culprit.path) roots.insert(root(step.module_path));
  }
  std::vector<PageModule> modules;
  for (NamedModule& module : Session::get().recorder().graph().tables.modules.living()) {
    if (roots.contains(root(module.name))) modules.push_back({std::move(module.name), std::move(module.type)});
  }
  return modules;
}

// --- the trap: an op introduced something; tell the main thread as soon as the op has returned -----------------------

std::mutex g_trap_mutex;
std::map<NativeTracker*, py::object>& traps() {
  static auto* map = new std::map<NativeTracker*, py::object>();
  return *map;
}
std::atomic<OpSeq> g_trapped{0};

// Runs on the main thread with the GIL, between two bytecodes: right after the call that ran the op.
int spring_trap(void*) {
  const OpSeq seq = g_trapped.exchange(0);
  if (seq == 0) return 0;
  std::vector<std::pair<NativeTracker*, py::object>> armed;
  {
    std::lock_guard lock(g_trap_mutex);
    armed.assign(traps().begin(), traps().end());
  }
  for (auto& [tracker, callback] : armed) {
    if (!tracker->window().visible(seq)) continue;
    try {
      callback(tracker->diagnose_op(seq));
    } catch (py::error_already_set& error) {
      error.restore();
      return -1;
    } catch (const UntrackedTensorError&) {
      // The bad value is gone already: a temporary that nothing kept.
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
      return -1;
    }
  }
  return 0;
}

}  // namespace

void on_trap(OpSeq seq) noexcept {
  OpSeq none = 0;
  // The first one counts until it has been told.
  if (g_trapped.compare_exchange_strong(none, seq)) Py_AddPendingCall(spring_trap, nullptr);
}

void NativeTracker::set_trap(const py::object& callback) {
  {
    std::lock_guard lock(g_trap_mutex);
    if (callback.is_none()) {
      traps().erase(this);
    } else {
      traps()[this] = callback;
    }
  }
  trapped_ = !callback.is_none();
  window_.set_trap(trapped_);
}

py::object loads(const std::string& json) { return py::module_::import("json").attr("loads")(json); }

NativeTracker::~NativeTracker() {
  if (trapped_) set_trap(py::none());
}

const at::TensorBase& tensor_of(const py::handle& object) {
  const at::TensorBase* tensor = tensor_in(object.ptr());
  if (tensor == nullptr) {
    throw py::type_error("expected a torch.Tensor, got " + std::string(Py_TYPE(object.ptr())->tp_name));
  }
  return *tensor;
}

std::string class_name(const py::handle& module) {
  const std::string name = Py_TYPE(module.ptr())->tp_name;
  return name.substr(name.rfind('.') + 1);
}

bool read_source_line(const std::string& file, int line, std::string* text) {
  py::gil_scoped_acquire gil;
  try {
    const auto found = py::module_::import("linecache").attr("getline")(file, line).cast<std::string>();
    if (found.empty()) return false;
    *text = found.back() == '\n' ? found.substr(0, found.size() - 1) : found;
    return true;
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("sherlorch: reading a source line");
    return false;
  }
}

std::string NativeDiagnosis::to_html(std::size_t last_ops, std::map<std::string, std::string> file_labels) const {
  PageExtras extras;
  extras.file_labels = std::move(file_labels);
  extras.modules = modules;
  extras.source = read_source_line;
  for (const Culprit& culprit : diagnosis.culprits) {
    auto found = elements.find(culprit.step.seq);
    if (found == elements.end()) continue;
    const ElementSet& set = found->second;
    extras.heat_maps.push_back(make_heat_map(culprit.step.seq, culprit.step.shape, set.runs()));
  }
  return sherlorch::to_html(diagnosis, in_words(timeline, last_ops), extras);
}

std::unique_ptr<NativeDiagnosis> NativeTracker::diagnose(const py::object& tensor,
                                                         const std::optional<std::vector<std::int64_t>>& index) {
  auto result = std::make_unique<NativeDiagnosis>();
  const at::TensorBase& asked = tensor_of(tensor);
  py::gil_scoped_release release;
  result->diagnosis = sherlorch::diagnose(window_, asked, index, &result->elements);
  finish(result.get());
  return result;
}

std::unique_ptr<NativeDiagnosis> NativeTracker::diagnose_op(OpSeq seq) {
  auto result = std::make_unique<NativeDiagnosis>();
  result->diagnosis = sherlorch::diagnose_op(window_, seq, &result->elements);
  finish(result.get());
  return result;
}

py::object NativeTracker::node_of(const py::object& tensor) {
  Diagnosis holder;
  if (!find_node(window_, tensor_of(tensor), &holder.target)) return py::none();
  return loads(to_json(holder, 0))["target"];
}

py::object NativeTracker::bystanders(const py::object& tensor, std::size_t limit) {
  Diagnosis holder;
  holder.deliberate = sherlorch::bystanders(window_, tensor_of(tensor), limit);
  return loads(to_json(holder, 0))["deliberate"];
}

std::vector<TimelineOp> NativeTracker::last_ops(std::size_t limit) const {
  return in_words(timeline_of(window_, limit), limit);
}

void NativeTracker::name_modules(const std::vector<std::pair<py::object, std::string>>& entries) {
  ModuleTable& table = Session::get().recorder().graph().tables.modules;
  for (const auto& [module, name] : entries) {
    table.set_name(table.id_of(module.ptr()), name, class_name(module));
  }
  window_.show_modules();
}

void NativeTracker::name_tensors(int model, const std::vector<std::tuple<py::object, std::string, bool>>& entries) {
  std::vector<NamedTensor> tensors;
  for (const auto& [tensor, name, buffer] : entries) tensors.push_back({tensor_of(tensor), name, buffer});
  std::lock_guard lock(names_mutex_);
  names_.name_model(model, tensors);
  window_.name_storages(names_.labels());
}

void NativeTracker::name_gradients(const std::vector<std::pair<py::object, std::string>>& entries) {
  std::lock_guard lock(names_mutex_);
  names_.forget_gradients();
  for (const auto& [tensor, name] : entries) names_.name_gradient(tensor_of(tensor), name);
  window_.name_storages(names_.labels());
}

void NativeTracker::finish(NativeDiagnosis* result) const {
  result->timeline = timeline_of(window_, kKeptOps);
  result->modules = trees_of(result->diagnosis, result->timeline);
}

}  // namespace sherlorch
