// For benchmarks: what torch itself takes for observers like ours.
#pragma once

#include "sherlorch/export.h"

namespace sherlorch {

// Adds the callbacks of switch_observer() with empty bodies, or switches them off: the floor under any recorder.
SHERLORCH_API void switch_empty_observer(bool on);

}  // namespace sherlorch
