// What is remembered of Python code objects: whose they are, and which line each of their instructions is on.
//
// Code objects die, and others take their addresses (programs that are run from strings). So each remembered one is
// told of its death through CPython's co_extra, and what was remembered at its address is then void.
#pragma once

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
  std::uint8_t flags(PyCodeObject* code, bool gil_is_safe);
  // `instruction`: index of the code unit.
  SiteId site(PyCodeObject* code, int instruction, bool gil_is_safe);

 private:
  struct Entry {
    const PyCodeObject* code = nullptr;
    std::uint32_t deaths = 0;  // at its address, when it was remembered
    std::uint8_t flags = 0;
    bool tried = false;    // to watch it
    bool watched = false;  // its death will be told
    SiteId site = 0;
    std::uint64_t fingerprint = 0;  // of one that is not watched
  };
  static Entry remember(PyCodeObject* code, bool gil_is_safe);
  static bool is(const Entry& entry, const PyCodeObject* code) noexcept;

  AddressCache<Entry> codes_;  // by the code object
  AddressCache<Entry> sites_;  // by the instruction, which lies inside of it
};

}  // namespace sherlorch
