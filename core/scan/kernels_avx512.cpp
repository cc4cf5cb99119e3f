// The kernels for AVX-512 (F, BW, DQ, VL). Per-function targets: the file itself is compiled for the baseline machine.
#include "core/scan/kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "core/scan/edge_loop.h"
#include "core/scan/max_loop.h"

#define SHERLORCH_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,popcnt")))
#define SHERLORCH_AVX512_VBMI2 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,avx512vpopcntdq,bmi,popcnt")))

namespace sherlorch::scan {
namespace {

constexpr std::size_t kBytes = 64;

SHERLORCH_AVX512 std::uint64_t max8(const void* p, std::size_t n, std::uint8_t mask) noexcept {
  return max_loop<std::uint8_t, kBytes>(p, n, MaskKey<std::uint8_t>{mask});
}

SHERLORCH_AVX512 std::uint64_t max8_fnuz(const void* p, std::size_t n) noexcept {
  return max_loop<std::uint8_t, kBytes>(p, n, FnuzKey{});
}

SHERLORCH_AVX512 std::uint64_t max16(const void* p, std::size_t n) noexcept {
  return max_loop<std::uint16_t, kBytes>(p, n, kUnsigned<std::uint16_t>);
}

SHERLORCH_AVX512 std::uint64_t max32(const void* p, std::size_t n) noexcept {
  return max_loop<std::uint32_t, kBytes>(p, n, kUnsigned<std::uint32_t>);
}

// Half the width: 64-bit maxima of 32 bytes run two a cycle on Zen 4, those of 64 bytes one, which shows in L1.
SHERLORCH_AVX512 std::uint64_t max64(const void* p, std::size_t n) noexcept {
  return max_loop<std::uint64_t, 32>(p, n, kUnsigned<std::uint64_t>);
}

// The whole width: on Intel, 64-bit maxima of 64 bytes run one a cycle, as those of 32 bytes do.
SHERLORCH_AVX512 std::uint64_t max64_intel(const void* p, std::size_t n) noexcept {
  return max_loop<std::uint64_t, kBytes>(p, n, kUnsigned<std::uint64_t>);
}

SHERLORCH_AVX512 __mmask8 first_lanes(std::size_t count) noexcept {
  return static_cast<__mmask8>(count >= 8 ? 0xff : (1u << count) - 1);
}

// One struct a part size: a vector holds 64 / kVectors lanes.
struct Lanes8 {
  static constexpr unsigned kVectors = 1;
  using Item = std::uint64_t;
  SHERLORCH_AVX512 static std::uint64_t nonzero(__m512i items) noexcept { return _mm512_test_epi64_mask(items, items); }
  SHERLORCH_AVX512 static __m512i spread(std::uint64_t x) noexcept { return _mm512_set1_epi8(static_cast<char>(x)); }
  SHERLORCH_AVX512 static Item at_most(__m512i a, __m512i b) noexcept { return _mm512_cmple_epu8_mask(a, b); }
  SHERLORCH_AVX512 static __m512i smaller(__m512i a, __m512i b) noexcept { return _mm512_min_epu8(a, b); }
  SHERLORCH_AVX512 static Item equal(__m512i a, __m512i b) noexcept { return _mm512_cmpeq_epi8_mask(a, b); }
};

struct Lanes16 {
  static constexpr unsigned kVectors = 2;
  using Item = std::uint32_t;
  SHERLORCH_AVX512 static std::uint64_t nonzero(__m512i items) noexcept { return _mm512_test_epi32_mask(items, items); }
  SHERLORCH_AVX512 static __m512i spread(std::uint64_t x) noexcept { return _mm512_set1_epi16(static_cast<short>(x)); }
  SHERLORCH_AVX512 static Item at_most(__m512i a, __m512i b) noexcept { return _mm512_cmple_epu16_mask(a, b); }
  SHERLORCH_AVX512 static __m512i smaller(__m512i a, __m512i b) noexcept { return _mm512_min_epu16(a, b); }
  SHERLORCH_AVX512 static Item equal(__m512i a, __m512i b) noexcept { return _mm512_cmpeq_epi16_mask(a, b); }
};

struct Lanes32 {
  static constexpr unsigned kVectors = 4;
  using Item = std::uint16_t;
  SHERLORCH_AVX512 static std::uint64_t nonzero(__m512i items) noexcept { return _mm512_test_epi16_mask(items, items); }
  SHERLORCH_AVX512 static __m512i spread(std::uint64_t x) noexcept { return _mm512_set1_epi32(static_cast<int>(x)); }
  SHERLORCH_AVX512 static Item at_most(__m512i a, __m512i b) noexcept { return _mm512_cmple_epu32_mask(a, b); }
  SHERLORCH_AVX512 static __m512i smaller(__m512i a, __m512i b) noexcept {
    return _mm512_maskz_min_epu32(0xffff, a, b);
  }
  SHERLORCH_AVX512 static Item equal(__m512i a, __m512i b) noexcept { return _mm512_cmpeq_epi32_mask(a, b); }
};

struct Lanes64 {
  static constexpr unsigned kVectors = 8;
  using Item = std::uint8_t;
  SHERLORCH_AVX512 static std::uint64_t nonzero(__m512i items) noexcept { return _mm512_test_epi8_mask(items, items); }
  SHERLORCH_AVX512 static __m512i spread(std::uint64_t x) noexcept {
    return _mm512_set1_epi64(static_cast<long long>(x));
  }
  SHERLORCH_AVX512 static Item at_most(__m512i a, __m512i b) noexcept { return _mm512_cmple_epu64_mask(a, b); }
  SHERLORCH_AVX512 static __m512i smaller(__m512i a, __m512i b) noexcept { return _mm512_maskz_min_epu64(0xff, a, b); }
  SHERLORCH_AVX512 static Item equal(__m512i a, __m512i b) noexcept { return _mm512_cmpeq_epi64_mask(a, b); }
};

// Tells the infinities from NaN in masks of both. Takes 64 vectors at a time, so that which of them hold something fits
// in one word: as a rule few do, and only those are read again.
template <typename Lanes>
SHERLORCH_AVX512 Classes split_infinities(const unsigned char* p, std::size_t words, const Format& format,
                                          ClassMasks masks) noexcept {
  using Item = typename Lanes::Item;
  constexpr std::size_t kWords = 64 / Lanes::kVectors;
  const __m512i positive = Lanes::spread(format.pos_inf);
  const __m512i negative = Lanes::spread(format.neg_inf);
  std::uint64_t any_nan = 0;
  std::uint64_t any_pos_inf = 0;
  std::uint64_t any_neg_inf = 0;
  std::fill_n(masks.pos_inf, words, 0);
  std::fill_n(masks.neg_inf, words, 0);
  for (std::size_t at = 0; at < words; at += kWords, p += 64 * kBytes) {
    const std::size_t now = std::min(kWords, words - at);
    std::uint64_t occupied = 0;
    for (std::size_t word = 0; word < now; word += 8) {
      const __mmask8 there = first_lanes(now - word);
      const __m512i items = _mm512_maskz_loadu_epi64(there, masks.nan + at + word);
      occupied |= Lanes::nonzero(items) << (word * Lanes::kVectors);
    }
    auto* const pos_inf = reinterpret_cast<unsigned char*>(masks.pos_inf + at);
    auto* const neg_inf = reinterpret_cast<unsigned char*>(masks.neg_inf + at);
    for (; occupied != 0; occupied &= occupied - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(occupied));
      const __m512i v = _mm512_loadu_si512(p + i * kBytes);
      const Item is_pos_inf = Lanes::equal(v, positive);
      const Item is_neg_inf = Lanes::equal(v, negative);
      std::memcpy(pos_inf + i * sizeof(Item), &is_pos_inf, sizeof(Item));
      std::memcpy(neg_inf + i * sizeof(Item), &is_neg_inf, sizeof(Item));
      any_pos_inf |= is_pos_inf;
      any_neg_inf |= is_neg_inf;
    }
    for (std::size_t word = at; word < at + now; ++word) {
      masks.nan[word] &= ~(masks.pos_inf[word] | masks.neg_inf[word]);
      any_nan |= masks.nan[word];
    }
  }
  return classes_of(any_nan, any_pos_inf, any_neg_inf);
}

// The distance of a part is (bits ^ near) & mask: at most `reach` where it is non-finite, and 0 where it is infinite if
// the format has infinities. So the shortest of all tells which of the masks are needed.
template <typename Lanes>
SHERLORCH_AVX512 Classes classify_lanes(const void* data, std::size_t words, const Format& format,
                                        ClassMasks masks) noexcept {
  using Item = typename Lanes::Item;
  const auto* p = static_cast<const unsigned char*>(data);
  const __m512i near = Lanes::spread(format.has_infinity ? format.pos_inf : ~format.flip);
  const __m512i mask = Lanes::spread(format.mask);
  const __m512i reach = Lanes::spread(format.mask - format.bad_from);
  auto* bad = reinterpret_cast<unsigned char*>(masks.nan);
  __m512i shortest = _mm512_set1_epi64(-1);
  __m512i other = shortest;
  for (std::size_t word = 0; word < words; ++word, p += Lanes::kVectors * kBytes, bad += 8) {
#pragma GCC unroll 8
    for (unsigned i = 0; i < Lanes::kVectors; ++i) {
      const __m512i v = _mm512_loadu_si512(p + i * kBytes);
      const __m512i distance = _mm512_ternarylogic_epi64(v, near, mask, 0x28);  // (v ^ near) & mask
      const Item is_bad = Lanes::at_most(distance, reach);
      // What a vector has of a mask is stored by itself: that is faster than to put the words together.
      std::memcpy(bad + i * sizeof(Item), &is_bad, sizeof(Item));
      __m512i& chain = i % 2 == 0 ? shortest : other;
      chain = Lanes::smaller(chain, distance);
    }
  }
  shortest = Lanes::smaller(shortest, other);
  if (Lanes::at_most(shortest, reach) == 0) return 0;
  if (!format.has_infinity || Lanes::equal(shortest, __m512i{}) == 0) return kNanClass;
  return split_infinities<Lanes>(static_cast<const unsigned char*>(data), words, format, masks);
}

template <typename U>
SHERLORCH_AVX512 Uniform uniform_parts(const void* p, std::size_t n, const Format& format) noexcept {
  return uniform_loop<U, kBytes>(p, n, format);
}

SHERLORCH_AVX512 EdgeCounts list_edges_of(const std::uint64_t* bits, std::size_t words, bool inside, std::int64_t first,
                                          std::int64_t* edges) noexcept {
  return edge_loop(bits, words, inside, first, edges);
}

alignas(64) constexpr auto kIota = [] {
  std::array<std::uint8_t, 64> iota = {};
  for (std::size_t i = 0; i < 64; ++i) iota[i] = static_cast<std::uint8_t>(i);
  return iota;
}();

// edge_loop() with the edges of eight words found in one go, and up to eight edges of a word listed in one go.
SHERLORCH_AVX512_VBMI2 EdgeCounts list_edges_vbmi2(const std::uint64_t* bits, std::size_t words, bool inside,
                                                   std::int64_t first, std::int64_t* edges) noexcept {
  alignas(64) std::uint64_t edge_words[kMaxEdgeWords];
  std::uint64_t occupied = 0;
  __m512i ones = {};
  __m512i last = _mm512_set1_epi64(inside ? std::numeric_limits<std::int64_t>::min() : 0);
  for (std::size_t i = 0; i < words; i += 8) {
    const __mmask8 there = first_lanes(words - i);
    const __m512i word = _mm512_maskz_loadu_epi64(there, bits + i);
    const __m512i before = _mm512_shldi_epi64(word, _mm512_maskz_alignr_epi64(0xff, word, last, 7), 1);
    const __m512i edge = _mm512_xor_si512(word, before);
    last = word;
    ones = _mm512_add_epi64(ones, _mm512_popcnt_epi64(word));
    _mm512_store_si512(edge_words + i, edge);
    occupied |= std::uint64_t{_mm512_mask_test_epi64_mask(there, edge, edge)} << i;
  }
  const __m512i iota = _mm512_load_si512(kIota.data());
  std::int64_t* to = edges;
  for (; occupied != 0; occupied &= occupied - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(occupied));
    const std::uint64_t word = edge_words[i];
    const int count = std::popcount(word);
    const __m512i base = _mm512_set1_epi64(first + static_cast<std::int64_t>(64 * i));
    const __m512i at = _mm512_maskz_compress_epi8(word, iota);
    __m128i low;  // not by a cast or an unmasked intrinsic: GCC 12 warns of its own header's uninitialised operands
    std::memcpy(&low, &at, sizeof low);
    _mm512_storeu_si512(to, _mm512_add_epi64(base, _mm512_maskz_cvtepu8_epi64(0xff, low)));
    if (count > 8) {
      alignas(64) std::uint8_t rest[64];
      _mm512_store_si512(rest, at);
      for (int k = 8; k < count; k += 8) {
        const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rest + k));
        _mm512_storeu_si512(to + k, _mm512_add_epi64(base, _mm512_maskz_cvtepu8_epi64(0xff, eight)));
      }
    }
    to += count;
  }
  std::int64_t sum = 0;
  for (int i = 0; i < 8; ++i) sum += ones[i];
  return {static_cast<std::size_t>(to - edges), sum};
}

constexpr Kernels kAvx512 = {
    .max8 = max8,
    .max8_fnuz = max8_fnuz,
    .max16 = max16,
    .max32 = max32,
    .max64 = max64,
    .classify8 = classify_lanes<Lanes8>,
    .classify16 = classify_lanes<Lanes16>,
    .classify32 = classify_lanes<Lanes32>,
    .classify64 = classify_lanes<Lanes64>,
    .uniform8 = uniform_parts<std::uint8_t>,
    .uniform16 = uniform_parts<std::uint16_t>,
    .uniform32 = uniform_parts<std::uint32_t>,
    .uniform64 = uniform_parts<std::uint64_t>,
    .list_edges = list_edges_of,
};

constexpr Kernels kAvx512Vbmi2 = [] {
  Kernels kernels = kAvx512;
  kernels.list_edges = list_edges_vbmi2;
  return kernels;
}();

constexpr Kernels kAvx512Intel = [] {
  Kernels kernels = kAvx512Vbmi2;
  kernels.max64 = max64_intel;
  return kernels;
}();

}  // namespace

const Kernels* avx512_kernels() noexcept {
  __builtin_cpu_init();  // this may run before the runtime's own constructors
  const bool supported = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
  return supported ? &kAvx512 : nullptr;
}

const Kernels* avx512_vbmi2_kernels() noexcept {
  const bool supported =
      avx512_kernels() != nullptr && __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vpopcntdq");
  return supported ? &kAvx512Vbmi2 : nullptr;
}

const Kernels* avx512_intel_kernels() noexcept { return avx512_vbmi2_kernels() != nullptr ? &kAvx512Intel : nullptr; }

}  // namespace sherlorch::scan

#else

namespace sherlorch::scan {

const Kernels* avx512_kernels() noexcept { return nullptr; }
const Kernels* avx512_vbmi2_kernels() noexcept { return nullptr; }
const Kernels* avx512_intel_kernels() noexcept { return nullptr; }

}  // namespace sherlorch::scan

#endif
