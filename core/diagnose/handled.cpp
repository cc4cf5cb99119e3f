#include "core/diagnose/handled.h"

#include <algorithm>
#include <string_view>

namespace sherlorch {

namespace {

// How torch's GradScaler divides gradients by its scale, and finds out whether one is non-finite.
bool unscales(const Step& step) {
  return std::string_view(step.op_name).starts_with("_amp_foreach_non_finite_check_and_unscale_");
}

bool skipped(const Diagnosis& diagnosis, const Culprit& culprit) {
  const auto seen = std::find_if(culprit.path.begin(), culprit.path.end(), unscales);
  if (seen == culprit.path.end()) return unscales(diagnosis.target);
  // An optimizer that used the value all the same did not skip.
  return std::none_of(seen, culprit.path.end(),
                      [](const Step& step) { return step.phase == Phase::kOptimizer && !unscales(step); });
}

}  // namespace

void note_handled(Diagnosis* diagnosis) {
  if (diagnosis->culprits.empty()) return;
  if (!std::all_of(diagnosis->culprits.begin(), diagnosis->culprits.end(),
                   [&](const Culprit& culprit) { return skipped(*diagnosis, culprit); })) {
    return;
  }
  if (!diagnosis->note.empty()) diagnosis->note += ' ';
  diagnosis->note +=
      "Handled: a GradScaler looked at this gradient. It skips the optimizer's step and lowers its scale, so this is a "
      "fault only if it goes on step after step.";
}

}  // namespace sherlorch
