#include "core/base/ids.h"

#include <gtest/gtest.h>

namespace sherlorch {
namespace {

TEST(PhaseTest, EveryPhaseHasItsName) {
  EXPECT_STREQ(phase_name(Phase::kForward), "forward");
  EXPECT_STREQ(phase_name(Phase::kBackward), "backward");
  EXPECT_STREQ(phase_name(Phase::kRecompute), "recompute");
  EXPECT_STREQ(phase_name(Phase::kOptimizer), "optimizer");
}

TEST(PhaseTest, ValueOutsideTheEnumIsNamedUnknown) { EXPECT_STREQ(phase_name(static_cast<Phase>(17)), "unknown"); }

}  // namespace
}  // namespace sherlorch
