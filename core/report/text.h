// One op on a line, as the text report and the DOT graph print it.
#pragma once

#include <string>

#include "sherlorch/diagnosis.h"

namespace sherlorch {

// "[10] log  shape=(4, 16, 16) dtype=torch.float32  [model.layer1]  (file.py:12)  <-- -Inf"
std::string summary_line(const Step& step);

}  // namespace sherlorch
