// The kernels for AVX2 (and BMI and POPCNT, which came before it). Per-function targets: the file itself is compiled
// for the baseline machine.
#include "core/scan/kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include "core/scan/edge_loop.h"
#include "core/scan/max_loop.h"

#define SHERLORCH_AVX2 __attribute__((target("avx2,bmi,popcnt")))

namespace sherlorch::scan {
namespace {

constexpr std::size_t kBytes = 32;

SHERLORCH_AVX2 std::uint64_t max8(const void* p, std::size_t n, std::uint8_t mask) noexcept {
  return max_loop<std::uint8_t, kBytes>(p, n, MaskKey<std::uint8_t>{mask});
}

SHERLORCH_AVX2 std::uint64_t max8_fnuz(const void* p, std::size_t n) noexcept {
  return max_loop<std::uint8_t, kBytes>(p, n, FnuzKey{});
}

SHERLORCH_AVX2 std::uint64_t max16(const void* p, std::size_t n) noexcept {
  return max_loop<std::uint16_t, kBytes>(p, n, kUnsigned<std::uint16_t>);
}

SHERLORCH_AVX2 std::uint64_t max32(const void* p, std::size_t n) noexcept {
  return max_loop<std::uint32_t, kBytes>(p, n, kUnsigned<std::uint32_t>);
}

SHERLORCH_AVX2 std::uint64_t max64(const void* p, std::size_t n) noexcept {
  return max_loop<std::uint64_t, kBytes>(p, n, kUnsigned<std::uint64_t>);
}

SHERLORCH_AVX2 inline __m256i load(const unsigned char* p) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// One struct a part size: comparisons by lane, and `bits` of 64 / kVectors lanes out of one vector of comparisons.
struct Lanes8 {
  static constexpr unsigned kVectors = 2;
  SHERLORCH_AVX2 static __m256i spread(std::uint64_t x) noexcept { return _mm256_set1_epi8(static_cast<char>(x)); }
  // There is no unsigned comparison, but there is an unsigned maximum.
  SHERLORCH_AVX2 static __m256i at_least(__m256i v, __m256i least) noexcept {
    return _mm256_cmpeq_epi8(_mm256_max_epu8(v, least), v);
  }
  SHERLORCH_AVX2 static __m256i equal(__m256i a, __m256i b) noexcept { return _mm256_cmpeq_epi8(a, b); }
  SHERLORCH_AVX2 static std::uint64_t bits(__m256i v) noexcept {
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(v));
  }
};

struct Lanes16 {
  static constexpr unsigned kVectors = 4;
  SHERLORCH_AVX2 static __m256i spread(std::uint64_t x) noexcept { return _mm256_set1_epi16(static_cast<short>(x)); }
  SHERLORCH_AVX2 static __m256i at_least(__m256i v, __m256i least) noexcept {
    return _mm256_cmpeq_epi16(_mm256_max_epu16(v, least), v);
  }
  SHERLORCH_AVX2 static __m256i equal(__m256i a, __m256i b) noexcept { return _mm256_cmpeq_epi16(a, b); }
  SHERLORCH_AVX2 static std::uint64_t bits(__m256i v) noexcept {
    const __m128i packed = _mm_packs_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(packed));
  }
};

struct Lanes32 {
  static constexpr unsigned kVectors = 8;
  SHERLORCH_AVX2 static __m256i spread(std::uint64_t x) noexcept { return _mm256_set1_epi32(static_cast<int>(x)); }
  SHERLORCH_AVX2 static __m256i at_least(__m256i v, __m256i least) noexcept {
    return _mm256_cmpeq_epi32(_mm256_max_epu32(v, least), v);
  }
  SHERLORCH_AVX2 static __m256i equal(__m256i a, __m256i b) noexcept { return _mm256_cmpeq_epi32(a, b); }
  SHERLORCH_AVX2 static std::uint64_t bits(__m256i v) noexcept {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(v)));
  }
};

struct Lanes64 {
  static constexpr unsigned kVectors = 16;
  SHERLORCH_AVX2 static __m256i spread(std::uint64_t x) noexcept {
    return _mm256_set1_epi64x(static_cast<long long>(x));
  }
  // Signed: the sign is masked off before.
  SHERLORCH_AVX2 static __m256i at_least(__m256i v, __m256i least) noexcept {
    return _mm256_andnot_si256(_mm256_cmpgt_epi64(least, v), _mm256_set1_epi64x(-1));
  }
  SHERLORCH_AVX2 static __m256i equal(__m256i a, __m256i b) noexcept { return _mm256_cmpeq_epi64(a, b); }
  SHERLORCH_AVX2 static std::uint64_t bits(__m256i v) noexcept {
    return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(v)));
  }
};

// Where the 64 parts at p equal one pattern.
template <typename Lanes>
SHERLORCH_AVX2 std::uint64_t equal_bits(const unsigned char* p, __m256i pattern) noexcept {
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < Lanes::kVectors; ++i, p += kBytes) {
    const __m256i v = load(p);
    bits |= Lanes::bits(Lanes::equal(v, pattern)) << (i * (64 / Lanes::kVectors));
  }
  return bits;
}

template <typename Lanes>
SHERLORCH_AVX2 Classes classify_lanes(const void* data, std::size_t words, const Format& format,
                                      ClassMasks masks) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  const __m256i flip = Lanes::spread(format.flip);
  const __m256i mask = Lanes::spread(format.mask);
  const __m256i bad_from = Lanes::spread(format.bad_from);
  std::uint64_t any = 0;
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t bad = 0;
    for (unsigned i = 0; i < Lanes::kVectors; ++i, p += kBytes) {
      const __m256i v = load(p);
      const __m256i key = _mm256_and_si256(_mm256_xor_si256(v, flip), mask);
      bad |= Lanes::bits(Lanes::at_least(key, bad_from)) << (i * (64 / Lanes::kVectors));
    }
    masks.nan[word] = bad;
    masks.pos_inf[word] = 0;
    masks.neg_inf[word] = 0;
    any |= bad;
  }
  if (any == 0 || !format.has_infinity) return classes_of(any, 0, 0);
  // Few words hold something, as a rule: only those are read again to tell NaN from infinity.
  const __m256i positive = Lanes::spread(format.pos_inf);
  const __m256i negative = Lanes::spread(format.neg_inf);
  std::uint64_t any_nan = 0;
  std::uint64_t any_pos_inf = 0;
  std::uint64_t any_neg_inf = 0;
  p = static_cast<const unsigned char*>(data);
  for (std::size_t word = 0; word < words; ++word, p += Lanes::kVectors * kBytes) {
    if (masks.nan[word] == 0) continue;
    masks.pos_inf[word] = equal_bits<Lanes>(p, positive);
    masks.neg_inf[word] = equal_bits<Lanes>(p, negative);
    masks.nan[word] &= ~(masks.pos_inf[word] | masks.neg_inf[word]);
    any_nan |= masks.nan[word];
    any_pos_inf |= masks.pos_inf[word];
    any_neg_inf |= masks.neg_inf[word];
  }
  return classes_of(any_nan, any_pos_inf, any_neg_inf);
}

template <typename U>
SHERLORCH_AVX2 Uniform uniform_parts(const void* p, std::size_t n, const Format& format) noexcept {
  return uniform_loop<U, kBytes>(p, n, format);
}

SHERLORCH_AVX2 EdgeCounts list_edges_of(const std::uint64_t* bits, std::size_t words, bool inside, std::int64_t first,
                                        std::int64_t* edges) noexcept {
  return edge_loop(bits, words, inside, first, edges);
}

constexpr Kernels kAvx2 = {
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

}  // namespace

const Kernels* avx2_kernels() noexcept {
  __builtin_cpu_init();  // this may run before the runtime's own constructors
  const bool supported =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
  return supported ? &kAvx2 : nullptr;
}

}  // namespace sherlorch::scan

#else

namespace sherlorch::scan {

const Kernels* avx2_kernels() noexcept { return nullptr; }

}  // namespace sherlorch::scan

#endif
