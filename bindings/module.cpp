// The Python module sherlorch._native: conversions and nothing else.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/version.h>

#include <map>
#include <memory>

#include "adapter/observer.h"
#include "adapter/question.h"
#include "adapter/session.h"
#include "bindings/code_cache.h"
#include "bindings/eager_stance.h"
#include "bindings/native_tracker.h"
#include "bindings/python_stack.h"
#include "bindings/python_tensor.h"
#include "bindings/relation_probe.h"
#include "bindings/tracker_type.h"
#include "core/operators/relation.h"
#include "core/operators/traits.h"
#include "core/report/chrome_trace.h"
#include "sherlorch/errors.h"
#include "sherlorch/report.h"

namespace sherlorch {

namespace {

// --- names of modules that nobody watches

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
      .def_property_readonly("ok", [](const NativeDiagnosis& self) { return self.diagnosis.culprits.empty(); })
      .def_property_readonly("total_ops", [](const NativeDiagnosis& self) { return self.diagnosis.total_ops; })
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

  const py::object tracker = make_tracker_type();
  m.attr("Tracker") = tracker;
  const auto method = [&](const char* name, auto&& function, const auto&... extra) {
    tracker.attr(name) = py::cpp_function(function, py::name(name), py::is_method(tracker), extra...);
  };
  const auto property = [&](const char* name, auto&& read) {
    tracker.attr(name) =
        py::module_::import("builtins").attr("property")(py::cpp_function(read, py::is_method(tracker)));
  };
  property("active", [](TrackerRef self) { return self->window().active(); });
  property("op_count", [](TrackerRef self) { return self->window().op_count(); });
  method("enable", [](TrackerRef self) { self->window().enable(); });
  method("disable", [](TrackerRef self) { self->window().disable(); });
  method("reset", [](TrackerRef self) { self->window().reset(); });
  method(
      "diagnose",
      [](TrackerRef self, const py::object& tensor, const std::optional<std::vector<std::int64_t>>& index) {
        return self->diagnose(tensor, index);
      },
      py::arg("tensor"), py::arg("index") = py::none());
  method("node_of", [](TrackerRef self, const py::object& tensor) { return self->node_of(tensor); });
  method("name_modules", [](TrackerRef self, const std::vector<std::pair<py::object, std::string>>& entries) {
    self->name_modules(entries);
  });
  method("name_tensors",
         [](TrackerRef self, int model, const std::vector<std::tuple<py::object, std::string, bool>>& entries) {
           self->name_tensors(model, entries);
         });
  method("name_gradients", [](TrackerRef self, const std::vector<std::pair<py::object, std::string>>& entries) {
    self->name_gradients(entries);
  });
  method("unname_modules", [](TrackerRef self) { self->window().hide_modules(); });
  method("add_blind_spot", [](TrackerRef self, std::string kind, std::uint64_t count, std::string text) {
    self->window().add_blind_spot(std::move(kind), count, std::move(text));
  });
  method("blind_spots", [](TrackerRef self) {
    py::list spots;
    for (const BlindSpot& spot : self->window().view().blind_spots) {
      py::dict entry;
      entry["kind"] = spot.kind;
      entry["count"] = spot.count;
      entry["text"] = spot.text;
      spots.append(entry);
    }
    return spots;
  });
  method("bystanders",
         [](TrackerRef self, const py::object& tensor, std::size_t limit) { return self->bystanders(tensor, limit); });
  method("timeline", [](TrackerRef self, std::size_t limit) {
    py::list ops;
    for (const TimelineOp& op : self->last_ops(limit)) {
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
  });
  method("to_chrome_trace",
         [](TrackerRef self) { return to_chrome_trace(self->last_ops(FlightRecorder::kDefaultCapacity)); });
  method("set_trap", [](TrackerRef self, const py::object& callback) { self->set_trap(callback); });
  m.def("set_eager_prepare", set_eager_prepare);
  m.def("set_dynamo", set_dynamo);

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
