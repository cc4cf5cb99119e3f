#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include "core/base/count_allocations.h"
#include "core/scan/kernels.h"
#include "core/scan/scan.h"
#include "core/scan/scan_oracle.h"

namespace sherlorch {
namespace {

void expect_scan(const unsigned char* data, std::size_t count, DType dtype) {
  const oracle::Answer answer = oracle::ask(data, {static_cast<std::int64_t>(count)}, {1}, dtype);
  const ScanResult result = scan_contiguous(data, count, dtype);
  ASSERT_EQ(result.nonfinite, answer.scan.nonfinite) << dtype_name(dtype) << " x " << count;
  ASSERT_EQ(result.largest, answer.scan.largest) << dtype_name(dtype) << " x " << count;
}

class ScanContiguousTest : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryDType, ScanContiguousTest, testing::ValuesIn(kAllDTypes),
                         [](const auto& p) { return std::string(dtype_name(p.param)); });

TEST_P(ScanContiguousTest, FiniteBuffersOfEveryLengthAndMisalignmentAgreeWithTheOracle) {
  std::mt19937_64 random(1);
  std::vector<unsigned char> buffer(200 * element_size(GetParam()) + 64);
  for (std::size_t count = 0; count <= 130; ++count) {
    for (std::size_t shift = 0; shift < 64; shift += count < 40 ? 1 : 7) {
      oracle::fill(buffer.data() + shift, count, GetParam(), 0.0, random);
      ASSERT_NO_FATAL_FAILURE(expect_scan(buffer.data() + shift, count, GetParam()));
    }
  }
}

TEST_P(ScanContiguousTest, OneBadElementIsFoundWhereverItStands) {
  std::mt19937_64 random(2);
  const DType dtype = GetParam();
  const auto item_size = element_size(dtype);
  // Exactly as long as the data, so that a sanitizer sees a read past the end.
  for (const std::size_t count : {1u, 2u, 3u, 5u, 8u, 17u, 33u, 64u, 100u, 130u, 517u}) {
    for (std::size_t at = 0; at < count; ++at) {
      std::vector<unsigned char> buffer(count * item_size);
      oracle::fill(buffer.data(), count, dtype, 0.0, random);
      ASSERT_FALSE(scan_contiguous(buffer.data(), count, dtype).nonfinite);
      const std::uint64_t bad = oracle::random_bits(random, dtype, true);
      const auto part_size = static_cast<std::size_t>(oracle::part_size(dtype));
      const std::size_t imaginary = is_complex(dtype) && random() % 2 ? part_size : 0;
      std::memcpy(buffer.data() + at * item_size + imaginary, &bad, part_size);
      const ScanResult result = scan_contiguous(buffer.data(), count, dtype);
      ASSERT_TRUE(result.nonfinite) << count << " at " << at << " bits " << bad;
      ASSERT_EQ(result.largest, std::numeric_limits<float>::infinity());
    }
  }
}

TEST_P(ScanContiguousTest, BadElementInTheLastBlockOfALargeBufferIsFound) {
  std::mt19937_64 random(3);
  const DType dtype = GetParam();
  const std::size_t count = (std::size_t{2} << 20) / element_size(dtype) + 37;
  std::vector<unsigned char> buffer(count * element_size(dtype), 0);
  EXPECT_FALSE(scan_contiguous(buffer.data(), count, dtype).nonfinite);
  for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
    oracle::fill(buffer.data() + at * element_size(dtype), 1, dtype, 1.0, random);
    EXPECT_TRUE(scan_contiguous(buffer.data(), count, dtype).nonfinite);
    oracle::fill(buffer.data() + at * element_size(dtype), 1, dtype, 0.0, random);
    EXPECT_NO_FATAL_FAILURE(expect_scan(buffer.data(), count, dtype));
  }
}

// Large buffers are read block by block, up to 32 MiB from the last one to the first.
TEST(ScanTest, OneBadElementIsFoundInEveryBlockWhateverTheirOrder) {
  const std::size_t block = (std::size_t{1} << 16) / sizeof(float);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t blocks : {16, 17, 512, 513, 600}) {
    for (const std::size_t more : {0, 1, 100}) {
      std::vector<float> buffer(blocks * block + more, 1.0f);
      const auto scan = [&] { return scan_contiguous(buffer.data(), buffer.size(), DType::kFloat32); };
      EXPECT_EQ(scan().largest, 1.0f);
      for (std::size_t at = 0; at < buffer.size(); at += 29 * block) {
        buffer[at] = nan;
        EXPECT_TRUE(scan().nonfinite) << blocks << " " << more << " " << at;
        buffer[at] = -7.0f;
        EXPECT_EQ(scan().largest, 7.0f) << blocks << " " << more << " " << at;
        buffer[at] = 1.0f;
      }
      buffer.back() = -3.0f;
      EXPECT_EQ(scan().largest, 3.0f) << blocks << " " << more;
    }
  }
}

TEST_P(ScanContiguousTest, EmptyBufferIsFiniteAndMayBeNull) {
  const ScanResult result = scan_contiguous(nullptr, 0, GetParam());
  EXPECT_FALSE(result.nonfinite);
  EXPECT_EQ(result.largest, 0.0f);
}

TEST_P(ScanContiguousTest, EveryShortPatternAgreesWithTheOracleInEveryKernel) {
  const DType dtype = GetParam();
  const int size = oracle::part_size(dtype);
  if (size > 2 || is_complex(dtype)) return;  // too many patterns
  for (std::uint32_t bits = 0; bits < (1u << (8 * size)); ++bits) {
    // Alone: the scalar loop. In a row of zeros: the vectors.
    unsigned char alone[2];
    std::memcpy(alone, &bits, 2);
    ASSERT_NO_FATAL_FAILURE(expect_scan(alone, 1, dtype)) << bits;
    unsigned char row[300] = {};
    std::memcpy(row + 101 * size, &bits, static_cast<std::size_t>(size));
    ASSERT_NO_FATAL_FAILURE(expect_scan(row, 300 / static_cast<std::size_t>(size), dtype)) << bits;
  }
}

TEST_P(ScanContiguousTest, AllocatesNothing) {
  std::vector<unsigned char> buffer(std::size_t{2} << 20, 0);
  const std::uint64_t before = allocations_of_this_thread();
  for (const std::size_t count : {std::size_t{3}, std::size_t{1000}, buffer.size() / element_size(GetParam())}) {
    scan_contiguous(buffer.data(), count, GetParam());
  }
  EXPECT_EQ(allocations_of_this_thread(), before);
}

TEST(ScanTest, OtherTypesAreNeverRead) {
  EXPECT_FALSE(scan_contiguous(nullptr, 1000, DType::kOther).nonfinite);
  EXPECT_EQ(scan_contiguous(nullptr, 1000, DType::kOther).largest, 0.0f);
}

TEST(ScanTest, NanPayloadsInfinitiesSubnormalsAndExtremesOfFloat32) {
  struct Row {
    std::uint32_t bits;
    bool nonfinite;
  };
  for (const Row& row :
       {Row{0x7fc00000, true}, Row{0xffc00000, true}, Row{0x7f800001, true}, Row{0xff800001, true},
        Row{0x7fffffff, true}, Row{0xffffffff, true}, Row{0x7f800000, true}, Row{0xff800000, true},
        Row{0x7f7fffff, false}, Row{0xff7fffff, false}, Row{0x00000001, false}, Row{0x80000000, false}}) {
    const std::vector<std::uint32_t> data(100, row.bits);
    const ScanResult result = scan_contiguous(data.data(), data.size(), DType::kFloat32);
    EXPECT_EQ(result.nonfinite, row.nonfinite) << std::hex << row.bits;
    if (!row.nonfinite) {
      EXPECT_EQ(result.largest, std::bit_cast<float>(row.bits & 0x7fffffff));
    }
  }
}

TEST(ScanTest, LargestOfFloat64SaturatesWithoutBecomingInfinite) {
  const std::vector<double> data = {1.0, -1e300, 2.0};
  const ScanResult result = scan_contiguous(data.data(), data.size(), DType::kFloat64);
  EXPECT_FALSE(result.nonfinite);
  EXPECT_EQ(result.largest, std::numeric_limits<float>::max());
}

TEST(ScanTest, LargestOfAComplexTensorIsItsLargestPart) {
  const std::vector<float> data = {3.0f, -4.0f, 1.0f, 2.0f};
  EXPECT_EQ(scan_contiguous(data.data(), 2, DType::kComplex64).largest, 4.0f);
}

// Those that this machine has.
std::vector<const scan::Kernels*> every_instruction_set() {
  std::vector<const scan::Kernels*> all = {&scan::portable_kernels()};
  for (const scan::Kernels* kernels :
       {scan::avx2_kernels(), scan::avx512_kernels(), scan::avx512_vbmi2_kernels(), scan::avx512_intel_kernels()}) {
    if (kernels != nullptr) all.push_back(kernels);
  }
  return all;
}

// All instruction sets that this machine has, against the oracle and one another.
TEST(KernelsTest, EveryInstructionSetGivesTheSameAnswers) {
  std::mt19937_64 random(4);
  for (const scan::Kernels* kernels : every_instruction_set()) {
    const scan::Kernels& portable = scan::portable_kernels();
    for (int round = 0; round < 300; ++round) {
      std::vector<unsigned char> data(64 * 8 * 2 + random() % 7);
      const auto dtype = kAllDTypes[static_cast<std::size_t>(round) % std::size(kAllDTypes)];
      const auto parts = (data.size()) / static_cast<std::size_t>(oracle::part_size(dtype));
      oracle::fill(data.data(), parts / static_cast<std::size_t>(oracle::parts_of(dtype)), dtype, 0.1, random);
      const std::size_t n = random() % (parts + 1);
      const void* p = data.data();
      EXPECT_EQ(kernels->max8(p, n, 0x7f), portable.max8(p, n, 0x7f));
      EXPECT_EQ(kernels->max8(p, n, 0xff), portable.max8(p, n, 0xff));
      EXPECT_EQ(kernels->max8_fnuz(p, n), portable.max8_fnuz(p, n));
      EXPECT_EQ(kernels->max16(p, n / 2), portable.max16(p, n / 2));
      EXPECT_EQ(kernels->max32(p, n / 4), portable.max32(p, n / 4));
      EXPECT_EQ(kernels->max64(p, n / 8), portable.max64(p, n / 8));
      const scan::Format format = scan::format_of(dtype);
      const auto classify_with = [&](const scan::Kernels& set) {
        std::vector<std::uint64_t> masks(7);
        const scan::ClassMasks to = {&masks[0], &masks[2], &masks[4]};
        const auto f = format.part_size == 1   ? set.classify8
                       : format.part_size == 2 ? set.classify16
                       : format.part_size == 4 ? set.classify32
                                               : set.classify64;
        masks[6] = f(p, 2, format, to);
        // The masks of classes that do not occur may hold anything.
        if ((masks[6] & scan::kNanClass) == 0) masks[0] = masks[1] = 0;
        if ((masks[6] & scan::kPosInfClass) == 0) masks[2] = masks[3] = 0;
        if ((masks[6] & scan::kNegInfClass) == 0) masks[4] = masks[5] = 0;
        return masks;
      };
      EXPECT_EQ(classify_with(*kernels), classify_with(portable)) << dtype_name(dtype);
    }
  }
}

// One value among many zeros, at each place of buffers that take each way through the loops, from every offset; of
// large ones at some places, the first and the last among them.
template <typename U>
void expect_found_everywhere(std::uint64_t (*largest)(const void*, std::size_t) noexcept,
                             std::initializer_list<U> patterns) {
  constexpr U kSign = static_cast<U>(~(static_cast<U>(~U{0}) >> 1));
  std::vector<unsigned char> memory(70'000);
  std::size_t shift = 0;
  for (const std::size_t bytes : {8u, 60u, 64u, 500u, 512u, 516u, 576u, 648u, 760u, 1016u, 1024u, 1100u, 1500u, 65'528u,
                                  65'536u, 65'600u, 66'040u, 69'000u}) {
    const std::size_t count = bytes / sizeof(U);
    const std::size_t step = bytes < 2000 ? 1 : 97;
    for (std::size_t i = 0; i < count + step - 1; i += step) {
      const std::size_t at = std::min(i, count - 1);
      shift = (shift + 13) % 64;
      unsigned char* const data = memory.data() + shift;
      for (const U pattern : patterns) {
        std::memcpy(data + at * sizeof(U), &pattern, sizeof(U));
        ASSERT_EQ(largest(data, count), static_cast<U>(pattern & ~kSign))
            << std::hex << pattern << std::dec << " at " << at << " of " << count << ", offset " << shift;
      }
      std::memset(data + at * sizeof(U), 0, sizeof(U));
    }
  }
}

TEST(KernelsTest, EveryKindOfNumberIsFoundAtEveryPlace) {
  for (const scan::Kernels* kernels : every_instruction_set()) {
    // Quiet and signalling NaN, infinities, the largest, a subnormal, and zero, of both signs.
    expect_found_everywhere<std::uint16_t>(
        kernels->max16, {0x7e00, 0xfc01, 0x7c01, 0xffff, 0x7c00, 0xfc00, 0x7bff, 0xfbff, 0x0001, 0x8001, 0x8000, 0});
    expect_found_everywhere<std::uint32_t>(
        kernels->max32, {0x7fc00000, 0xff800001, 0x7f800001, 0xffffffff, 0x7f800000, 0xff800000, 0x7f7fffff, 0xff7fffff,
                         0x00000001, 0x80000001, 0x80000000, 0});
    expect_found_everywhere<std::uint64_t>(
        kernels->max64, {0x7ff8ull << 48, 0xfff0000000000001, 0x7ff0000000000001, ~0ull, 0x7ffull << 52, 0xfffull << 52,
                         0x7fefffffffffffff, 0xffefffffffffffff, 1, (1ull << 63) + 1, 1ull << 63, 0});
  }
}

TEST(KernelsTest, TheFlagsOfFloatingPointExceptionsStayAsTheyAre) {
  std::vector<std::uint32_t> data(1000, 0x7f800001);             // signalling NaN
  for (std::size_t i = 0; i < data.size(); i += 3) data[i] = 1;  // a subnormal
  for (const scan::Kernels* kernels : every_instruction_set()) {
    std::feclearexcept(FE_ALL_EXCEPT);
    kernels->max32(data.data(), data.size());
    kernels->max64(data.data(), data.size() / 2);
    EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
  }
}

TEST(KernelsTest, ClassesOfManyWordsAreThoseOfEachPart) {
  std::mt19937_64 random(5);
  for (const scan::Kernels* kernels : every_instruction_set()) {
    for (const DType dtype : kAllDTypes) {
      const scan::Format format = scan::format_of(dtype);
      const auto classify = format.part_size == 1   ? kernels->classify8
                            : format.part_size == 2 ? kernels->classify16
                            : format.part_size == 4 ? kernels->classify32
                                                    : kernels->classify64;
      for (const double bad_share : {0.0, 0.002, 0.5, 1.0}) {
        for (const std::size_t words : {1u, 3u, 8u, 31u, 33u, 63u, 64u}) {
          std::vector<unsigned char> data(64 * words * format.part_size);
          oracle::fill(data.data(), 64 * words / format.parts, dtype, bad_share, random);
          std::vector<std::uint64_t> expected[3], masks[3];
          for (auto* side : {expected, masks}) std::fill_n(side, 3, std::vector<std::uint64_t>(words));
          scan::Classes present = 0;
          for (std::size_t i = 0; i < 64 * words; ++i) {
            std::uint64_t bits = 0;
            std::memcpy(&bits, data.data() + i * format.part_size, format.part_size);
            const double value = oracle::decode(bits, dtype);
            if (std::isfinite(value)) continue;
            const int which = std::isnan(value) ? 0 : value > 0 ? 1 : 2;
            expected[which][i / 64] |= std::uint64_t{1} << (i % 64);
            present |= static_cast<scan::Classes>(1 << which);
          }
          ASSERT_EQ(classify(data.data(), words, format, {masks[0].data(), masks[1].data(), masks[2].data()}), present)
              << dtype_name(dtype) << " x " << words;
          for (int which = 0; which < 3; ++which) {
            if ((present >> which & 1) == 0) continue;
            ASSERT_EQ(masks[which], expected[which]) << dtype_name(dtype);
          }
        }
      }
    }
  }
}

TEST(KernelsTest, EdgesAreWhereABitDiffersFromTheOneBefore) {
  std::mt19937_64 random(6);
  for (const scan::Kernels* kernels : every_instruction_set()) {
    for (const std::uint64_t density : {0u, 1u, 8u, 32u, 63u, 64u}) {  // ones in 64
      for (std::size_t words = 0; words <= scan::kMaxEdgeWords; ++words) {
        std::vector<std::uint64_t> bits(words);
        for (std::size_t i = 0; i < 64 * words; ++i) {
          if (random() % 64 < density) bits[i / 64] |= std::uint64_t{1} << (i % 64);
        }
        // The densest there can be.
        if (density == 32 && words % 2 == 0) std::fill(bits.begin(), bits.end(), 0x5555555555555555);
        for (const bool inside : {false, true}) {
          const std::int64_t first = 1 + static_cast<std::int64_t>(random() >> 2);
          std::vector<std::int64_t> expected;
          std::int64_t ones = 0;
          bool before = inside;
          for (std::size_t i = 0; i < 64 * words; ++i) {
            const bool now = bits[i / 64] >> (i % 64) & 1;
            if (now != before) expected.push_back(first + static_cast<std::int64_t>(i));
            ones += now;
            before = now;
          }
          // Exactly as long as it must be, so that a sanitizer sees a write past the end.
          std::vector<std::int64_t> edges(64 * words + scan::kEdgeSlack);
          const scan::EdgeCounts counts = kernels->list_edges(bits.data(), words, inside, first, edges.data());
          edges.resize(counts.edges);
          ASSERT_EQ(edges, expected) << density << " in 64, " << words << " words";
          ASSERT_EQ(counts.ones, ones);
        }
      }
    }
  }
}

TEST(KernelsTest, UniformStretchesAreRecognisedByEveryInstructionSet) {
  constexpr std::uint32_t kNan = 0x7fc00000, kOtherNan = 0xff800001, kInf = 0x7f800000, kNegInf = 0xff800000;
  const scan::Format& format = scan::format_of(DType::kFloat32);
  for (const scan::Kernels* kernels : every_instruction_set()) {
    for (std::size_t count = 1; count < 200; ++count) {
      std::vector<std::uint32_t> data(count, kNan);
      const auto ask = [&] { return kernels->uniform32(data.data(), count, format); };
      EXPECT_EQ(ask(), scan::Uniform::kNan);
      data[count / 2] = kOtherNan;
      EXPECT_EQ(ask(), scan::Uniform::kNan);
      if (count < 2) continue;
      for (const std::uint32_t stray : {kInf, kNegInf, 0u, 0x7f7fffffu}) {
        data[count / 2] = stray;
        EXPECT_EQ(ask(), scan::Uniform::kNo);
      }
      data.assign(count, kInf);
      EXPECT_EQ(ask(), scan::Uniform::kPosInf);
      data[count / 2] = kNegInf;
      EXPECT_EQ(ask(), scan::Uniform::kNo);
      data.assign(count, kNegInf);
      EXPECT_EQ(ask(), scan::Uniform::kNegInf);
      data.assign(count, 0);
      EXPECT_EQ(ask(), scan::Uniform::kNo);
    }
  }
}

}  // namespace
}  // namespace sherlorch
