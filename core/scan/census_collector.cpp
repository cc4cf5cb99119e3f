#include "core/scan/census_collector.h"

#include <algorithm>
#include <cstring>

namespace sherlorch::scan {
namespace {

// Chosen: a finite stretch is skipped in steps that stay in L1, in case it is to be read again.
constexpr std::size_t kSkipBytes = 16384;

// The even bits of `x`, side by side in the lower half.
std::uint64_t even_bits(std::uint64_t x) noexcept {
  x &= 0x5555555555555555;
  x = (x | x >> 1) & 0x3333333333333333;
  x = (x | x >> 2) & 0x0f0f0f0f0f0f0f0f;
  x = (x | x >> 4) & 0x00ff00ff00ff00ff;
  x = (x | x >> 8) & 0x0000ffff0000ffff;
  return (x | x >> 16) & 0x00000000ffffffff;
}

}  // namespace

bool CensusCollector::finite(const unsigned char* data, std::size_t count) const noexcept {
  return max_bits(data, count * format_.parts, dtype_) < format_.nonfinite_from;
}

void CensusCollector::take(const unsigned char* data, std::size_t count) {
  const std::size_t item_size = std::size_t{format_.part_size} * format_.parts;
  const std::size_t skip = std::max(kChunk, kSkipBytes / item_size);
  while (count > 0) {
    std::size_t now = std::min(count, expect_bad_ ? kChunk : skip);
    if (!expect_bad_ && finite(data, now)) {
      next_ += static_cast<std::int64_t>(now);
      data += now * item_size;
      count -= now;
      continue;
    }
    for (count -= now; now > 0;) {
      const std::size_t chunk = std::min(now, kChunk);
      take_chunk(data, chunk);
      data += chunk * item_size;
      now -= chunk;
    }
  }
}

void CensusCollector::take_chunk(const unsigned char* data, std::size_t count) {
  const std::size_t parts = count * format_.parts;
  const std::size_t whole_words = parts / 64;
  std::size_t words = whole_words;
  expect_bad_ =
      classify(data, whole_words, format_, {nan_.data(), pos_inf_.data(), neg_inf_.data()});
  if (parts % 64 != 0) {
    // All-zero parts are finite in every format.
    unsigned char padded[64 * sizeof(std::uint64_t)] = {};
    std::memcpy(padded, data + whole_words * 64 * format_.part_size,
                parts % 64 * format_.part_size);
    expect_bad_ |= classify(padded, 1, format_,
                            {&nan_[whole_words], &pos_inf_[whole_words], &neg_inf_[whole_words]});
    ++words;
  }
  if (expect_bad_) {
    if (format_.parts == 2) {
      if (words % 2 != 0) nan_[words] = pos_inf_[words] = neg_inf_[words] = 0;
      words = (words + 1) / 2;
      join_parts(words);
    }
    add(nan_, words, census_.nan, census_.first_nan, census_.nan_at);
    add(pos_inf_, words, census_.pos_inf, census_.first_pos_inf, census_.pos_inf_at);
    add(neg_inf_, words, census_.neg_inf, census_.first_neg_inf, census_.neg_inf_at);
  }
  next_ += static_cast<std::int64_t>(count);
}

// From a bit a part to a bit an element: NaN if a part is, else by the first infinite part.
void CensusCollector::join_parts(std::size_t words) noexcept {
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t joined[3] = {0, 0, 0};
    for (unsigned half = 0; half < 2; ++half) {
      const std::uint64_t nan = nan_[2 * i + half];
      const std::uint64_t pos = pos_inf_[2 * i + half];
      const std::uint64_t neg = neg_inf_[2 * i + half];
      const std::uint64_t any_nan = nan | nan >> 1;
      joined[0] |= even_bits(any_nan) << (32 * half);
      joined[1] |= even_bits((pos | (pos >> 1 & ~neg)) & ~any_nan) << (32 * half);
      joined[2] |= even_bits((neg | (neg >> 1 & ~pos)) & ~any_nan) << (32 * half);
    }
    nan_[i] = joined[0];
    pos_inf_[i] = joined[1];
    neg_inf_[i] = joined[2];
  }
}

void CensusCollector::add(const Words& words, std::size_t count, std::int64_t& total,
                          std::int64_t& first, ElementSet& set) const {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t left = words[i];
    if (left == 0) continue;
    const std::int64_t base = next_ + static_cast<std::int64_t>(64 * i);
    if (first < 0) first = base + std::countr_zero(left);
    total += std::popcount(left);
    do {
      const int begin = std::countr_zero(left);
      // Adding the lowest bit carries through the lowest run of ones and leaves the bit behind it set.
      const std::uint64_t carried = left + (left & -left);
      const int end = std::countr_zero(carried);  // 64 if the carry left the word
      set.append(base + begin, base + end);
      left &= carried;
    } while (left != 0);
  }
}

namespace {

// Adds [begin, end) of one block to each of its copies, of which the first starts at `base`.
void append_copies(ElementSet& result, std::span<const Run> pieces, std::int64_t base,
                   std::int64_t inner, std::int64_t times) {
  for (std::int64_t copy = 0; copy < times; ++copy) {
    for (const Run& piece : pieces) {
      result.append(base + copy * inner + piece.begin, base + copy * inner + piece.end);
    }
  }
}

}  // namespace

ElementSet repeat_blocks(const ElementSet& set, std::int64_t inner, std::int64_t times) {
  const auto budget = static_cast<std::int64_t>(ElementSet::kMaxRuns);
  ElementSet source = set;
  // Not where blocks have one element, whose copies are a run, and not where the copies of a block become one below.
  if (inner > 1 && times <= budget) source.coarsen_to(static_cast<std::size_t>(budget / times));
  ElementSet result;
  if (source.coarse()) result.mark_coarse();
  std::vector<Run> pieces;  // of the block at hand, not yet copied
  std::int64_t block = -1;
  const auto flush = [&] {
    if (pieces.empty()) return;
    const std::int64_t base = block * inner * times;
    if (times > budget) {
      // So many copies would be coarsened into one run anyway.
      result.append(base + pieces.front().begin, base + (times - 1) * inner + pieces.back().end);
      result.mark_coarse();
    } else {
      append_copies(result, pieces, base, inner, times);
    }
    pieces.clear();
  };
  for (Run run : source.runs()) {
    while (run.begin < run.end) {
      if (run.begin / inner != block) {
        flush();
        block = run.begin / inner;
      }
      const std::int64_t block_begin = block * inner;
      if (run.begin == block_begin && run.end >= block_begin + inner) {
        // Whole blocks stay whole, however many copies are made.
        const std::int64_t blocks = (run.end - run.begin) / inner;
        result.append(block_begin * times, (block_begin + blocks * inner) * times);
        run.begin += blocks * inner;
      } else {
        const std::int64_t end = std::min(run.end, block_begin + inner);
        pieces.push_back({run.begin - block_begin, end - block_begin});
        run.begin = end;
      }
    }
  }
  flush();
  return result;
}

}  // namespace sherlorch::scan
