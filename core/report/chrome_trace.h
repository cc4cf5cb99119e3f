// The last ops of the flight recorder in Chrome's trace format, for chrome://tracing and ui.perfetto.dev.
#pragma once

#include <span>
#include <string>

#include "core/base/ids.h"

namespace sherlorch {

struct TimelineOp {
  OpSeq seq = 0;
  std::string op_name;      // "log"
  std::string location;     // "file.py:12"; "" if unknown
  std::string module_path;  // "" if unknown
  std::string thread_name;  // "" for the main thread
  Phase phase = Phase::kForward;
  float largest = 0;  // largest finite magnitude of the output
  bool nonfinite = false;
  double start_us = 0;  // the recorder keeps no clock: the ticket (seq) as microseconds
};

// One track a thread, one slice of 1 us an op, its phase as category (and "nonfinite", to search for); a counter track
// with the largest magnitude, on which values can be seen to grow; and a mark at the first non-finite op. The metadata
// says that the time axis is the order of the ops, not a clock.
std::string to_chrome_trace(std::span<const TimelineOp> ops);

}  // namespace sherlorch
