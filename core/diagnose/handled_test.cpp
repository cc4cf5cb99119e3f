#include "core/diagnose/handled.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sherlorch {

namespace {

Step step(const char* op_name, Phase phase) {
  Step step;
  step.op_name = op_name;
  step.phase = phase;
  return step;
}

std::string note_of(std::vector<Step> path) {
  Diagnosis diagnosis;
  diagnosis.target = path.back();
  Culprit culprit;
  culprit.step = path.front();
  culprit.path = std::move(path);
  diagnosis.culprits.push_back(std::move(culprit));
  note_handled(&diagnosis);
  return diagnosis.note;
}

constexpr char kUnscale[] = "_amp_foreach_non_finite_check_and_unscale_";

TEST(HandledTest, AGradientThatAGradScalerSawIsSaidToBeHandled) {
  EXPECT_TRUE(note_of({step("mul", Phase::kBackward), step(kUnscale, Phase::kForward)}).starts_with("Handled: "));
}

TEST(HandledTest, AValueThatTheOptimizerUsedIsNot) {
  EXPECT_EQ(note_of({step("mul", Phase::kBackward), step(kUnscale, Phase::kForward),
                     step("_foreach_add_", Phase::kOptimizer)}),
            "");
}

TEST(HandledTest, AGradientThatNoScalerSawIsNot) {
  EXPECT_EQ(note_of({step("mul", Phase::kBackward), step("detach", Phase::kBackward)}), "");
}

TEST(HandledTest, ACleanTargetIsLeftAlone) {
  Diagnosis diagnosis;
  diagnosis.target = step(kUnscale, Phase::kForward);
  note_handled(&diagnosis);
  EXPECT_EQ(diagnosis.note, "");
}

}  // namespace

}  // namespace sherlorch
