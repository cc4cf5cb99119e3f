// Non-finite values that the program itself has looked for and dealt with.
#pragma once

#include "sherlorch/diagnosis.h"

namespace sherlorch {

// Adds to the note that a GradScaler saw the value and skips the optimizer's step, where that is so.
void note_handled(Diagnosis* diagnosis);

}  // namespace sherlorch
