// The user's own source lines, for a report. Cold; never fails, at worst there is nothing to show.
#pragma once

#include <string>
#include <vector>

#include "sherlorch/diagnosis.h"
#include "sherlorch/report.h"

namespace sherlorch {

struct SourceLine {
  int number = 0;    // 1-based
  std::string text;  // as in the file, without its line end
};

// The located line and up to `context` lines on each side. Empty if there is no such file (a notebook cell, a file that
// has moved) or it is not a regular file.
std::vector<SourceLine> read_source(const SourceLocation& location, int context, const SourceReader& reader = {});

}  // namespace sherlorch
