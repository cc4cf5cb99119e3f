// Work on the threads that torch uses within an op.
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace sherlorch {

// Calls f(begin, end) with parts of [0, kParts) that together cover it, `grain` parts or more a call: on the threads
// that torch uses within an op, or all on this one where it may not (in a parallel region, or set_num_threads(1)).
// `f` must be safe to run on several threads and must not run ops. Allocates nothing after the first call.
constexpr std::int64_t kParts = 64;
void run_in_parallel(std::int64_t grain, c10::function_ref<void(std::int64_t begin, std::int64_t end)> f);

}  // namespace sherlorch
