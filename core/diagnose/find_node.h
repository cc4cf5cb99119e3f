// The target in the flight recorder.
#pragma once

#include "core/diagnose/diagnose.h"

namespace sherlorch {

// The op read or wrote memory of the target, as far as the flight recorder can tell.
bool refers_to(const FlightTensor& tensor, const Target& target);

// Where to begin to look for ops of this trace.
OpSeq first_ticket(const Graph& graph, const View& view);

}  // namespace sherlorch
