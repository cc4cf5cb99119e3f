#include "core/scan/census_collector.h"

#include <algorithm>
#include <cstring>

namespace sherlorch::scan {
namespace {

// Chosen: finite and uniform stretches are taken in steps that stay in L1, in case they are to be read again.
constexpr std::size_t kStepBytes = 8192;

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
  const std::size_t step = kStepBytes / item_size;
  std::size_t known_bad = 0;  // elements ahead that failed the fast pass
  while (count > 0) {
    std::size_t taken = std::min(count, step);
    if (!expect_bad_ && known_bad == 0) {
      if (finite(data, taken)) {
        next_ += static_cast<std::int64_t>(taken);
      } else {
        known_bad = taken;
        taken = 0;
      }
    } else if (!take_if_uniform(data, taken)) {
      taken = std::min(count, kChunk);
      take_chunk(data, taken);
    }
    data += taken * item_size;
    count -= taken;
    known_bad -= std::min(known_bad, taken);
  }
}

bool CensusCollector::take_if_uniform(const unsigned char* data, std::size_t count) {
  Tally* tally = nullptr;
  switch (uniform(data, count * format_.parts, format_)) {
    case Uniform::kNo:
      return false;
    case Uniform::kNan:
      tally = &nan_tally_;
      break;
    case Uniform::kPosInf:
      tally = &pos_inf_tally_;
      break;
    case Uniform::kNegInf:
      tally = &neg_inf_tally_;
      break;
  }
  tally->add(next_, next_ + static_cast<std::int64_t>(count));
  next_ += static_cast<std::int64_t>(count);
  return true;
}

void CensusCollector::take_chunk(const unsigned char* data, std::size_t count) {
  const std::size_t parts = count * format_.parts;
  const std::size_t whole_words = parts / 64;
  std::size_t words = whole_words;
  bool bad = classify(data, whole_words, format_, {nan_.data(), pos_inf_.data(), neg_inf_.data()});
  if (parts % 64 != 0) {
    // All-zero parts are finite in every format.
    unsigned char padded[64 * sizeof(std::uint64_t)] = {};
    std::memcpy(padded, data + whole_words * 64 * format_.part_size, parts % 64 * format_.part_size);
    bad |= classify(padded, 1, format_, {&nan_[whole_words], &pos_inf_[whole_words], &neg_inf_[whole_words]});
    ++words;
  }
  expect_bad_ = bad;
  if (bad) {
    if (format_.parts == 2) {
      if (words % 2 != 0) nan_[words] = pos_inf_[words] = neg_inf_[words] = 0;
      words = (words + 1) / 2;
      join_parts(words);
    }
    add_words(words);
  }
  next_ += static_cast<std::int64_t>(count);
}

void CensusCollector::add_words(std::size_t words) {
  // The words that hold something as bits of one: that costs no branch for each of them, which would be unpredictable.
  static_assert(kChunk / 64 <= 64);
  std::uint64_t occupied = 0;
  for (std::size_t i = 0; i < words; ++i) {
    occupied |= std::uint64_t{(nan_[i] | pos_inf_[i] | neg_inf_[i]) != 0} << i;
  }
  for (; occupied != 0; occupied &= occupied - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(occupied));
    const std::int64_t base = next_ + static_cast<std::int64_t>(64 * i);
    add_word(nan_tally_, nan_[i], base);
    add_word(pos_inf_tally_, pos_inf_[i], base);
    add_word(neg_inf_tally_, neg_inf_[i], base);
  }
}

void CensusCollector::add_word(Tally& tally, std::uint64_t word, std::int64_t base) {
  while (word != 0) {
    const int begin = std::countr_zero(word);
    // Adding the lowest bit carries through the lowest run of ones and leaves the bit behind it set.
    const std::uint64_t carried = word + (word & -word);
    const int end = std::countr_zero(carried);  // 64 if the carry left the word
    tally.add(base + begin, base + end);
    word &= carried;
  }
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

namespace {

// Adds [begin, end) of one block to each of its copies, of which the first starts at `base`.
void append_copies(ElementSet& result, std::span<const Run> pieces, std::int64_t base, std::int64_t inner,
                   std::int64_t times) {
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
