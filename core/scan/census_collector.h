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
  CensusCollector(DType dtype, Census& census) noexcept
      : dtype_(dtype),
        format_(format_of(dtype)),
        nan_tally_(census.nan, census.first_nan, census.nan_at, nan_edges_),
        pos_inf_tally_(census.pos_inf, census.first_pos_inf, census.pos_inf_at, pos_inf_edges_),
        neg_inf_tally_(census.neg_inf, census.first_neg_inf, census.neg_inf_at, neg_inf_edges_) {}

  // The next `count` elements, side by side at `data`.
  void take(const unsigned char* data, std::size_t count);
  // After the last element. Until then the census is incomplete.
  void finish();

 private:
  static constexpr std::size_t kMaxWords = kMaxEdgeWords;
  using Words = std::array<std::uint64_t, kMaxWords>;
  // Chosen: from here on edges go into the set, which thus allocates once for a few hundred runs.
  static constexpr std::size_t kFlushFrom = 512;
  // So many words are listed at a time, for the sake of the stack of a thread that has a small one.
  static constexpr std::size_t kListedWords = 16;
  // Room for that many behind the last one that is not flushed yet, and for one more by which a run ends.
  using Edges = std::array<std::int64_t, kFlushFrom + 64 * kListedWords + kEdgeSlack>;

  // One class of the census. What is taken turns into the edges of runs, and only many of those at once into the set.
  class Tally {
   public:
    Tally(std::int64_t& count, std::int64_t& first, ElementSet& set, Edges& edges) noexcept
        : count_(count), first_(first), set_(set), edges_(edges) {}
    // Is the last element in the class?
    bool is_open() const noexcept { return size_ % 2 != 0; }
    // The next `count` elements, the first of them at index `at`, are in the class where a bit is set.
    void take_bits(const Words& bits, std::size_t count, std::int64_t at);
    // All of them are.
    void take_all(std::size_t count, std::int64_t at) {
      count_ += static_cast<std::int64_t>(count);
      if (!is_open()) take_edge(at);
    }
    // The element at index `at`, if there is one, is not.
    void close(std::int64_t at) {
      if (is_open()) take_edge(at);
    }
    void flush();

   private:
    void take_edge(std::int64_t at) {
      edges_[size_++] = at;
      if (size_ >= kFlushFrom) flush();
    }

    std::int64_t& count_;
    std::int64_t& first_;
    ElementSet& set_;
    Edges& edges_;
    std::size_t size_ = 0;  // of what edges_ holds; odd while a run is open
  };

  bool finite(const unsigned char* data, std::size_t count) const noexcept;
  // What is not known to be finite. Kept out of take(), whose loop over clean stretches is small without it.
  __attribute__((noinline)) void take_bad(const unsigned char* data, std::size_t count);
  bool take_if_uniform(const unsigned char* data, std::size_t count);
  // REQUIRES: `count` fills words of the masks, or less than one.
  void take_chunk(const unsigned char* data, std::size_t count);
  void join_parts(std::size_t words) noexcept;
  void close_all() {
    if (!(nan_tally_.is_open() || pos_inf_tally_.is_open() || neg_inf_tally_.is_open())) return;
    nan_tally_.close(next_);
    pos_inf_tally_.close(next_);
    neg_inf_tally_.close(next_);
  }

  DType dtype_;
  Format format_;
  Tally nan_tally_;
  Tally pos_inf_tally_;
  Tally neg_inf_tally_;
  std::int64_t next_ = 0;  // linear index of the element to come
  // The last stretch held something, so the next is likely to: the fast pass would be a second one.
  bool expect_bad_ = false;
  alignas(64) Words nan_;
  alignas(64) Words pos_inf_;
  alignas(64) Words neg_inf_;
  // Away from the tallies, which a clean stretch asks: so large a buffer between them would cost it lines of the cache.
  Edges nan_edges_;
  Edges pos_inf_edges_;
  Edges neg_inf_edges_;
};

// The set in which each block of `inner` consecutive indices of `set` stands `times` times in a row: what becomes of a
// set when a dimension of that size is inserted outside a block of `inner` elements. Time and memory are bounded by
// ElementSet::kMaxRuns, whatever `times` is; past that bound the result is coarse.
ElementSet repeat_blocks(const ElementSet& set, std::int64_t inner, std::int64_t times);

}  // namespace sherlorch::scan
