// The loops over memory, one set per instruction set. Internal to core/scan.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/scan/format.h"

namespace sherlorch::scan {

// A plane of parts: `rows` runs of `count` parts, steps in bytes and not negative.
struct Plane {
  const unsigned char* data = nullptr;
  std::size_t count = 0;
  std::size_t step = 0;
  std::size_t rows = 1;
  std::size_t row_step = 0;
};

// One bit a part, 64 to a word.
struct ClassMasks {
  std::uint64_t* nan;
  std::uint64_t* pos_inf;
  std::uint64_t* neg_inf;
};

// Classes that occur, as a set of bits.
using Classes = std::uint8_t;
inline constexpr Classes kNanClass = 1;
inline constexpr Classes kPosInfClass = 2;
inline constexpr Classes kNegInfClass = 4;

constexpr Classes classes_of(std::uint64_t nan, std::uint64_t pos_inf, std::uint64_t neg_inf) noexcept {
  return static_cast<Classes>((nan != 0 ? kNanClass : 0) | (pos_inf != 0 ? kPosInfClass : 0) |
                              (neg_inf != 0 ? kNegInfClass : 0));
}

// Words that list_edges() takes at a time, so that which of them hold an edge fits in one more.
inline constexpr std::size_t kMaxEdgeWords = 64;
// What list_edges() may write behind the last edge.
inline constexpr std::size_t kEdgeSlack = 8;

struct EdgeCounts {
  std::size_t edges;
  std::int64_t ones;
};

// What a stretch of parts has in common, if it has.
enum class Uniform : std::uint8_t { kNo, kNan, kPosInf, kNegInf };

// Pointers, not virtual functions, so that the tables are constants that need no construction. No kernel needs its data
// aligned.
struct Kernels {
  // Largest (bits & mask) of `count` parts; 0 if there are none.
  std::uint64_t (*max8)(const void*, std::size_t count, std::uint8_t mask) noexcept;
  // Largest (bits & 0x7f), or 0x80 if that pattern itself, the NaN of the fnuz formats, is there.
  std::uint64_t (*max8_fnuz)(const void*, std::size_t count) noexcept;
  // Without the sign bit.
  std::uint64_t (*max16)(const void*, std::size_t count) noexcept;
  std::uint64_t (*max32)(const void*, std::size_t count) noexcept;
  std::uint64_t (*max64)(const void*, std::size_t count) noexcept;
  // The classes of 64 * `words` parts, and which of them occur; the masks of those that do not may stay unwritten. One
  // for each part size: 1, 2, 4, 8.
  Classes (*classify8)(const void*, std::size_t words, const Format&, ClassMasks) noexcept;
  Classes (*classify16)(const void*, std::size_t words, const Format&, ClassMasks) noexcept;
  Classes (*classify32)(const void*, std::size_t words, const Format&, ClassMasks) noexcept;
  Classes (*classify64)(const void*, std::size_t words, const Format&, ClassMasks) noexcept;
  // Are all of `count` parts NaN, or all the same infinity? Nearly as fast as the maximum. REQUIRES: count > 0.
  Uniform (*uniform8)(const void*, std::size_t count, const Format&) noexcept;
  Uniform (*uniform16)(const void*, std::size_t count, const Format&) noexcept;
  Uniform (*uniform32)(const void*, std::size_t count, const Format&) noexcept;
  Uniform (*uniform64)(const void*, std::size_t count, const Format&) noexcept;
  // Where runs of ones begin and end in turn: `first` + each index at which a bit differs from the one before it. The
  // bit before the first is `inside`; a run that the last word leaves open gets no end.
  // REQUIRES: words <= kMaxEdgeWords, and at `edges` room for 64 * words + kEdgeSlack.
  EdgeCounts (*list_edges)(const std::uint64_t* bits, std::size_t words, bool inside, std::int64_t first,
                           std::int64_t* edges) noexcept;
};

// The best set for this machine. Right from the first instruction of the process on: before the machine has been asked
// what it can do (a static initialiser asks), this is the portable set.
const Kernels& kernels() noexcept;

const Kernels& portable_kernels() noexcept;
// nullptr where neither the compiler nor the machine has it.
const Kernels* avx2_kernels() noexcept;
const Kernels* avx512_kernels() noexcept;
// The same, with the compression of bytes (VBMI2) and the count of bits (VPOPCNTDQ) that later machines have.
const Kernels* avx512_vbmi2_kernels() noexcept;
// Those again, with the maxima that suit Intel's processors, for all that have the instructions.
const Kernels* avx512_intel_kernels() noexcept;

// Largest magnitude pattern of `count` parts of this dtype, comparable with Format::nonfinite_from.
std::uint64_t max_bits(const void* data, std::size_t count, DType dtype) noexcept;
// The same for parts that are not side by side.
std::uint64_t max_bits(const Plane& plane, DType dtype) noexcept;

Classes classify(const void* data, std::size_t words, const Format& format, ClassMasks masks) noexcept;
Uniform uniform(const void* data, std::size_t count, const Format& format) noexcept;
EdgeCounts list_edges(const std::uint64_t* bits, std::size_t words, bool inside, std::int64_t first,
                      std::int64_t* edges) noexcept;

}  // namespace sherlorch::scan
