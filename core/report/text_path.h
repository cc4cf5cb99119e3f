// A long path, folded to what a person can take in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sherlorch/diagnosis.h"

namespace sherlorch {

// Either a step, or (step == nullptr) a gap of `count` ops, whose names are summed up: "add x2,987, mul".
struct PathItem {
  const Step* step = nullptr;
  std::uint64_t count = 0;
  std::string names;  // "" if none is known
};

// At most about max_steps steps (0: no limit), with gaps between them: both ends, as many transitions as fit, then the
// neighbours of the ends. What Step::folded left out is counted in the gaps. The items point into `path`.
std::vector<PathItem> fold_path(std::span<const Step> path, std::size_t max_steps);

// "2,988 more ops (add x2,987, mul)". REQUIRES: item.step == nullptr.
std::string gap_text(const PathItem& item);

}  // namespace sherlorch
