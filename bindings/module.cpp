// The Python module sherlorch._native: conversions and nothing else.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "adapter/observer.h"
#include "adapter/question.h"
#include "adapter/session.h"
#include "adapter/storage_names.h"
#include "bindings/code_cache.h"
#include "bindings/python_stack.h"
#include "bindings/python_tensor.h"
#include "bindings/relation_probe.h"
#include "core/diagnose/timeline.h"
#include "core/operators/relation.h"
#include "core/operators/traits.h"
#include "core/report/chrome_trace.h"
#include "core/report/html.h"
#include "sherlorch/errors.h"
#include "sherlorch/report.h"

namespace py = pybind11;

namespace sherlorch {

namespace {

const at::TensorBase& tensor_of(const py::handle& object) {
  const at::TensorBase* tensor = tensor_in(object.ptr());
  if (tensor == nullptr) {
    throw py::type_error("expected a torch.Tensor, got " + std::string(Py_TYPE(object.ptr())->tp_name));
  }
  return *tensor;
}

Timeline last_ops(const Window& window, std::size_t limit) {
  return timeline(Session::get().recorder().graph(), window.view(), limit);
}

// The newest `limit` of them in words.
std::vector<TimelineOp> in_words(const Timeline& timeline, std::size_t limit = FlightRecorder::kDefaultCapacity) {
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

// "Linear": the class of a module, without its package.
std::string class_name(const py::handle& module) {
  const std::string name = Py_TYPE(module.ptr())->tp_name;
  return name.substr(name.rfind('.') + 1);
}

// Source lines as Python's linecache knows them: notebook cells too.
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

struct NativeDiagnosis {
  Diagnosis diagnosis;
  StepElements elements;
  Timeline timeline;
  std::vector<PageModule> modules;

  std::string to_html(std::size_t last_ops, std::map<std::string, std::string> file_labels) const {
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
};

py::object loads(const std::string& json) { return py::module_::import("json").attr("loads")(json); }

// Ops of the flight recorder that are kept with a diagnosis, for its page. Chosen: 3 MB, 3 MB of page, 0.02 s.
constexpr std::size_t kKeptOps = 100'000;

class NativeTracker {
 public:
  explicit NativeTracker(const WindowOptions& options) : window_(options) {}
  ~NativeTracker() { set_trap(py::none()); }

  Window& window() { return window_; }

  std::unique_ptr<NativeDiagnosis> diagnose(const py::object& tensor,
                                            const std::optional<std::vector<std::int64_t>>& index) {
    auto result = std::make_unique<NativeDiagnosis>();
    const at::TensorBase& asked = tensor_of(tensor);
    py::gil_scoped_release release;
    result->diagnosis = sherlorch::diagnose(window_, asked, index, &result->elements);
    finish(result.get());
    return result;
  }

  py::object node_of(const py::object& tensor) {
    Diagnosis holder;
    if (!find_node(window_, tensor_of(tensor), &holder.target)) return py::none();
    return loads(to_json(holder, 0))["target"];
  }

  py::object bystanders(const py::object& tensor, std::size_t limit) {
    Diagnosis holder;
    holder.deliberate = sherlorch::bystanders(window_, tensor_of(tensor), limit);
    return loads(to_json(holder, 0))["deliberate"];
  }

  void name_modules(const std::vector<std::pair<py::object, std::string>>& entries) {
    ModuleTable& table = Session::get().recorder().graph().tables.modules;
    for (const auto& [module, name] : entries) {
      table.set_name(table.id_of(module.ptr()), name, class_name(module));
    }
    window_.show_modules();
  }

  // All that the model has now.
  void name_tensors(int model, const std::vector<std::tuple<py::object, std::string, bool>>& entries) {
    std::vector<NamedTensor> tensors;
    for (const auto& [tensor, name, buffer] : entries) tensors.push_back({tensor_of(tensor), name, buffer});
    std::lock_guard lock(names_mutex_);
    names_.name_model(model, tensors);
    window_.name_storages(names_.labels());
  }

  // Gradients as they are now; replaces those named before.
  void name_gradients(const std::vector<std::pair<py::object, std::string>>& entries) {
    std::lock_guard lock(names_mutex_);
    names_.forget_gradients();
    for (const auto& [tensor, name] : entries) names_.name_gradient(tensor_of(tensor), name);
    window_.name_storages(names_.labels());
  }

  void set_trap(const py::object& callback);

  std::unique_ptr<NativeDiagnosis> diagnose_op(OpSeq seq) {
    auto result = std::make_unique<NativeDiagnosis>();
    result->diagnosis = sherlorch::diagnose_op(window_, seq, &result->elements);
    finish(result.get());
    return result;
  }

 private:
  void finish(NativeDiagnosis* result) const {
    result->timeline = last_ops(window_, kKeptOps);
    result->modules = trees_of(result->diagnosis, result->timeline);
  }

  Window window_;
  std::mutex names_mutex_;
  StorageNames names_;
};

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
  window_.set_trap(!callback.is_none());
}

// --- names of modules that nobody watches
// ------------------------------------------------------------------------------

py::object& root_namer() {
  static auto* namer = new py::object();
  return *namer;
}

void name_root(void* module) {
  if (!root_namer()) return;
  // An exception that is pending on this thread is the user's; it must be there afterwards.
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* result = PyObject_CallOneArg(root_namer().ptr(), static_cast<PyObject*>(module));
  if (result == nullptr) PyErr_Clear();
  Py_XDECREF(result);
  PyErr_Restore(type, value, traceback);
}

// --- names of threads

py::object& thread_namer() {
  static auto* namer = new py::object();
  return *namer;
}

// Only where Python code of this thread has called the op: the engine holds no lock of its own then, so the GIL may be
// waited for.
std::string python_thread_name() {
  if (top_python_frame() == nullptr || !thread_namer() || _Py_IsFinalizing()) return "";
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);  // what is pending is the user's
  std::string name;
  if (PyObject* result = PyObject_CallNoArgs(thread_namer().ptr())) {
    const char* text = PyUnicode_Check(result) ? PyUnicode_AsUTF8(result) : nullptr;
    if (text != nullptr) name = text;
    Py_DECREF(result);
  }
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(gil);
  return name;
}

}  // namespace

}  // namespace sherlorch

PYBIND11_MODULE(_native, m) {
  using namespace sherlorch;
  m.attr("torch_version") = TORCH_VERSION;

  static py::exception<UntrackedTensorError> untracked(m, "UntrackedTensor", PyExc_KeyError);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const UntrackedTensorError& error) {
      PyErr_SetString(untracked.ptr(), error.what());
    } catch (const IndexError& error) {
      PyErr_SetString(PyExc_IndexError, error.what());
    } catch (const ReportError& error) {
      PyErr_SetString(PyExc_OSError, error.what());
    }
  });

  py::class_<NativeDiagnosis>(m, "Diagnosis")
      .def("to_dict", [](const NativeDiagnosis& self) { return loads(to_json(self.diagnosis, 0)); })
      .def(
          "to_text",
          [](const NativeDiagnosis& self, bool color, std::size_t width, bool show_source) {
            TextOptions options;
            options.color = color;
            options.width = width;
            options.show_source = show_source;
            options.source = read_source_line;
            return to_text(self.diagnosis, options);
          },
          py::kw_only(), py::arg("color") = false, py::arg("width") = 100, py::arg("show_source") = true)
      .def(
          "to_json", [](const NativeDiagnosis& self, int indent) { return to_json(self.diagnosis, indent); },
          py::kw_only(), py::arg("indent") = 2)
      .def("to_dot", [](const NativeDiagnosis& self) { return to_dot(self.diagnosis); })
      .def("to_prov_json", [](const NativeDiagnosis& self) { return to_prov_json(self.diagnosis); })
      .def("to_html", &NativeDiagnosis::to_html, py::kw_only(), py::arg("last_ops") = kKeptOps,
           py::arg("file_labels") = std::map<std::string, std::string>())
      .def("verdict", [](const NativeDiagnosis& self) { return verdict(self.diagnosis); })
      .def_static("from_json",
                  [](const std::string& text) {
                    auto result = std::make_unique<NativeDiagnosis>();
                    try {
                      result->diagnosis = from_json(text);
                    } catch (const ReportError& error) {
                      throw py::value_error(error.what());
                    }
                    return result;
                  })
      .def("elements", [](const NativeDiagnosis& self, OpSeq seq) -> py::object {
        auto found = self.elements.find(seq);
        if (found == self.elements.end()) return py::none();
        py::list runs;
        for (const Run& run : found->second.runs()) runs.append(py::make_tuple(run.begin, run.end));
        return runs;
      });

  py::class_<NativeTracker>(m, "Tracker")
      .def(py::init([](bool capture_stack, const py::object& check_dtypes, bool scan_everything, bool module_paths,
                       double sample, bool keep_operands) {
        WindowOptions options;
        options.sites = capture_stack;
        options.module_paths = module_paths;
        options.scan_views = scan_everything;
        options.keep_operands = keep_operands;
        options.sample_every = sample_every(sample);
        if (!check_dtypes.is_none()) {
          options.dtypes = 0;
          for (const py::handle& dtype : check_dtypes) {
            options.dtypes |= std::uint32_t{1} << static_cast<unsigned>(dtype_in(dtype.ptr()));
          }
        }
        return std::make_unique<NativeTracker>(options);
      }))  // by position only: with keywords a call takes longer, and some programs make a tracker a step
      .def("start", [](NativeTracker& self) { return self.window().start(); })
      .def("stop", [](NativeTracker& self) { return self.window().stop(); })
      .def_property_readonly("active", [](NativeTracker& self) { return self.window().active(); })
      .def("enable", [](NativeTracker& self) { self.window().enable(); })
      .def("disable", [](NativeTracker& self) { self.window().disable(); })
      .def("reset", [](NativeTracker& self) { self.window().reset(); })
      .def_property_readonly("op_count", [](NativeTracker& self) { return self.window().op_count(); })
      .def("diagnose", &NativeTracker::diagnose, py::arg("tensor"), py::arg("index") = py::none())
      .def("node_of", &NativeTracker::node_of)
      .def("name_modules", &NativeTracker::name_modules)
      .def("name_tensors", &NativeTracker::name_tensors)
      .def("name_gradients", &NativeTracker::name_gradients)
      .def("unname_modules", [](NativeTracker& self) { self.window().hide_modules(); })
      .def("add_blind_spot",
           [](NativeTracker& self, std::string kind, std::uint64_t count, std::string text) {
             self.window().add_blind_spot(std::move(kind), count, std::move(text));
           })
      .def("blind_spots",
           [](NativeTracker& self) {
             py::list spots;
             for (const BlindSpot& spot : self.window().view().blind_spots) {
               py::dict entry;
               entry["kind"] = spot.kind;
               entry["count"] = spot.count;
               entry["text"] = spot.text;
               spots.append(entry);
             }
             return spots;
           })
      .def("bystanders", &NativeTracker::bystanders)
      .def("timeline",
           [](NativeTracker& self, std::size_t limit) {
             py::list ops;
             for (const TimelineOp& op : in_words(last_ops(self.window(), limit))) {
               py::dict entry;
               entry["seq"] = op.seq;
               entry["op_name"] = op.op_name;
               entry["location"] = op.location;
               entry["module_path"] = op.module_path;
               entry["thread_name"] = op.thread_name;
               entry["phase"] = phase_name(op.phase);
               entry["largest"] = op.largest;
               entry["nonfinite"] = op.nonfinite;
               ops.append(entry);
             }
             return ops;
           })
      .def("to_chrome_trace",
           [](NativeTracker& self) {
             return to_chrome_trace(in_words(last_ops(self.window(), FlightRecorder::kDefaultCapacity)));
           })
      .def("set_trap", &NativeTracker::set_trap);

  m.def("has_issue", [](const py::object& tensor) { return has_issue(tensor_of(tensor)); });
  m.def("write_file", [](const std::string& path, const std::string& content, bool overwrite) {
    write_file(path, content, overwrite);
  });
  m.def("set_library_folders", [](std::string torch, std::string own, std::vector<std::string> others) {
    set_library_folders({std::move(torch), std::move(own), std::move(others)});
  });
  // name_root(module): called when a module without a name runs as the outermost one; names it and what is below it.
  m.def("set_root_namer", [](const py::object& namer) {
    root_namer() = namer;
    set_root_namer(namer.is_none() ? nullptr : name_root);
  });
  // thread_name(): what Python calls the thread on which it is called; called at the first op of a thread.
  m.def("set_thread_namer", [](const py::object& namer) { thread_namer() = namer; });
  m.def("name_module", [](const py::object& module, const std::string& name, bool replace) {
    ModuleTable& table = Session::get().recorder().graph().tables.modules;
    const ModuleId id = table.id_of(module.ptr());
    if (replace || table.name(id).empty()) table.set_name(id, name, class_name(module));
  });
  m.def("forget_module", [](std::uintptr_t address) {
    Session::get().recorder().graph().tables.modules.forget(reinterpret_cast<const void*>(address));
  });
  m.def("recorder_facts", [] {
    Recorder& recorder = Session::get().recorder();
    py::dict facts;
    facts["ops"] = recorder.op_count();
    facts["slots"] = recorder.graph().flight.capacity();
    facts["slot_bytes"] = FlightRecorder::kBytesPerSlot;
    facts["scans"] = Recorder::scans_of_this_thread();
    facts["tickets"] = recorder.graph().flight.end();
    facts["shadowed_storages"] = recorder.has_shadows();
    {
      std::lock_guard lock(recorder.graph().mutex);
      facts["records"] = recorder.graph().store.size();
      facts["shadows"] = recorder.graph().shadow.size();
    }
    return facts;
  });
  // For benchmarks.
  m.def("_empty_callbacks", switch_empty_observer);
  // For tests.
  m.def("_last_relation", last_relation);
  m.def("_last_operator", last_operator);
  m.def("_mapped_operators", mapped_operators);
  m.def("_makes_no_nan", operators_that_make_no_nan);
  m.def("inject_failures", [](int n) { Session::get().recorder().inject_failures(n); });

  Frontend front;
  front.capture = capture_site;
  front.top_frame = top_python_frame;
  front.capture_stack = capture_python_stack;
  front.thread_name = python_thread_name;
  front.trap = on_trap;
  set_frontend(front);
}
