// How near the scan comes to merely reading. Compare within one run, best with
//   --benchmark_enable_random_interleaving=true --benchmark_repetitions=9 --benchmark_report_aggregates_only=true
// and read the medians: the machines are noisy, an absolute time proves nothing. "read" is the loop of the scan with an
// exclusive or in place of the mask and the maximum.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/scan/scan.h"

namespace sherlorch {
namespace {

// The reading loop, in the widest vectors of the machine.
template <typename Vector>
__attribute__((always_inline)) inline std::uint64_t read_loop(const unsigned char* p, std::size_t size) {
  Vector a = {}, b = {}, c = {}, d = {}, v;
  for (std::size_t at = 0; at + 4 * sizeof(Vector) <= size; at += 4 * sizeof(Vector)) {
    std::memcpy(&v, p + at, sizeof v);
    a ^= v;
    std::memcpy(&v, p + at + sizeof v, sizeof v);
    b ^= v;
    std::memcpy(&v, p + at + 2 * sizeof v, sizeof v);
    c ^= v;
    std::memcpy(&v, p + at + 3 * sizeof v, sizeof v);
    d ^= v;
  }
  a ^= b ^ c ^ d;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sizeof(Vector) / 8; ++i) sum ^= a[i];
  return sum;
}

typedef std::uint64_t Vector16 __attribute__((vector_size(16)));
[[maybe_unused]] std::uint64_t read_baseline(const unsigned char* p, std::size_t size) {
  return read_loop<Vector16>(p, size);
}

#if defined(__x86_64__)
typedef std::uint64_t Vector32 __attribute__((vector_size(32)));
typedef std::uint64_t Vector64 __attribute__((vector_size(64)));
__attribute__((target("avx2"))) std::uint64_t read_avx2(const unsigned char* p, std::size_t size) {
  return read_loop<Vector32>(p, size);
}
__attribute__((target("avx512f"))) std::uint64_t read_avx512(const unsigned char* p, std::size_t size) {
  return read_loop<Vector64>(p, size);
}
#endif

std::uint64_t read_all(const unsigned char* p, std::size_t size) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return read_avx512(p, size);
  if (__builtin_cpu_supports("avx2")) return read_avx2(p, size);
#endif
  return read_baseline(p, size);
}

struct Free {
  void operator()(unsigned char* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<unsigned char[], Free>;

void put(unsigned char* buffer, std::size_t at, DType dtype, bool bad) {
  std::uint64_t bits = 0;
  const std::size_t size = element_size(dtype);
  switch (dtype) {
    case DType::kFloat16:
      bits = bad ? 0x7e00 : 0x3c00;
      break;
    case DType::kBFloat16:
      bits = bad ? 0x7fc0 : 0x3f80;
      break;
    case DType::kFloat32:
      bits = bad ? 0x7fc00000 : 0x3f800000;
      break;
    case DType::kFloat64:
      bits = bad ? 0x7ff8ull << 48 : 0x3ff0ull << 48;
      break;
    case DType::kComplex64:
      bits = bad ? 0x7fc000003f800000 : 0x3f8000003f800000;
      break;
    case DType::kFloat8E4M3FNUZ:
      bits = bad ? 0x80 : 0x40;
      break;
    default:
      bits = bad ? 0xff : 0x38;
      break;
  }
  std::memcpy(buffer + at * size, &bits, size);
}

// A torch allocation: aligned to 64 bytes.
Buffer make_buffer(std::size_t bytes, DType dtype, double bad_share) {
  Buffer buffer(static_cast<unsigned char*>(std::aligned_alloc(64, bytes)));
  std::mt19937 random(1);
  const auto threshold = static_cast<std::uint64_t>(bad_share * 4294967296.0);
  // One MiB at random, and then again and again: benchmarks begin anew with each repetition.
  const std::size_t pattern = std::min(bytes, std::size_t{1} << 20);
  for (std::size_t i = 0; i < pattern / element_size(dtype); ++i) put(buffer.get(), i, dtype, random() < threshold);
  for (std::size_t at = pattern; at < bytes; at += pattern) {
    std::memcpy(buffer.get() + at, buffer.get(), std::min(pattern, bytes - at));
  }
  return buffer;
}

void set_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void read(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Buffer buffer = make_buffer(bytes, DType::kFloat32, 0.0);
  for (auto _ : state) benchmark::DoNotOptimize(read_all(buffer.get(), bytes));
  set_bytes(state, bytes);
}

void scan(benchmark::State& state, DType dtype) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Buffer buffer = make_buffer(bytes, dtype, 0.0);
  for (auto _ : state) {
    benchmark::DoNotOptimize(scan_contiguous(buffer.get(), bytes / element_size(dtype), dtype).nonfinite);
  }
  set_bytes(state, bytes);
}

void census(benchmark::State& state, DType dtype, double bad_share) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Buffer buffer = make_buffer(bytes, dtype, bad_share);
  const std::int64_t sizes[] = {static_cast<std::int64_t>(bytes / element_size(dtype))};
  const std::int64_t strides[] = {1};
  for (auto _ : state) {
    benchmark::DoNotOptimize(take_census(buffer.get(), sizes, strides, dtype).nan);
  }
  set_bytes(state, bytes);
}

// A transposed view of a square float32 matrix.
template <typename F>
void transposed(benchmark::State& state, double bad_share, F&& f) {
  const std::int64_t side = state.range(0);
  const auto bytes = static_cast<std::size_t>(side * side) * sizeof(float);
  const Buffer buffer = make_buffer(bytes, DType::kFloat32, bad_share);
  const std::int64_t sizes[] = {side, side};
  const std::int64_t strides[] = {1, side};
  for (auto _ : state) benchmark::DoNotOptimize(f(buffer.get(), sizes, strides, DType::kFloat32));
  set_bytes(state, bytes);
}

// Every other element of each row, and half of each row.
void scan_strided_view(benchmark::State& state, std::int64_t inner_stride) {
  const std::int64_t side = state.range(0);
  const auto bytes = static_cast<std::size_t>(side * side) * sizeof(float);
  const Buffer buffer = make_buffer(bytes, DType::kFloat32, 0.0);
  const std::int64_t sizes[] = {side, side / 2 - 1};
  const std::int64_t strides[] = {side, inner_stride};
  for (auto _ : state) {
    benchmark::DoNotOptimize(scan_strided(buffer.get(), sizes, strides, DType::kFloat32).nonfinite);
  }
  set_bytes(state, bytes / 2);
}

void tiny(benchmark::State& state, DType dtype) {
  const auto count = static_cast<std::int64_t>(state.range(0));
  const Buffer buffer = make_buffer(4096, dtype, 0.0);
  const std::int64_t sizes[] = {count};
  const std::int64_t strides[] = {1};
  for (auto _ : state) {
    benchmark::DoNotOptimize(scan_strided(buffer.get(), sizes, strides, dtype));
  }
}

// An op that writes its output, without the scan and with it: what the scan costs depends on what the caches still
// hold. The sum of two of a dozen float32 buffers goes into a third, each time others.
void just_written(benchmark::State& state, bool scanned) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<Buffer> buffers;
  for (int i = 0; i < 12; ++i) buffers.push_back(make_buffer(bytes, DType::kFloat32, 0.0));
  const auto floats = [&](std::size_t i) { return reinterpret_cast<float*>(buffers[i % buffers.size()].get()); };
  std::size_t turn = 0;
  for (auto _ : state) {
    const float* const a = floats(turn + 11);
    const float* const b = floats(turn + 3);
    float* const sum = floats(turn++);
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) sum[i] = 0.5f * a[i] + 0.5f * b[i];
    benchmark::ClobberMemory();
    if (scanned) benchmark::DoNotOptimize(scan_contiguous(sum, bytes / sizeof(float), DType::kFloat32).nonfinite);
  }
  set_bytes(state, bytes);
}

void register_all() {
  const auto sized = [](benchmark::internal::Benchmark* b) {
    for (const std::int64_t kib : {32, 256, 1024, 8192, 65536, 262144}) b->Arg(kib << 10);
  };
  benchmark::RegisterBenchmark("read", read)->Apply(sized);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat64, DType::kComplex64,
                            DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ}) {
    const std::string name(dtype_name(dtype));
    benchmark::RegisterBenchmark(("scan/" + name).c_str(), scan, dtype)->Apply(sized);
    for (const auto& [label, share] : {std::pair{"clean/", 0.0}, {"1%_bad/", 0.01}, {"all_bad/", 1.0}}) {
      benchmark::RegisterBenchmark((std::string("census_") + label + name).c_str(), census, dtype, share)->Apply(sized);
    }
    benchmark::RegisterBenchmark(("tiny/" + name).c_str(), tiny, dtype)->Arg(1)->Arg(4)->Arg(64);
  }
  const auto scan_view = [](const auto&... args) { return scan_strided(args...).nonfinite; };
  const auto count_view = [](const auto&... args) { return take_census(args...).nan; };
  benchmark::RegisterBenchmark("transposed_scan", [=](benchmark::State& s) { transposed(s, 0.0, scan_view); })
      ->Arg(512)
      ->Arg(4096);
  benchmark::RegisterBenchmark("transposed_census_1%_bad",
                               [=](benchmark::State& s) { transposed(s, 0.01, count_view); })
      ->Arg(512)
      ->Arg(4096);
  for (const bool scanned : {false, true}) {
    benchmark::RegisterBenchmark(scanned ? "just_written_scanned" : "just_written", just_written, scanned)
        ->RangeMultiplier(2)
        ->Range(1 << 18, 1 << 23);
  }
  benchmark::RegisterBenchmark("scan_half_rows", scan_strided_view, 1)->Arg(512)->Arg(4096);
  benchmark::RegisterBenchmark("scan_every_other", scan_strided_view, 2)->Arg(512)->Arg(4096);
}

[[maybe_unused]] const bool registered = [] {
  register_all();
  return true;
}();

}  // namespace
}  // namespace sherlorch
