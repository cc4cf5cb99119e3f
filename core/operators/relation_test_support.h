// What the tests of relations share.
#pragma once

#include <initializer_list>
#include <random>
#include <span>
#include <vector>

#include "core/operators/relation.h"

namespace sherlorch {

using Sizes = std::vector<std::int64_t>;

inline std::int64_t count_of(std::span<const std::int64_t> sizes) {
  std::int64_t count = 1;
  for (std::int64_t size : sizes) count *= size;
  return count;
}

inline ElementSet all(std::span<const std::int64_t> sizes) { return ElementSet::range(0, count_of(sizes)); }
inline ElementSet all(std::initializer_list<std::int64_t> sizes) { return all(std::span(sizes.begin(), sizes.size())); }

inline Sizes listed(const ElementSet& set) {
  Sizes result;
  set.for_each([&](std::int64_t k) {
    result.push_back(k);
    return true;
  });
  return result;
}

struct Random {
  std::mt19937 bits;
  std::int64_t below(std::int64_t bound) { return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(bits); }
};

inline Sizes random_shape(Random& random) {
  Sizes shape(random.below(4));
  for (std::int64_t& size : shape) size = 1 + random.below(4);
  return shape;
}

}  // namespace sherlorch
