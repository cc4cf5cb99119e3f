#include "bindings/python_stack.h"

#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

#include <memory>
#include <string_view>

#include "adapter/session.h"
#include "bindings/code_cache.h"
#include "core/base/address_cache.h"

// The frames of CPython 3.11. Reading them is safe without the GIL because only the running thread changes its own, and
// it is here; the code objects that they hold are immutable and kept alive by them. Nothing is referenced past the
// call: what is remembered of a code object is copied out of it.
#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030c0000
#error "The layout of frames differs between minor versions of CPython: this file knows 3.11 only."
#endif

namespace sherlorch {

namespace {

void (*g_namer)(void*) = nullptr;

struct ModuleEntry {
  ModuleId id = 0;
  std::uint32_t generation = 0;
};

// By the address of the module; one a thread.
using ModuleCache = AddressCache<ModuleEntry>;

ModuleCache& module_cache() {
  static thread_local ModuleCache* cached __attribute__((tls_model("initial-exec"))) = nullptr;
  if (cached == nullptr) [[unlikely]] {
    static thread_local std::unique_ptr<ModuleCache> owner;
    owner = std::make_unique<ModuleCache>();
    cached = owner.get();
  }
  return *cached;
}

SiteId site_of(CodeCache& cache, const _PyInterpreterFrame* frame, bool gil_is_safe) {
  return cache.site(frame->f_code, frame->prev_instr, gil_is_safe);
}

const _PyInterpreterFrame* innermost() noexcept {
  const PyThreadState* state = PyGILState_GetThisThreadState();
  return state == nullptr ? nullptr : state->cframe->current_frame;
}

// A frame that has not begun to run has no line yet.
bool complete(const _PyInterpreterFrame* frame) noexcept {
  return frame->owner == FRAME_OWNED_BY_GENERATOR ||
         frame->prev_instr >= _PyCode_CODE(frame->f_code) + frame->f_code->_co_firsttraceable;
}

void* module_in(const _PyInterpreterFrame* frame) noexcept {
  PyObject* self = frame->localsplus[0];
  if (self != nullptr && Py_IS_TYPE(self, &PyCell_Type)) self = PyCell_GET(self);
  return self;
}

ModuleId module_id(void* module) {
  ModuleTable& table = Session::get().recorder().graph().tables.modules;
  const std::uint32_t generation = table.generation();
  ModuleCache& cache = module_cache();
  const ModuleEntry* known = cache.find(module);
  if (known != nullptr && known->generation == generation) [[likely]]
    return known->id;
  const ModuleId id = table.id_of(module);
  cache.insert(module) = {id, generation};
  return id;
}

// The name of a function written in C; null for others. Reads immutable memory only.
const char* c_name(PyObject* function) noexcept {
  if (function == nullptr) return nullptr;
  if (PyCFunction_Check(function)) return reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name;
  if (Py_IS_TYPE(function, &PyMethodDescr_Type))
    return reinterpret_cast<PyMethodDescrObject*>(function)->d_method->ml_name;
  if (Py_IS_TYPE(function, &PyWrapperDescr_Type))
    return reinterpret_cast<PyWrapperDescrObject*>(function)->d_base->name;
  return nullptr;
}

// "add" of "__radd__" or "add_".
std::string_view bare(std::string_view name) noexcept {
  if (name.starts_with("__") && name.ends_with("__") && name.size() > 4) {
    name = name.substr(2, name.size() - 4);
    if (name == "truediv" || name == "rtruediv" || name == "itruediv") return "div";
    if (name == "radd" || name == "rsub" || name == "rmul" || name == "rdiv" || name == "rpow" || name == "rmatmul" ||
        name == "iadd" || name == "isub" || name == "imul" || name == "idiv" || name == "ipow") {
      name.remove_prefix(1);
    }
  }
  while (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

// True if a __torch_function__ handler is only passing on the call for which it was asked: the line that the user can
// change is then its caller's. `called` is the Python frame that it has called, if any: a handler reaches the original
// function through torch's own Python code, or calls it right away.
bool passes_on(const _PyInterpreterFrame* handler, bool called, const char* op_name) noexcept {
  if (called) return true;
  const PyCodeObject* code = handler->f_code;
  const Py_ssize_t locals = PyTuple_GET_SIZE(code->co_localsplusnames);
  for (Py_ssize_t i = 0; i < locals && i < code->co_argcount; ++i) {
    const char* name = c_name(handler->localsplus[i]);
    if (name != nullptr && bare(name) == bare(op_name)) return true;
  }
  return false;
}

// The outermost running module, for a name of its tree.
void* outermost_module(CodeCache& cache, const _PyInterpreterFrame* frame) {
  void* module = nullptr;
  for (; frame != nullptr; frame = frame->previous) {
    if (complete(frame) && (cache.flags(frame->f_code, true) & kModuleCall) != 0) module = module_in(frame);
  }
  return module;
}

// Cold: once a module that has no name. Takes the GIL, which is safe here because the op was called straight from
// Python code of this thread (no autograd node, so no lock of the engine's, is between) and we hold no lock.
void name_tree(CodeCache& cache, const _PyInterpreterFrame* frame) {
  if (g_namer == nullptr || _Py_IsFinalizing()) return;
  void* root = outermost_module(cache, frame);
  if (root == nullptr) return;
  const PyGILState_STATE gil = PyGILState_Ensure();
  g_namer(root);
  PyGILState_Release(gil);
}

}  // namespace

void set_root_namer(void (*namer)(void* module)) { g_namer = namer; }

void* top_python_frame() noexcept { return const_cast<_PyInterpreterFrame*>(innermost()); }

void capture_site(void* floor, const char* op_name, SiteCapture* capture) noexcept {
  const _PyInterpreterFrame* top = innermost();
  capture->top_frame = const_cast<_PyInterpreterFrame*>(top);
  if (top == nullptr) return;
  CodeCache& cache = CodeCache::of_this_thread();
  const _PyInterpreterFrame* library = nullptr;  // innermost frame that is neither torch's nor ours
  // Inside the autograd engine locks of its own may be held. Elsewhere the op was called straight from Python code.
  const bool gil_is_safe = floor == nullptr;
  bool above = floor != nullptr;
  void* module = nullptr;
  for (const _PyInterpreterFrame* frame = top; frame != nullptr; frame = frame->previous) {
    if (frame == floor) above = false;
    if (!complete(frame)) continue;
    const std::uint8_t flags = cache.flags(frame->f_code, gil_is_safe);
    if (above) {
      capture->above_floor = true;
      if ((flags & kCheckpoint) != 0) capture->checkpoint = true;
    }
    if (module == nullptr && (flags & kModuleCall) != 0) module = module_in(frame);
    if (capture->site == 0 && (flags & kUser) != 0 &&
        ((flags & kHandler) == 0 || !passes_on(frame, frame != top, op_name))) {
      capture->site = site_of(cache, frame, gil_is_safe);
      capture->user_above_floor = above;
    }
    if (library == nullptr && (flags & (kUser | kOwn | kTorch)) == 0) library = frame;
    if (capture->site != 0 && module != nullptr && !above) break;
  }
  // A program that is itself installed as a package: the innermost code that is not torch's.
  if (capture->site == 0 && library != nullptr) capture->site = site_of(cache, library, gil_is_safe);
  if (module == nullptr) return;
  capture->module = module_id(module);
  ModuleTable& table = Session::get().recorder().graph().tables.modules;
  if (floor == nullptr && table.needs_name(capture->module)) [[unlikely]] {
    name_tree(cache, top);
    // It has had its chance.
    table.set_named(capture->module);
  }
}

void capture_python_stack(std::vector<SiteId>* stack) {
  CodeCache& cache = CodeCache::of_this_thread();
  for (const _PyInterpreterFrame* frame = innermost(); frame != nullptr; frame = frame->previous) {
    if (!complete(frame)) continue;
    // The recorder holds its lock here, so the GIL must not be waited for.
    const std::uint8_t flags = cache.flags(frame->f_code, false);
    if ((flags & kRunner) != 0) break;
    if ((flags & kOwn) == 0) stack->insert(stack->begin(), site_of(cache, frame, false));
  }
}

}  // namespace sherlorch
