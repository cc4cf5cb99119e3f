// What a front above the adapter (Python's) may add: where in the user's source an op was called, and in which module.
// A plain C++ program sets none of it.
#pragma once

#include <string>
#include <vector>

#include "core/base/ids.h"
#include "sherlorch/export.h"

namespace sherlorch {

struct SiteCapture {
  void* top_frame = nullptr;  // identity of the innermost Python frame; null if the thread runs no Python
  SiteId site = 0;            // innermost frame of the user's own code
  ModuleId module = 0;        // innermost running nn.Module
  bool above_floor = false;  // there are Python frames above `floor`: Python code was called from inside the op or node
  bool user_above_floor = false;  // and one of them is the user's own
  bool checkpoint = false;        // and one of them belongs to torch.utils.checkpoint: a recomputation
};

struct Frontend {
  // Reads the calling thread's Python stack without the GIL (its own frames cannot change under it). `floor` is the
  // innermost frame when the enclosing autograd node began, or null; `op_name` is the op's short name ("log"). Never
  // allocates after warm-up.
  void (*capture)(void* floor, const char* op_name, SiteCapture* capture) noexcept = nullptr;
  // The innermost Python frame of the calling thread; null if it runs no Python.
  void* (*top_frame)() noexcept = nullptr;
  // All sites of the calling thread's stack, outermost first. Cold.
  void (*capture_stack)(std::vector<SiteId>* stack) = nullptr;
  // What the front calls this thread ("loader"); "" if it does not know. Asked once a thread, at its first op; no lock
  // of ours is held. Cold.
  std::string (*thread_name)() = nullptr;
  // An active window with a trap: an op has just introduced something. Runs inside the op's end callback.
  void (*trap)(OpSeq seq) noexcept = nullptr;
};

// Set once, before the first recording.
SHERLORCH_API void set_frontend(const Frontend& frontend);
const Frontend& frontend() noexcept;

}  // namespace sherlorch
