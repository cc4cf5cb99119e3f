// What a culprit's values say, in rows of prose: which elements are bad, what gave them, what was read.
#pragma once

#include <string>
#include <vector>

#include "sherlorch/diagnosis.h"

namespace sherlorch {

// "412 of 4,096 elements are -Inf; first at [0, 3, 2]". REQUIRES: !counts.finite().
std::string elements_text(const FinitenessCounts& counts);

// "log(0.0) = -inf at [0, 3, 2]"
std::string witness_text(const WitnessElement& element);

// "self: shape=(4, 16) dtype=torch.float32, values in [0, 3.1]"
std::string operand_text(const Operand& operand);

// "bad in 3 of 32 samples: 3, 7, 9"; "" where dimension 0 does not tell.
std::string samples_text(const Culprit& culprit);

// All of it, a paragraph a row.
std::vector<std::string> witness_rows(const Culprit& culprit);

}  // namespace sherlorch
