// The loop that turns bits into runs, to be inlined into one function per instruction set. Internal.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/scan/kernels.h"
#include "core/scan/max_loop.h"

namespace sherlorch::scan {

SHERLORCH_INLINE EdgeCounts edge_loop(const std::uint64_t* bits, std::size_t words, bool inside, std::int64_t first,
                                      std::int64_t* edges) noexcept {
  std::uint64_t edge_words[kMaxEdgeWords];
  std::uint64_t occupied = 0;
  std::uint64_t before = inside;
  std::int64_t ones = 0;
  for (std::size_t i = 0; i < words; ++i) {
    ones += std::popcount(bits[i]);
    edge_words[i] = bits[i] ^ (bits[i] << 1 | before);
    before = bits[i] >> 63;
    occupied |= std::uint64_t{edge_words[i] != 0} << i;
  }
  std::int64_t* to = edges;
  for (; occupied != 0; occupied &= occupied - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(occupied));
    std::uint64_t word = edge_words[i];
    const std::int64_t base = first + static_cast<std::int64_t>(64 * i);
    std::int64_t* const end = to + std::popcount(word);
    // Four whether they are there or not: how many a word holds cannot be predicted, but there are seldom more.
    do {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k, word &= word - 1) to[k] = base + std::countr_zero(word);
      to += 4;
    } while (to < end);
    to = end;
  }
  return {static_cast<std::size_t>(to - edges), ones};
}

}  // namespace sherlorch::scan
