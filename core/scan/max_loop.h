// The loops that find the largest magnitude pattern, and whether all are alike, to be inlined into one function per
// instruction set. Internal.
//
// Written in the compilers' generic vectors: the same text becomes AVX-512, AVX2, SSE2 or NEON by the target of the
// function around it, at -O2 too, where GCC 12 does not vectorise such a loop by itself. A maximum may take the same
// part twice, so the ends of a buffer are covered by vectors that overlap others rather than by scalar loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/scan/kernels.h"

namespace sherlorch::scan {

#define SHERLORCH_INLINE inline __attribute__((always_inline))

template <typename T, std::size_t kBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
};

// Wider parts are compared as signed numbers: their sign bit is masked off, and SSE2 and AVX2 lack some of the unsigned
// comparisons. Bytes have no such mask in every format, but an unsigned maximum everywhere.
template <typename U>
using Lane = std::conditional_t<sizeof(U) == 1, std::uint8_t, std::make_signed_t<U>>;

template <typename U>
SHERLORCH_INLINE U load_part(const unsigned char* p) noexcept {
  U bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}

template <typename Vector, typename Key>
SHERLORCH_INLINE void load_key(Vector& v, const unsigned char* p, Key key) noexcept {
  std::memcpy(&v, p, sizeof v);
  key(v);
}

template <typename Vector>
SHERLORCH_INLINE void raise_to(Vector& largest, const Vector& v) noexcept {
  largest = v > largest ? v : largest;
}

// What a vector adds to the running maximum: bits & mask.
template <typename U>
struct MaskKey {
  U mask;
  template <typename Vector>
  SHERLORCH_INLINE void operator()(Vector& v) const noexcept {
    v = static_cast<Vector>(v & static_cast<Lane<U>>(mask));
  }
};

// Drops the sign.
template <typename U>
inline constexpr MaskKey<U> kUnsigned = {static_cast<U>(static_cast<U>(~U{0}) >> 1)};

// For the fnuz formats: 0x80 alone stays, everything else loses its sign.
struct FnuzKey {
  template <typename Vector>
  SHERLORCH_INLINE void operator()(Vector& v) const noexcept {
    if constexpr (std::is_integral_v<Vector>) {
      if (v != 0x80) v &= 0x7f;
    } else {
      const Vector nan = (Vector)(v == static_cast<std::uint8_t>(0x80));
      v = v & (nan | static_cast<std::uint8_t>(0x7f));
    }
  }
};

// The largest lane, of patterns that are not negative as a Lane.
template <typename U, std::size_t kBytes>
SHERLORCH_INLINE U largest_lane(const typename VectorOf<Lane<U>, kBytes>::type& v) noexcept {
  if constexpr (kBytes > 16) {
    typename VectorOf<Lane<U>, kBytes / 2>::type low;
    typename VectorOf<Lane<U>, kBytes / 2>::type high;
    std::memcpy(&low, &v, kBytes / 2);
    std::memcpy(&high, reinterpret_cast<const unsigned char*>(&v) + kBytes / 2, kBytes / 2);
    raise_to(low, high);
    return largest_lane<U, kBytes / 2>(low);
  } else {
    using Pair = VectorOf<std::uint64_t, 16>::type;
    using Lanes = typename VectorOf<Lane<U>, 16>::type;
    Lanes lanes = v;
    Pair pair = (Pair)lanes;
    const Pair swapped = {pair[1], pair[0]};
    raise_to(lanes, (Lanes)swapped);
    // Shifts bring in zeros, which never win.
    if constexpr (sizeof(U) <= 4) raise_to(lanes, (Lanes)((Pair)lanes >> 32));
    if constexpr (sizeof(U) <= 2) raise_to(lanes, (Lanes)((Pair)lanes >> 16));
    if constexpr (sizeof(U) == 1) raise_to(lanes, (Lanes)((Pair)lanes >> 8));
    return static_cast<U>(lanes[0]);
  }
}

// REQUIRES: size >= kBytes.
template <typename U, std::size_t kBytes, typename Key>
SHERLORCH_INLINE U max_of_vectors(const unsigned char* p, std::size_t size, Key key) noexcept {
  using Vector = typename VectorOf<Lane<U>, kBytes>::type;
  // Four chains hide the latency of the comparison. Named, because at -O2 GCC 12 keeps an array of them in memory.
  Vector chain0, chain1, chain2, chain3;
  load_key(chain0, p, key);
  chain1 = chain2 = chain3 = chain0;
  const unsigned char* const end = p + size;
  if (size >= 8 * kBytes) {
    // From a boundary on, no load touches two cache lines. Only if parts do not straddle it.
    const std::size_t ahead = (kBytes - reinterpret_cast<std::uintptr_t>(p) % kBytes) % kBytes;
    if (ahead % sizeof(U) == 0) p += ahead;
  }
  Vector v0, v1, v2, v3;
  const auto take_four = [&](const unsigned char* from) __attribute__((always_inline)) {
    load_key(v0, from, key);
    load_key(v1, from + kBytes, key);
    load_key(v2, from + 2 * kBytes, key);
    load_key(v3, from + 3 * kBytes, key);
    raise_to(chain0, v0);
    raise_to(chain1, v1);
    raise_to(chain2, v2);
    raise_to(chain3, v3);
  };
  // Eight of the narrower vectors, which come two a cycle from L1: with four, counting shows. Not eight of the widest:
  // with steps of 512 bytes the scan lost a quarter of its speed from L3 on Zen 4.
  if constexpr (kBytes <= 32) {
    for (; static_cast<std::size_t>(end - p) >= 8 * kBytes; p += 8 * kBytes) {
      take_four(p);
      take_four(p + 4 * kBytes);
    }
  }
  for (; static_cast<std::size_t>(end - p) >= 4 * kBytes; p += 4 * kBytes) take_four(p);
  for (; static_cast<std::size_t>(end - p) >= kBytes; p += kBytes) {
    load_key(v0, p, key);
    raise_to(chain0, v0);
  }
  load_key(v1, end - kBytes, key);
  raise_to(chain1, v1);
  raise_to(chain0, chain1);
  raise_to(chain2, chain3);
  raise_to(chain0, chain2);
  return largest_lane<U, kBytes>(chain0);
}

// kBytes is the widest vector of the target.
template <typename U, std::size_t kBytes, typename Key>
SHERLORCH_INLINE U max_loop(const void* data, std::size_t count, Key key) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  const std::size_t size = count * sizeof(U);
  if (size >= kBytes) return max_of_vectors<U, kBytes>(p, size, key);
  if constexpr (kBytes > 16) {
    if (size >= 16) return max_of_vectors<U, 16>(p, size, key);
  }
  U largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    U bits;
    load_key(bits, p + i * sizeof(U), key);
    if (bits > largest) largest = bits;
  }
  return largest;
}

// The mask less the key, so that the largest of these stands for the smallest key.
template <typename U>
struct RestKey {
  U flip;
  U mask;
  template <typename Vector>
  SHERLORCH_INLINE void operator()(Vector& v) const noexcept {
    v = static_cast<Vector>(~(v ^ static_cast<Lane<U>>(flip)) & static_cast<Lane<U>>(mask));
  }
};

// True if all of `count` parts have the pattern `first`.
template <typename U, std::size_t kBytes>
SHERLORCH_INLINE bool same_loop(const unsigned char* p, std::size_t count, U first) noexcept {
  using Vector = typename VectorOf<U, kBytes>::type;
  const auto* const end = p + count * sizeof(U);
  const Vector expected = first - Vector{};
  Vector d0 = {}, d1 = {}, d2 = {}, d3 = {}, v0, v1, v2, v3;
  for (; static_cast<std::size_t>(end - p) >= 4 * kBytes; p += 4 * kBytes) {
    std::memcpy(&v0, p, kBytes);
    std::memcpy(&v1, p + kBytes, kBytes);
    std::memcpy(&v2, p + 2 * kBytes, kBytes);
    std::memcpy(&v3, p + 3 * kBytes, kBytes);
    d0 |= v0 ^ expected;
    d1 |= v1 ^ expected;
    d2 |= v2 ^ expected;
    d3 |= v3 ^ expected;
  }
  using Words = typename VectorOf<std::uint64_t, kBytes>::type;
  const Words differences = (Words)((d0 | d1) | (d2 | d3));
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < kBytes / 8; ++i) difference |= differences[i];
  for (; p < end; p += sizeof(U)) difference |= static_cast<U>(load_part<U>(p) ^ first);
  return difference == 0;
}

template <typename U, std::size_t kBytes>
SHERLORCH_INLINE Uniform uniform_loop(const void* data, std::size_t count, const Format& format) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  const U first = load_part<U>(p);
  const U last = load_part<U>(p + (count - 1) * sizeof(U));
  const U flip = static_cast<U>(format.flip);
  const U mask = static_cast<U>(format.mask);
  if (static_cast<U>((first ^ flip) & mask) < format.bad_from) return Uniform::kNo;
  // As a rule one op wrote one pattern; a row that it does not fill shows at its end.
  if (first == last && same_loop<U, kBytes>(p, count, first)) {
    if (format.has_infinity && first == format.pos_inf) return Uniform::kPosInf;
    if (format.has_infinity && first == format.neg_inf) return Uniform::kNegInf;
    return Uniform::kNan;
  }
  const U smallest_key = static_cast<U>(mask ^ max_loop<U, kBytes>(data, count, RestKey<U>{flip, mask}));
  return smallest_key > format.nan_above ? Uniform::kNan : Uniform::kNo;
}

}  // namespace sherlorch::scan
