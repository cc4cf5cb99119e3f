// The two words of the recorder that a diagnosis is told in.
#pragma once

#include <cstdint>

#include "sherlorch/export.h"

namespace sherlorch {

// The ticket of one op. Tickets grow with time across all threads of the process; they may skip values (an op with
// many tensors takes several). 0 means "no op".
using OpSeq = std::uint64_t;

enum class Phase : std::uint8_t { kForward = 0, kBackward = 1, kRecompute = 2, kOptimizer = 3 };

// "forward", "backward", "recompute" or "optimizer".
SHERLORCH_API const char* phase_name(Phase phase) noexcept;

}  // namespace sherlorch
