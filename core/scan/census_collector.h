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
      : dtype_(dtype),
        format_(format_of(dtype)),
        nan_tally_{census.nan, census.first_nan, census.nan_at},
        pos_inf_tally_{census.pos_inf, census.first_pos_inf, census.pos_inf_at},
        neg_inf_tally_{census.neg_inf, census.first_neg_inf, census.neg_inf_at} {}

  // The next `count` elements, side by side at `data`.
  void take(const unsigned char* data, std::size_t count);

 private:
  static constexpr std::size_t kMaxWords = 2 * kChunk / 64;  // two parts an element
  using Words = std::array<std::uint64_t, kMaxWords>;

  // One class of the census.
  struct Tally {
    std::int64_t& count;
    std::int64_t& first;
    ElementSet& set;
    void add(std::int64_t begin, std::int64_t end) {
      if (first < 0) first = begin;
      count += end - begin;
      set.append(begin, end);
    }
  };

  bool finite(const unsigned char* data, std::size_t count) const noexcept;
  bool take_if_uniform(const unsigned char* data, std::size_t count);
  void take_chunk(const unsigned char* data, std::size_t count);
  void join_parts(std::size_t words) noexcept;
  void add_words(std::size_t words);
  static void add_word(Tally& tally, std::uint64_t word, std::int64_t base);

  DType dtype_;
  Format format_;
  Tally nan_tally_;
  Tally pos_inf_tally_;
  Tally neg_inf_tally_;
  std::int64_t next_ = 0;  // linear index of the element to come
  // The last stretch held something, so the next is likely to: the fast pass would be a second one.
  bool expect_bad_ = false;
  Words nan_;
  Words pos_inf_;
  Words neg_inf_;
};

// The set in which each block of `inner` consecutive indices of `set` stands `times` times in a row: what becomes of a
// set when a dimension of that size is inserted outside a block of `inner` elements. Time and memory are bounded by
// ElementSet::kMaxRuns, whatever `times` is; past that bound the result is coarse.
ElementSet repeat_blocks(const ElementSet& set, std::int64_t inner, std::int64_t times);

}  // namespace sherlorch::scan
