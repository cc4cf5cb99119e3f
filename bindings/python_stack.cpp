#include "bindings/python_stack.h"

#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

#include <array>
#include <cstring>
#include <string_view>

#include "adapter/session.h"

// The frames of CPython 3.11. Reading them is safe without the GIL because only the running thread changes its own, and
// it is here; the code objects that they hold are immutable and kept alive by them. Nothing is referenced past the
// call: what is remembered of a code object is copied out of it.
#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030c0000
#error "The layout of frames differs between minor versions of CPython: this file knows 3.11 only."
#endif

namespace sherlorch {

namespace {

LibraryFolders g_folders;
void (*g_namer)(void*) = nullptr;

enum CodeFlags : std::uint8_t {
  kUser = 1,        // the user's own code
  kModuleCall = 2,  // torch.nn.Module.__call__: its first local is the module
  kCheckpoint = 4,  // torch.utils.checkpoint
  kOwn = 8,         // sherlorch itself
  kTorch = 16,
  kHandler = 32,  // a __torch_function__ of the user's
  kRunner = 64,   // of `sherlorch run`: what called it is the command, not the program
};

// A sample of the line table's bytes. Where a freed code object's address and those of its parts are all taken over by
// the next one (programs that are run from strings), the table still differs, or the lines are the same.
std::uint64_t line_table_sample(const PyCodeObject* code) noexcept {
  const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(code->co_linetable));
  const char* bytes = PyBytes_AS_STRING(code->co_linetable);
  std::uint64_t first = 0, middle = 0, last = 0;
  if (size >= 8) {
    std::memcpy(&first, bytes, 8);
    std::memcpy(&middle, bytes + (size - 8) / 2, 8);
    std::memcpy(&last, bytes + size - 8, 8);
  }
  return size ^ first ^ (middle * 0x9e3779b97f4a7c15ull) ^ (last * 0xff51afd7ed558ccdull);
}

// What is remembered of a code object, with enough of it to notice that another one took its address.
struct CodeEntry {
  const PyCodeObject* code = nullptr;
  const void* line_table = nullptr;
  const void* filename = nullptr;
  std::uint64_t lines = 0;  // of the content of the line table
  int first_line = 0;
  std::uint8_t flags = 0;

  bool is(const PyCodeObject* other) const noexcept {
    return code == other && line_table == other->co_linetable && filename == other->co_filename &&
           first_line == other->co_firstlineno && lines == line_table_sample(other);
  }
};

struct SiteEntry {
  CodeEntry code;
  int instruction = -1;
  SiteId site = 0;
};

struct ModuleEntry {
  const void* module = nullptr;
  ModuleId id = 0;
  std::uint32_t generation = 0;
};

// One a thread. Direct-mapped: a collision costs a look into the process-wide table.
struct Caches {
  std::array<CodeEntry, 512> codes;
  std::array<SiteEntry, 1024> sites;
  std::array<ModuleEntry, 256> modules;
};

Caches& caches() {
  static thread_local Caches* cached __attribute__((tls_model("initial-exec"))) = nullptr;
  if (cached == nullptr) [[unlikely]] {
    static thread_local std::unique_ptr<Caches> owner;
    owner = std::make_unique<Caches>();
    cached = owner.get();
  }
  return *cached;
}

std::size_t hash(const void* pointer, std::size_t more = 0) noexcept {
  return ((reinterpret_cast<std::uintptr_t>(pointer) >> 4) + more * 0x9e37) * 0x9e3779b97f4a7c15ull >> 40;
}

// UTF-8 of a str, without touching the object (PyUnicode_AsUTF8 caches into it, which needs the GIL).
std::string text_of(PyObject* str) {
  std::string text;
  if (str == nullptr || !PyUnicode_Check(str) || !PyUnicode_IS_READY(str)) return text;
  const Py_ssize_t length = PyUnicode_GET_LENGTH(str);
  const auto kind = PyUnicode_KIND(str);
  const void* data = PyUnicode_DATA(str);
  for (Py_ssize_t i = 0; i < length; ++i) {
    const Py_UCS4 c = PyUnicode_READ(kind, data, i);
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += static_cast<char>(0xc0 | c >> 6);
      text += static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      text += static_cast<char>(0xe0 | c >> 12);
      text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      text += static_cast<char>(0x80 | (c & 0x3f));
    } else {
      text += static_cast<char>(0xf0 | c >> 18);
      text += static_cast<char>(0x80 | (c >> 12 & 0x3f));
      text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      text += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  return text;
}

std::uint8_t classify(const PyCodeObject* code) {
  const std::string file = text_of(code->co_filename);
  std::uint8_t flags = 0;
  if (!g_folders.own.empty() && file.starts_with(g_folders.own)) {
    return file.ends_with("/cli/_program.py") ? kOwn | kRunner : kOwn;
  }
  if (file.starts_with("<frozen") || file.starts_with("<eval_with_key")) return 0;
  if (!g_folders.torch.empty() && file.starts_with(g_folders.torch)) {
    flags |= kTorch;
    if (file.ends_with("/nn/modules/module.py") && text_of(code->co_name) == "_wrapped_call_impl") flags |= kModuleCall;
    if (file.ends_with("/utils/checkpoint.py")) flags |= kCheckpoint;
    return flags;
  }
  if (file.find("site-packages") != std::string::npos || file.find("dist-packages") != std::string::npos) return flags;
  for (const std::string& folder : g_folders.others) {
    if (file.starts_with(folder)) return flags;
  }
  return text_of(code->co_name) == "__torch_function__" ? kUser | kHandler : kUser;
}

std::uint8_t flags_of(Caches& cache, const PyCodeObject* code) {
  CodeEntry& entry = cache.codes[hash(code) % cache.codes.size()];
  if (entry.is(code)) [[likely]]
    return entry.flags;
  entry = {code, code->co_linetable, code->co_filename, line_table_sample(code), code->co_firstlineno, classify(code)};
  return entry.flags;
}

SiteId site_of(Caches& cache, const _PyInterpreterFrame* frame) {
  PyCodeObject* code = frame->f_code;
  const int instruction = _PyInterpreterFrame_LASTI(frame);
  SiteEntry& entry = cache.sites[hash(code, static_cast<std::size_t>(instruction)) % cache.sites.size()];
  if (entry.instruction == instruction && entry.code.is(code)) [[likely]]
    return entry.site;
  Site site;
  site.file = text_of(code->co_filename);
  site.function = text_of(code->co_qualname);
  // Reads the line table of the code object; takes no reference and allocates nothing.
  site.line = PyCode_Addr2Line(code, instruction * static_cast<int>(sizeof(_Py_CODEUNIT)));
  entry.code = {code, code->co_linetable, code->co_filename, line_table_sample(code), code->co_firstlineno, 0};
  entry.instruction = instruction;
  entry.site = Session::get().recorder().graph().tables.sites.add(std::move(site));
  return entry.site;
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

ModuleId module_id(Caches& cache, void* module) {
  ModuleTable& table = Session::get().recorder().graph().tables.modules;
  const std::uint32_t generation = table.generation();
  ModuleEntry& entry = cache.modules[hash(module) % cache.modules.size()];
  if (entry.module == module && entry.generation == generation) [[likely]]
    return entry.id;
  entry.id = table.id_of(module);
  entry.module = module;
  entry.generation = generation;
  return entry.id;
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
void* outermost_module(Caches& cache, const _PyInterpreterFrame* frame) {
  void* module = nullptr;
  for (; frame != nullptr; frame = frame->previous) {
    if (complete(frame) && (flags_of(cache, frame->f_code) & kModuleCall) != 0) module = module_in(frame);
  }
  return module;
}

// Cold: once a module that has no name. Takes the GIL, which is safe here because the op was called straight from
// Python code of this thread (no autograd node, so no lock of the engine's, is between) and we hold no lock.
void name_tree(Caches& cache, const _PyInterpreterFrame* frame) {
  if (g_namer == nullptr || _Py_IsFinalizing()) return;
  void* root = outermost_module(cache, frame);
  if (root == nullptr) return;
  const PyGILState_STATE gil = PyGILState_Ensure();
  g_namer(root);
  PyGILState_Release(gil);
}

}  // namespace

void set_library_folders(LibraryFolders folders) { g_folders = std::move(folders); }
void set_root_namer(void (*namer)(void* module)) { g_namer = namer; }

void* top_python_frame() noexcept { return const_cast<_PyInterpreterFrame*>(innermost()); }

void capture_site(void* floor, const char* op_name, SiteCapture* capture) noexcept {
  const _PyInterpreterFrame* top = innermost();
  capture->top_frame = const_cast<_PyInterpreterFrame*>(top);
  if (top == nullptr) return;
  Caches& cache = caches();
  const _PyInterpreterFrame* library = nullptr;  // innermost frame that is neither torch's nor ours
  bool above = floor != nullptr;
  void* module = nullptr;
  for (const _PyInterpreterFrame* frame = top; frame != nullptr; frame = frame->previous) {
    if (frame == floor) above = false;
    if (!complete(frame)) continue;
    const std::uint8_t flags = flags_of(cache, frame->f_code);
    if (above) {
      capture->above_floor = true;
      if ((flags & kCheckpoint) != 0) capture->checkpoint = true;
    }
    if (module == nullptr && (flags & kModuleCall) != 0) module = module_in(frame);
    if (capture->site == 0 && (flags & kUser) != 0 &&
        ((flags & kHandler) == 0 || !passes_on(frame, frame != top, op_name))) {
      capture->site = site_of(cache, frame);
      capture->user_above_floor = above;
    }
    if (library == nullptr && (flags & (kUser | kOwn | kTorch)) == 0) library = frame;
    if (capture->site != 0 && module != nullptr && !above) break;
  }
  // A program that is itself installed as a package: the innermost code that is not torch's.
  if (capture->site == 0 && library != nullptr) capture->site = site_of(cache, library);
  if (module == nullptr) return;
  capture->module = module_id(cache, module);
  ModuleTable& table = Session::get().recorder().graph().tables.modules;
  if (floor == nullptr && table.needs_name(capture->module)) [[unlikely]] {
    name_tree(cache, top);
    // It has had its chance.
    table.set_named(capture->module);
  }
}

void capture_python_stack(std::vector<SiteId>* stack) {
  Caches& cache = caches();
  for (const _PyInterpreterFrame* frame = innermost(); frame != nullptr; frame = frame->previous) {
    if (!complete(frame)) continue;
    const std::uint8_t flags = flags_of(cache, frame->f_code);
    if ((flags & kRunner) != 0) break;
    if ((flags & kOwn) == 0) stack->insert(stack->begin(), site_of(cache, frame));
  }
}

}  // namespace sherlorch
