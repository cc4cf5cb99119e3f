#include "core/base/address_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <unordered_map>

#include "core/base/count_allocations.h"

namespace sherlorch {
namespace {

const void* address(std::uintptr_t value) { return reinterpret_cast<const void*>(value); }

TEST(AddressCache, FindsWhatWasInsertedAndNothingElse) {
  AddressCache<int> cache;
  EXPECT_EQ(cache.find(address(64)), nullptr);
  cache.insert(address(64)) = 7;
  ASSERT_NE(cache.find(address(64)), nullptr);
  EXPECT_EQ(*cache.find(address(64)), 7);
  EXPECT_EQ(cache.find(address(72)), nullptr);
  EXPECT_EQ(cache.find(nullptr), nullptr);
  EXPECT_EQ(cache.insert(address(64)), 7);  // the same one again
  EXPECT_EQ(cache.size(), 1u);
}

TEST(AddressCache, AgreesWithAMapOverRandomAddresses) {
  std::mt19937_64 random(1);
  for (const std::uintptr_t step : {1u, 16u, 4096u, 1u << 20}) {
    AddressCache<std::uint32_t> cache;
    std::unordered_map<const void*, std::uint32_t> expected;
    for (std::uint32_t i = 0; i < 4000; ++i) {
      const void* key = address(step * (1 + random() % 3000));
      cache.insert(key) = i;
      expected[key] = i;
    }
    EXPECT_EQ(cache.size(), expected.size());
    for (const auto& [key, value] : expected) {
      ASSERT_NE(cache.find(key), nullptr);
      EXPECT_EQ(*cache.find(key), value);
    }
    EXPECT_EQ(cache.find(address(step * 3001)), nullptr);
  }
}

// However its addresses fall, a program that is warm asks the allocator for nothing.
TEST(AddressCache, ThousandsOfEntriesStayWithoutAnAllocation) {
  AddressCache<int> cache;
  for (int i = 1; i <= 8000; ++i) cache.insert(address(static_cast<std::uintptr_t>(i) * 512)) = i;
  const std::uint64_t before = allocations_of_this_thread();
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i <= 8000; ++i) ASSERT_EQ(cache.insert(address(static_cast<std::uintptr_t>(i) * 512)), i);
  }
  EXPECT_EQ(allocations_of_this_thread(), before);
}

TEST(AddressCache, BeginsAnewPastItsLimit) {
  AddressCache<int> cache;
  for (std::uintptr_t i = 1; i <= 100'000; ++i) {
    cache.insert(address(i * 16)) = static_cast<int>(i);
    ASSERT_LE(cache.size(), AddressCache<int>::kMostEntries);
    ASSERT_EQ(*cache.find(address(i * 16)), static_cast<int>(i));
  }
}

}  // namespace
}  // namespace sherlorch
