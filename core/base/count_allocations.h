// For tests: how often this thread has called operator new. The counting operators are in count_allocations_test.cpp,
// so every test of the core can ask, and a test binary with that file in it must not replace them again.
#pragma once

#include <cstdint>

namespace sherlorch {

std::uint64_t allocations_of_this_thread() noexcept;

}  // namespace sherlorch
