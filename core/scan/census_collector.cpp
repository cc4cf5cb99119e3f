#include "core/scan/census_collector.h"

#include <algorithm>
#include <cstring>
#include <span>

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
  while (count > 0) {
    const std::size_t taken = std::min(count, step);
    if (!expect_bad_ && finite(data, taken)) {
      close_all();
      next_ += static_cast<std::int64_t>(taken);
    } else {
      take_bad(data, taken);
    }
    data += taken * item_size;
    count -= taken;
  }
}

void CensusCollector::take_bad(const unsigned char* data, std::size_t count) {
  const std::size_t item_size = std::size_t{format_.part_size} * format_.parts;
  const std::size_t word = 64 / format_.parts;
  while (count > 0 && !take_if_uniform(data, count)) {
    // Whole words, or what is left of one.
    std::size_t taken = std::min(count, kMaxWords * word);
    if (taken > word) taken -= taken % word;
    take_chunk(data, taken);
    data += taken * item_size;
    count -= taken;
  }
}

bool CensusCollector::take_if_uniform(const unsigned char* data, std::size_t count) {
  const Uniform what = uniform(data, count * format_.parts, format_);
  if (what == Uniform::kNo) return false;
  const auto tell = [&](Tally& tally, bool all) { all ? tally.take_all(count, next_) : tally.close(next_); };
  tell(nan_tally_, what == Uniform::kNan);
  tell(pos_inf_tally_, what == Uniform::kPosInf);
  tell(neg_inf_tally_, what == Uniform::kNegInf);
  next_ += static_cast<std::int64_t>(count);
  return true;
}

void CensusCollector::take_chunk(const unsigned char* data, std::size_t count) {
  const std::size_t parts = count * format_.parts;
  const std::size_t words = (parts + 63) / 64;
  unsigned char padded[64 * sizeof(std::uint64_t)];
  if (parts < 64) {
    // All-zero parts are finite in every format.
    std::memset(padded, 0, sizeof padded);
    std::memcpy(padded, data, parts * format_.part_size);
    data = padded;
  }
  const Classes present = classify(data, words, format_, {nan_.data(), pos_inf_.data(), neg_inf_.data()});
  expect_bad_ = present != 0;
  if (present != 0 && format_.parts == 2) {
    if ((present & kNanClass) == 0) nan_.fill(0);
    if ((present & kPosInfClass) == 0) pos_inf_.fill(0);
    if ((present & kNegInfClass) == 0) neg_inf_.fill(0);
    if (words % 2 != 0) nan_[words] = pos_inf_[words] = neg_inf_[words] = 0;
    join_parts((words + 1) / 2);
  }
  const auto tell = [&](Tally& tally, Classes which, const Words& bits) {
    (present & which) != 0 ? tally.take_bits(bits, count, next_) : tally.close(next_);
  };
  tell(nan_tally_, kNanClass, nan_);
  tell(pos_inf_tally_, kPosInfClass, pos_inf_);
  tell(neg_inf_tally_, kNegInfClass, neg_inf_);
  next_ += static_cast<std::int64_t>(count);
}

void CensusCollector::finish() {
  close_all();
  nan_tally_.flush();
  pos_inf_tally_.flush();
  neg_inf_tally_.flush();
}

void CensusCollector::Tally::take_bits(const Words& bits, std::size_t count, std::int64_t at) {
  const std::size_t words = (count + 63) / 64;
  for (std::size_t i = 0; i < words; i += kListedWords) {
    if (size_ >= kFlushFrom) flush();
    const std::size_t now = std::min(kListedWords, words - i);
    const std::int64_t first = at + static_cast<std::int64_t>(64 * i);
    const EdgeCounts added = list_edges(bits.data() + i, now, is_open(), first, edges_.data() + size_);
    size_ += added.edges;
    count_ += added.ones;
  }
  // Whether a run ends here the next element shows, not the zeros that fill the last word.
  if (size_ > 0 && edges_[size_ - 1] == at + static_cast<std::int64_t>(count)) --size_;
}

void CensusCollector::Tally::flush() {
  const std::span<const std::int64_t> whole(edges_.data(), size_ & ~std::size_t{1});
  if (whole.empty()) return;
  if (first_ < 0) first_ = whole[0];
  set_.append_edges(whole);
  edges_[0] = edges_[size_ - 1];  // the open run's, if there is one
  size_ %= 2;
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
