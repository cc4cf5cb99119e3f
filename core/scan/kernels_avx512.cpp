// The kernels for AVX-512 (F, BW, VL). Per-function targets: the file itself is compiled for the baseline machine.
#include "core/scan/kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include "core/scan/max_loop.h"

#define SHERLORCH_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

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

// One struct a part size: a vector holds 64 / kVectors lanes.
struct Lanes8 {
  static constexpr unsigned kVectors = 1;
  SHERLORCH_AVX512 static __m512i spread(std::uint64_t x) noexcept { return _mm512_set1_epi8(static_cast<char>(x)); }
  SHERLORCH_AVX512 static std::uint64_t at_least(__m512i a, __m512i b) noexcept { return _mm512_cmpge_epu8_mask(a, b); }
  SHERLORCH_AVX512 static std::uint64_t equal(__m512i a, __m512i b) noexcept { return _mm512_cmpeq_epi8_mask(a, b); }
};

struct Lanes16 {
  static constexpr unsigned kVectors = 2;
  SHERLORCH_AVX512 static __m512i spread(std::uint64_t x) noexcept { return _mm512_set1_epi16(static_cast<short>(x)); }
  SHERLORCH_AVX512 static std::uint64_t at_least(__m512i a, __m512i b) noexcept {
    return _mm512_cmpge_epu16_mask(a, b);
  }
  SHERLORCH_AVX512 static std::uint64_t equal(__m512i a, __m512i b) noexcept { return _mm512_cmpeq_epi16_mask(a, b); }
};

struct Lanes32 {
  static constexpr unsigned kVectors = 4;
  SHERLORCH_AVX512 static __m512i spread(std::uint64_t x) noexcept { return _mm512_set1_epi32(static_cast<int>(x)); }
  SHERLORCH_AVX512 static std::uint64_t at_least(__m512i a, __m512i b) noexcept {
    return _mm512_cmpge_epu32_mask(a, b);
  }
  SHERLORCH_AVX512 static std::uint64_t equal(__m512i a, __m512i b) noexcept { return _mm512_cmpeq_epi32_mask(a, b); }
};

struct Lanes64 {
  static constexpr unsigned kVectors = 8;
  SHERLORCH_AVX512 static __m512i spread(std::uint64_t x) noexcept {
    return _mm512_set1_epi64(static_cast<long long>(x));
  }
  SHERLORCH_AVX512 static std::uint64_t at_least(__m512i a, __m512i b) noexcept {
    return _mm512_cmpge_epu64_mask(a, b);
  }
  SHERLORCH_AVX512 static std::uint64_t equal(__m512i a, __m512i b) noexcept { return _mm512_cmpeq_epi64_mask(a, b); }
};

// Where the 64 parts at p equal one pattern.
template <typename Lanes>
SHERLORCH_AVX512 std::uint64_t equal_bits(const unsigned char* p, __m512i pattern) noexcept {
  std::uint64_t bits = 0;
#pragma GCC unroll 8
  for (unsigned i = 0; i < Lanes::kVectors; ++i, p += kBytes) {
    const __m512i v = _mm512_loadu_si512(p);
    bits |= Lanes::equal(v, pattern) << (i * (64 / Lanes::kVectors));
  }
  return bits;
}

template <typename Lanes>
SHERLORCH_AVX512 bool classify_lanes(const void* data, std::size_t words, const Format& format,
                                     ClassMasks masks) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  const __m512i flip = Lanes::spread(format.flip);
  const __m512i mask = Lanes::spread(format.mask);
  const __m512i bad_from = Lanes::spread(format.bad_from);
  std::uint64_t any = 0;
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t bad = 0;
#pragma GCC unroll 8
    for (unsigned i = 0; i < Lanes::kVectors; ++i, p += kBytes) {
      const __m512i v = _mm512_loadu_si512(p);
      const __m512i key = _mm512_and_si512(_mm512_xor_si512(v, flip), mask);
      bad |= Lanes::at_least(key, bad_from) << (i * (64 / Lanes::kVectors));
    }
    masks.nan[word] = bad;
    masks.pos_inf[word] = 0;
    masks.neg_inf[word] = 0;
    any |= bad;
  }
  if (any == 0) return false;
  if (!format.has_infinity) return true;
  // Few words hold something, as a rule: only those are read again to tell NaN from infinity.
  const __m512i positive = Lanes::spread(format.pos_inf);
  const __m512i negative = Lanes::spread(format.neg_inf);
  p = static_cast<const unsigned char*>(data);
  for (std::size_t word = 0; word < words; ++word, p += Lanes::kVectors * kBytes) {
    if (masks.nan[word] == 0) continue;
    masks.pos_inf[word] = equal_bits<Lanes>(p, positive);
    masks.neg_inf[word] = equal_bits<Lanes>(p, negative);
    masks.nan[word] &= ~(masks.pos_inf[word] | masks.neg_inf[word]);
  }
  return true;
}

template <typename U>
SHERLORCH_AVX512 Uniform uniform_parts(const void* p, std::size_t n, const Format& format) noexcept {
  return uniform_loop<U, kBytes>(p, n, format);
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
};

}  // namespace

const Kernels* avx512_kernels() noexcept {
  __builtin_cpu_init();  // this may run before the runtime's own constructors
  const bool supported =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return supported ? &kAvx512 : nullptr;
}

}  // namespace sherlorch::scan

#else

namespace sherlorch::scan {

const Kernels* avx512_kernels() noexcept { return nullptr; }

}  // namespace sherlorch::scan

#endif
