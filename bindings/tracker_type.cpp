#include "bindings/tracker_type.h"

#include <cmath>
#include <new>

#include "bindings/eager_stance.h"
#include "bindings/python_tensor.h"

namespace sherlorch {

namespace {

struct TrackerObject {
  PyObject ob_base;  // what PyObject_HEAD stands for
  NativeTracker tracker;
};

PyTypeObject* g_type = nullptr;

NativeTracker& tracker_of(PyObject* self) noexcept { return reinterpret_cast<TrackerObject*>(self)->tracker; }

// False with a Python exception set. None leaves the types as they are: all of them.
bool read_dtypes(PyObject* dtypes, std::uint32_t* bits) {
  if (dtypes == Py_None) return true;
  PyObject* list = PySequence_Fast(dtypes, "check_dtypes is no sequence");
  if (list == nullptr) return false;
  *bits = 0;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); ++i) {
    *bits |= std::uint32_t{1} << static_cast<unsigned>(dtype_in(PySequence_Fast_GET_ITEM(list, i)));
  }
  Py_DECREF(list);
  return true;
}

struct Options {
  WindowOptions window;
  bool eager = true;
};

// False with a Python exception set.
bool read_options(PyObject* const* args, Options* options) {
  options->window.sites = args[0] == Py_True;
  if (!read_dtypes(args[1], &options->window.dtypes)) return false;
  options->window.scan_views = args[2] == Py_True;
  options->window.module_paths = args[3] == Py_True;
  const double sample = PyFloat_AsDouble(args[4]);
  if (PyErr_Occurred() != nullptr) return false;
  options->window.sample_every = sample_every(sample);
  options->window.keep_operands = args[5] == Py_True;
  options->eager = args[6] == Py_True;
  return true;
}

// Tracker(), or Tracker(capture_stack, check_dtypes, scan_everything, module_paths, sample, keep_operands, eager).
PyObject* make(PyObject* type, PyObject* const* args, std::size_t flags, PyObject* keywords) {
  const Py_ssize_t given = PyVectorcall_NARGS(flags);
  Options options;
  if (keywords != nullptr || (given != 0 && given != 7)) {
    PyErr_SetString(PyExc_TypeError, "Tracker() takes none or seven arguments, by position");
    return nullptr;
  }
  if (given != 0 && !read_options(args, &options)) return nullptr;
  auto* object = PyObject_New(TrackerObject, reinterpret_cast<PyTypeObject*>(type));
  if (object == nullptr) return nullptr;
  try {
    new (&object->tracker) NativeTracker(options.window, options.eager);
  } catch (const std::exception&) {
    PyObject_Free(object);
    Py_DECREF(type);
    return PyErr_NoMemory();
  }
  return reinterpret_cast<PyObject*>(object);
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  NativeTracker& tracker = tracker_of(self);
  if (tracker.eager() && tracker.window().started()) leave_eager();  // dropped inside of its `with`
  tracker.~NativeTracker();
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* start(PyObject* self, PyObject*) {
  NativeTracker& tracker = tracker_of(self);
  try {
    if (!tracker.window().start()) return PyLong_FromLong(0);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  return PyLong_FromLong(tracker.eager() && !enter_eager() ? 2 : 1);
}

PyObject* stop(PyObject* self, PyObject*) {
  NativeTracker& tracker = tracker_of(self);
  try {
    if (!tracker.window().stop()) Py_RETURN_FALSE;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  if (tracker.eager()) leave_eager();
  Py_RETURN_TRUE;
}

PyMethodDef g_methods[] = {
    {"start", start, METH_NOARGS, nullptr},
    {"stop", stop, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

py::object make_tracker_type() {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
      {Py_tp_methods, g_methods},
      {0, nullptr},
  };
  PyType_Spec spec = {"sherlorch._native.Tracker", sizeof(TrackerObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  auto type = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
  if (!type) throw py::error_already_set();
  g_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  g_type->tp_vectorcall = make;  // instead of tp_new, which would get the arguments as a tuple
  return type;
}

NativeTracker* tracker_in(PyObject* object) noexcept {
  return Py_TYPE(object) == g_type ? &tracker_of(object) : nullptr;
}

}  // namespace sherlorch
