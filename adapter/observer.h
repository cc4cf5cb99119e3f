// The pair of at::RecordFunction callbacks through which every op of every thread passes.
#pragma once

#include <string>

#include "core/base/ids.h"
#include "sherlorch/export.h"

namespace sherlorch {

// Adds the callbacks on first use, and switches them on or off for the process. Cost: a few microseconds, and each
// thread's next op rebuilds its list of callbacks. Called with the session's recording lock held.
void switch_observer(bool on);

// For benchmarks: the same callbacks with empty bodies, the floor under any recorder.
SHERLORCH_API void switch_empty_observer(bool on);

// "" for the thread that loaded the library, else the thread's name as the system knows it, or "thread 7".
std::string thread_text(ThreadId thread);

}  // namespace sherlorch
