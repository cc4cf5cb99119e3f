// What is remembered of Python code objects: whose they are, and which line each of their instructions is on.
//
// Code objects die, and others take their addresses (programs that are run from strings). So each remembered one is
// told of its death through CPython's co_extra, and what was remembered at its address is then void.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/address_cache.h"
#include "core/base/ids.h"

struct PyCodeObject;

namespace sherlorch {

// Folders whose frames are not the user's: torch, sherlorch, the standard library. Set at import.
struct LibraryFolders {
  std::string torch;
  std::string own;
  std::vector<std::string> others;
};
void set_library_folders(LibraryFolders folders);

enum CodeFlags : std::uint8_t {
  kUser = 1,        // the user's own code
  kModuleCall = 2,  // torch.nn.Module.__call__: its first local is the module
  kCheckpoint = 4,  // torch.utils.checkpoint
  kOwn = 8,         // sherlorch itself
  kTorch = 16,
  kHandler = 32,  // a __torch_function__ of the user's
  kRunner = 64,   // of `sherlorch run`: what called it is the command, not the program
};

// One a thread. It grows with the lines that the thread runs.
class CodeCache {
 public:
  static CodeCache& of_this_thread();

  // `code` is that of a running frame of this thread. `gil_is_safe`: the GIL may be taken here, should this be the
  // first look at it.
  std::uint8_t flags(PyCodeObject* code, bool gil_is_safe) {
    const Entry* known = codes_.find(code);
    if (known != nullptr && known->as_of == deaths()) [[likely]]
      return known->flags;
    return flags_slow(code, gil_is_safe);
  }
  // `instruction`: an address inside of `code`.
  SiteId site(PyCodeObject* code, const void* instruction, bool gil_is_safe) {
    const Entry* known = sites_.find(instruction);
    if (known != nullptr && known->as_of == deaths()) [[likely]]
      return known->site;
    return site_slow(code, instruction, gil_is_safe);
  }

 private:
  struct Entry {
    const PyCodeObject* code = nullptr;
    // It was there when so many had died; kNever for one whose death nobody will tell.
    std::uint64_t as_of = kNever;
    std::uint32_t deaths = 0;  // at its address, when it was remembered
    std::uint8_t flags = 0;
    bool tried = false;    // to watch it
    bool watched = false;  // its death will be told
    SiteId site = 0;
    std::uint64_t fingerprint = 0;  // of one that is not watched
  };
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  // How many watched code objects have died in this process. A thread that runs another code object at an address has
  // got it through the GIL, under which this is counted: it sees the number.
  static std::uint64_t deaths() noexcept { return deaths_.load(std::memory_order_relaxed); }
  std::uint8_t flags_slow(PyCodeObject* code, bool gil_is_safe);
  SiteId site_slow(PyCodeObject* code, const void* instruction, bool gil_is_safe);
  static Entry remember(PyCodeObject* code, bool gil_is_safe);
  // Notes in the entry when it was found to be so.
  static bool is(Entry* entry, const PyCodeObject* code) noexcept;
  static void on_death(void* code);
  static bool watch(PyCodeObject* code);

  static constinit std::atomic<std::uint64_t> deaths_;
  AddressCache<Entry> codes_;  // by the code object
  AddressCache<Entry> sites_;  // by the instruction, which lies inside of it
};

}  // namespace sherlorch
