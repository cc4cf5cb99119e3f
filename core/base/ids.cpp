#include "core/base/ids.h"

namespace sherlorch {

const char* phase_name(Phase phase) noexcept {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kRecompute:
      return "recompute";
    case Phase::kOptimizer:
      return "optimizer";
  }
  return "unknown";
}

}  // namespace sherlorch
