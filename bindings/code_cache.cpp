#include "bindings/code_cache.h"

#include <Python.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "adapter/session.h"

namespace sherlorch {

namespace {

LibraryFolders g_folders;

// What is known at the addresses that fall into one slot. Written with the GIL held; a thread that runs another code
// object at an address has got it through the GIL, so it sees what was written before.
struct Address {
  std::atomic<const void*> watched{nullptr};  // the code object whose death will be told; the last one, if several
  std::atomic<std::uint32_t> deaths{0};
};
std::array<Address, 8192> g_addresses;

Address& address_of(const void* code) noexcept {
  return g_addresses[(reinterpret_cast<std::uintptr_t>(code) * 0x9e3779b97f4a7c15ull >> 40) % g_addresses.size()];
}

// For a code object that could not be watched, because it was first seen inside the autograd engine, where taking the
// GIL might wait for ever: enough of it to notice, but for a rare chance, that another one took its place.
std::uint64_t fingerprint_of(const PyCodeObject* code) noexcept {
  const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(code->co_linetable));
  const char* bytes = PyBytes_AS_STRING(code->co_linetable);
  std::uint64_t first = 0, middle = 0, last = 0;
  if (size >= 8) {
    std::memcpy(&first, bytes, 8);
    std::memcpy(&middle, bytes + (size - 8) / 2, 8);
    std::memcpy(&last, bytes + size - 8, 8);
  }
  const std::uint64_t parts = reinterpret_cast<std::uintptr_t>(code->co_linetable) ^
                              reinterpret_cast<std::uintptr_t>(code->co_filename) * 3 ^
                              static_cast<std::uint64_t>(code->co_firstlineno) << 48;
  return parts ^ size ^ first ^ (middle * 0x9e3779b97f4a7c15ull) ^ (last * 0xff51afd7ed558ccdull);
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

}  // namespace

void set_library_folders(LibraryFolders folders) { g_folders = std::move(folders); }

CodeCache& CodeCache::of_this_thread() {
  static thread_local CodeCache* cached __attribute__((tls_model("initial-exec"))) = nullptr;
  if (cached == nullptr) [[unlikely]] {
    static thread_local std::unique_ptr<CodeCache> owner;
    owner = std::make_unique<CodeCache>();
    cached = owner.get();
  }
  return *cached;
}

constinit std::atomic<std::uint64_t> CodeCache::deaths_{0};

// Called by CPython as it frees a code object, with what watch() has put there: its address.
void CodeCache::on_death(void* code) {
  Address& address = address_of(code);
  address.deaths.fetch_add(1, std::memory_order_relaxed);
  deaths_.fetch_add(1, std::memory_order_relaxed);
  if (address.watched.load(std::memory_order_relaxed) == code)
    address.watched.store(nullptr, std::memory_order_relaxed);
}

// Takes the GIL, unless this code object is known to be watched.
bool CodeCache::watch(PyCodeObject* code) {
  Address& address = address_of(code);
  if (address.watched.load(std::memory_order_relaxed) == code) return true;
  if (_Py_IsFinalizing()) return false;
  const PyGILState_STATE gil = PyGILState_Ensure();
  static const Py_ssize_t index = _PyEval_RequestCodeExtraIndex(on_death);
  auto* object = reinterpret_cast<PyObject*>(code);
  void* extra = nullptr;
  bool done = index >= 0 && _PyCode_GetExtra(object, index, &extra) == 0;
  if (done && extra == nullptr) done = _PyCode_SetExtra(object, index, code) == 0;
  if (PyErr_Occurred() != nullptr && !done) PyErr_Clear();
  if (done) address.watched.store(code, std::memory_order_relaxed);
  PyGILState_Release(gil);
  return done;
}

bool CodeCache::is(Entry* entry, const PyCodeObject* code) noexcept {
  const std::uint64_t now = deaths();
  if (entry->code != code || entry->deaths != address_of(code).deaths.load(std::memory_order_relaxed)) return false;
  if (!entry->watched) return entry->fingerprint == fingerprint_of(code);
  entry->as_of = now;
  return true;
}

CodeCache::Entry CodeCache::remember(PyCodeObject* code, bool gil_is_safe) {
  Entry entry;
  entry.code = code;
  entry.tried = gil_is_safe;
  if (gil_is_safe) entry.watched = watch(code);
  if (!entry.watched) entry.fingerprint = fingerprint_of(code);
  const std::uint64_t now = deaths();
  entry.deaths = address_of(code).deaths.load(std::memory_order_relaxed);
  if (entry.watched) entry.as_of = now;
  return entry;
}

std::uint8_t CodeCache::flags_slow(PyCodeObject* code, bool gil_is_safe) {
  Entry* known = codes_.find(code);
  if (known != nullptr && is(known, code) && (known->tried || !gil_is_safe)) return known->flags;
  Entry entry = remember(code, gil_is_safe);
  entry.flags = classify(code);
  codes_.insert(code) = entry;
  return entry.flags;
}

SiteId CodeCache::site_slow(PyCodeObject* code, const void* instruction, bool gil_is_safe) {
  Entry* known = sites_.find(instruction);
  if (known != nullptr && is(known, code)) return known->site;
  Entry entry = remember(code, gil_is_safe);
  Site site;
  site.file = text_of(code->co_filename);
  site.function = text_of(code->co_qualname);
  // Reads the line table of the code object; takes no reference and allocates nothing.
  site.line = PyCode_Addr2Line(code, static_cast<int>(static_cast<const char*>(instruction) -
                                                      reinterpret_cast<const char*>(_PyCode_CODE(code))));
  entry.site = Session::get().recorder().graph().tables.sites.add(std::move(site));
  sites_.insert(instruction) = entry;
  return entry.site;
}

}  // namespace sherlorch
