#include "core/base/count_allocations.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace {

thread_local std::uint64_t allocations = 0;

void* count_and_allocate(std::size_t size, std::size_t alignment) {
  ++allocations;
  // aligned_alloc wants a multiple of the alignment.
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(size == 0 ? 1 : size)
                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

// Not inlined: where one of a pair is and the other is not, g++ 12 warns of a mismatch.
#define NOINLINE __attribute__((noinline))
NOINLINE void* operator new(std::size_t size) { return count_and_allocate(size, 1); }
NOINLINE void* operator new(std::size_t size, std::align_val_t alignment) {
  return count_and_allocate(size, static_cast<std::size_t>(alignment));
}
// std::stable_sort allocates this way.
NOINLINE void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
NOINLINE void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
NOINLINE void operator delete(void* p) noexcept { std::free(p); }
NOINLINE void operator delete(void* p, std::size_t) noexcept { std::free(p); }
NOINLINE void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
NOINLINE void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace sherlorch {

std::uint64_t allocations_of_this_thread() noexcept { return allocations; }

namespace {

TEST(CountAllocationsTest, EveryAllocationIsCounted) {
  const std::uint64_t before = allocations_of_this_thread();
  auto one = std::make_unique<std::vector<int>>(100);
  EXPECT_EQ(allocations_of_this_thread(), before + 2);
  one.reset();
  struct alignas(64) Wide {
    char bytes[64];
  };
  auto wide = std::make_unique<Wide>();
  EXPECT_EQ(allocations_of_this_thread(), before + 3);
}

}  // namespace
}  // namespace sherlorch
