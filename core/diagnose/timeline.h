// The last ops of a window on the recording, whatever they were: what the flight recorder still holds.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/diagnose/diagnose.h"

namespace sherlorch {

// One op, by ids: 32 bytes, so that 100,000 can be kept with a diagnosis.
struct FlightStep {
  OpSeq seq = 0;
  OperatorId op = 0;
  SiteId site = 0;      // of a backward op: that of its forward op, as long as the recorder holds it
  ModuleId module = 0;  // the same
  ThreadId thread = 0;
  Phase phase = Phase::kForward;
  bool nonfinite = false;
  float largest = 0;  // largest magnitude written; NaN where nothing was scanned (views) or something was non-finite
};

// The ops and what their ids mean. Plain data: nothing points into the graph.
struct Timeline {
  std::vector<FlightStep> steps;  // oldest first
  std::map<OperatorId, std::string> op_names;
  std::map<SiteId, std::string> places;  // "file.py:12"; "" if unknown
  std::map<ModuleId, std::string> modules;
  std::map<ThreadId, std::string> threads;
};

// The last ops that the view shows, at most `limit`. Cost: about 0.2 microseconds an op, and a binary search of the
// recorder for each autograd node among them.
Timeline timeline(const Graph& graph, const View& view, std::size_t limit);

}  // namespace sherlorch
