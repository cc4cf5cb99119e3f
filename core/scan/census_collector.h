// Turns class masks into counts, first indices and sets. Internal to core/scan.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/scan/format.h"
#include "core/scan/kernels.h"
#include "core/scan/scan.h"

namespace sherlorch::scan {

// Takes the elements of a tensor in row-major order, some at a time, from wherever they lie. Finite stretches are
// skipped at the speed of the fast pass.
class CensusCollector {
 public:
  // Elements looked at in one go: enough to make up for the call, few enough that the masks stay in L1.
  static constexpr std::size_t kChunk = 1024;

  CensusCollector(DType dtype, Census& census) noexcept
      : dtype_(dtype), format_(format_of(dtype)), census_(census) {}

  // The next `count` elements, side by side at `data`.
  void take(const unsigned char* data, std::size_t count);

 private:
  static constexpr std::size_t kMaxWords = 2 * kChunk / 64;  // two parts an element
  using Words = std::array<std::uint64_t, kMaxWords>;

  bool finite(const unsigned char* data, std::size_t count) const noexcept;
  void take_chunk(const unsigned char* data, std::size_t count);
  void join_parts(std::size_t words) noexcept;
  void add(const Words& words, std::size_t count, std::int64_t& total, std::int64_t& first,
           ElementSet& set) const;

  DType dtype_;
  Format format_;
  Census& census_;
  std::int64_t next_ = 0;     // linear index of the element to come
  bool expect_bad_ = false;  // the last chunk held something: the fast pass would be a second one
  Words nan_;
  Words pos_inf_;
  Words neg_inf_;
};

// The set in which each block of `inner` consecutive indices of `set` stands `times` times in a row: what becomes of a
// set when a dimension of that size is inserted outside a block of `inner` elements. Time and memory are bounded by
// ElementSet::kMaxRuns, whatever `times` is; past that bound the result is coarse.
ElementSet repeat_blocks(const ElementSet& set, std::int64_t inner, std::int64_t times);

}  // namespace sherlorch::scan
