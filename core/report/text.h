// A diagnosis as a person reads it in a terminal: the verdict first, then for each culprit the source line, the
// witness, the cause, what helps and the path; then what was innocent, what was not seen, and how certain it all is.
//
// Everything that came from the user's program (op, module, file and thread names, source lines) is printed with
// control characters escaped, so that no name can move the cursor or hide a line.
//
// Threads: all functions are pure apart from reading the user's source files. Cost: linear in the size of the
// diagnosis; what is printed of a path is bounded by max_path_steps.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "core/diagnose/diagnosis.h"

namespace sherlorch {

// Puts line `line` (1-based) of `file` into `text`, without its line end; false if there is no such line.
using SourceReader = std::function<bool(const std::string& file, int line, std::string* text)>;

struct TextOptions {
  bool color = false;               // ANSI escapes
  std::size_t width = 100;          // columns to which prose is wrapped; a line that names an op is never cut
  bool show_source = true;          // the culprit's source line and its neighbours
  std::size_t max_path_steps = 12;  // a longer path is folded in the middle, transitions kept; 0: no limit
  std::size_t max_culprits = 10;    // the rest is counted; 0: no limit
  std::size_t max_frames = 5;       // innermost frames of the user's own code under "Called:"; 0: none
  // Where source lines come from; empty: the file system. (Python's linecache also knows notebook cells.)
  SourceReader source;
};

// The whole report, without a final newline.
std::string to_text(const Diagnosis& diagnosis, const TextOptions& options = {});

// One sentence without a full stop: "log made -Inf at model.py:12 in model.layer1; layer_norm turned it into NaN".
// For a finite target: "No non-finite values found in target tensor (node [7] sum). 8 ops were traced."
std::string verdict(const Diagnosis& diagnosis);

// "[10] log  shape=(4, 16, 16) dtype=torch.float32  [model.layer1]  (file.py:12)  <-- -Inf"
std::string summary_line(const Step& step);

}  // namespace sherlorch
