#include "bindings/eager_stance.h"

namespace sherlorch {

namespace {

// References are owned, for as long as the process lives.
struct State {
  PyObject* prepare = nullptr;
  bool prepared = false;
  long traces = 0;
  PyObject* globals = nullptr;
  PyObject* name = nullptr;  // "_stance"
  PyObject* eager = nullptr;
  PyObject* active_callback = nullptr;
  PyObject* before = nullptr;  // the stance to put back, while ours is set
};

State g_state;

// torch refuses to set a stance where compiled code is being traced or run.
bool may_set() noexcept {
  PyObject* callback = PyObject_CallNoArgs(g_state.active_callback);
  if (callback == nullptr) PyErr_Clear();
  const bool free = callback == Py_None || callback == Py_False;
  Py_XDECREF(callback);
  return free;
}

void set_stance() noexcept {
  if (!may_set()) return;
  PyObject* current = PyDict_GetItem(g_state.globals, g_state.name);
  if (current == nullptr) return;
  Py_INCREF(current);
  if (PyDict_SetItem(g_state.globals, g_state.name, g_state.eager) == 0) {
    g_state.before = current;
  } else {
    PyErr_Clear();
    Py_DECREF(current);
  }
}

void put_back() noexcept {
  if (PyDict_GetItem(g_state.globals, g_state.name) == g_state.eager &&
      PyDict_SetItem(g_state.globals, g_state.name, g_state.before) != 0) {
    PyErr_Clear();
  }
  Py_CLEAR(g_state.before);
}

// Waiting for an import may let other threads in; they call it too, and what it does is done once.
void prepare() noexcept {
  PyObject* done = g_state.prepare == nullptr ? nullptr : PyObject_CallNoArgs(g_state.prepare);
  if (done == nullptr) {
    PyErr_Clear();
    return;
  }
  Py_DECREF(done);
  g_state.prepared = true;
}

}  // namespace

void set_eager_prepare(const pybind11::object& prepare) { g_state.prepare = prepare.inc_ref().ptr(); }

void set_dynamo(const pybind11::dict& globals, const pybind11::object& eager, const pybind11::object& active_callback) {
  if (g_state.globals != nullptr) return;
  g_state.name = PyUnicode_InternFromString("_stance");
  if (g_state.name == nullptr) throw pybind11::error_already_set();
  g_state.eager = eager.inc_ref().ptr();
  g_state.active_callback = active_callback.inc_ref().ptr();
  g_state.globals = globals.inc_ref().ptr();
  if (g_state.traces > 0) set_stance();
}

bool enter_eager() noexcept {
  if (!g_state.prepared) prepare();
  ++g_state.traces;
  if (g_state.globals == nullptr) return g_state.prepared;
  if (g_state.traces == 1) set_stance();
  return g_state.before != nullptr;
}

void leave_eager() noexcept {
  --g_state.traces;
  if (g_state.traces == 0 && g_state.before != nullptr) put_back();
}

}  // namespace sherlorch
