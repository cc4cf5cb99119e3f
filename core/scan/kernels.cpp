#include "core/scan/kernels.h"

#include <atomic>

#include "core/scan/edge_loop.h"
#include "core/scan/max_loop.h"

namespace sherlorch::scan {
namespace {

template <typename U>
Classes classify_parts(const void* data, std::size_t words, const Format& format, ClassMasks masks) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t any_nan = 0;
  std::uint64_t any_pos_inf = 0;
  std::uint64_t any_neg_inf = 0;
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t nan = 0;
    std::uint64_t pos_inf = 0;
    std::uint64_t neg_inf = 0;
    for (unsigned i = 0; i < 64; ++i, p += sizeof(U)) {
      const std::uint64_t bits = load_part<U>(p);
      const std::uint64_t key = (bits ^ format.flip) & format.mask;
      nan |= std::uint64_t{key > format.nan_above} << i;
      pos_inf |= std::uint64_t{format.has_infinity && bits == format.pos_inf} << i;
      neg_inf |= std::uint64_t{format.has_infinity && bits == format.neg_inf} << i;
    }
    masks.nan[word] = nan;
    masks.pos_inf[word] = pos_inf;
    masks.neg_inf[word] = neg_inf;
    any_nan |= nan;
    any_pos_inf |= pos_inf;
    any_neg_inf |= neg_inf;
  }
  return classes_of(any_nan, any_pos_inf, any_neg_inf);
}

// What every machine of the target has: SSE2, NEON, or no vectors at all.
constexpr std::size_t kBytes = 16;

template <typename U>
Uniform uniform_parts(const void* p, std::size_t n, const Format& format) noexcept {
  return uniform_loop<U, kBytes>(p, n, format);
}

constexpr Kernels kPortable = {
    .max8 = [](const void* p, std::size_t n, std::uint8_t mask) noexcept -> std::uint64_t {
      return max_loop<std::uint8_t, kBytes>(p, n, MaskKey<std::uint8_t>{mask});
    },
    .max8_fnuz = [](const void* p, std::size_t n) noexcept -> std::uint64_t {
      return max_loop<std::uint8_t, kBytes>(p, n, FnuzKey{});
    },
    .max16 = [](const void* p, std::size_t n) noexcept -> std::uint64_t {
      return max_loop<std::uint16_t, kBytes>(p, n, kUnsigned<std::uint16_t>);
    },
    .max32 = [](const void* p, std::size_t n) noexcept -> std::uint64_t {
      return max_loop<std::uint32_t, kBytes>(p, n, kUnsigned<std::uint32_t>);
    },
    .max64 = [](const void* p, std::size_t n) noexcept -> std::uint64_t {
      return max_loop<std::uint64_t, kBytes>(p, n, kUnsigned<std::uint64_t>);
    },
    .classify8 = classify_parts<std::uint8_t>,
    .classify16 = classify_parts<std::uint16_t>,
    .classify32 = classify_parts<std::uint32_t>,
    .classify64 = classify_parts<std::uint64_t>,
    .uniform8 = uniform_parts<std::uint8_t>,
    .uniform16 = uniform_parts<std::uint16_t>,
    .uniform32 = uniform_parts<std::uint32_t>,
    .uniform64 = uniform_parts<std::uint64_t>,
    .list_edges = [](const std::uint64_t* bits, std::size_t words, bool inside, std::int64_t first,
                     std::int64_t* edges) noexcept { return edge_loop(bits, words, inside, first, edges); },
};

// Relaxed is enough: both values point to constants, and either of them is right.
constinit std::atomic<const Kernels*> current{&kPortable};

bool is_intel() noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();  // this may run before the runtime's own constructors
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

const Kernels* best_kernels() noexcept {
  if (const Kernels* best = is_intel() ? avx512_intel_kernels() : nullptr) return best;
  if (const Kernels* best = avx512_vbmi2_kernels()) return best;
  if (const Kernels* best = avx512_kernels()) return best;
  if (const Kernels* best = avx2_kernels()) return best;
  return &kPortable;
}

[[maybe_unused]] const bool kAskedTheMachine = [] {
  current.store(best_kernels(), std::memory_order_relaxed);
  return true;
}();

}  // namespace

const Kernels& kernels() noexcept { return *current.load(std::memory_order_relaxed); }

const Kernels& portable_kernels() noexcept { return kPortable; }

std::uint64_t max_bits(const void* data, std::size_t count, DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return kernels().max32(data, count);
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kComplex32:
      return kernels().max16(data, count);
    case DType::kFloat64:
    case DType::kComplex128:
      return kernels().max64(data, count);
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
      return kernels().max8(data, count, 0x7f);
    case DType::kFloat8E8M0FNU:
      return kernels().max8(data, count, 0xff);
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
      return kernels().max8_fnuz(data, count);
    case DType::kOther:
    case DType::kNumDTypes:
      break;
  }
  return 0;
}

Classes classify(const void* data, std::size_t words, const Format& format, ClassMasks masks) noexcept {
  switch (format.part_size) {
    case 1:
      return kernels().classify8(data, words, format, masks);
    case 2:
      return kernels().classify16(data, words, format, masks);
    case 4:
      return kernels().classify32(data, words, format, masks);
    default:
      return kernels().classify64(data, words, format, masks);
  }
}

Uniform uniform(const void* data, std::size_t count, const Format& format) noexcept {
  switch (format.part_size) {
    case 1:
      return kernels().uniform8(data, count, format);
    case 2:
      return kernels().uniform16(data, count, format);
    case 4:
      return kernels().uniform32(data, count, format);
    default:
      return kernels().uniform64(data, count, format);
  }
}

EdgeCounts list_edges(const std::uint64_t* bits, std::size_t words, bool inside, std::int64_t first,
                      std::int64_t* edges) noexcept {
  return kernels().list_edges(bits, words, inside, first, edges);
}

}  // namespace sherlorch::scan
