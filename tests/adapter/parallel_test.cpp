#include "adapter/parallel.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "adapter/tensor_facts.h"

namespace sherlorch {
namespace {

// The calls of run_in_parallel: which parts, on which threads.
struct Calls {
  std::mutex mutex;
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  std::set<std::thread::id> threads;

  explicit Calls(std::int64_t grain) {
    run_in_parallel(grain, [&](std::int64_t begin, std::int64_t end) {
      std::lock_guard lock(mutex);
      parts.emplace_back(begin, end);
      threads.insert(std::this_thread::get_id());
    });
    std::sort(parts.begin(), parts.end());
  }
};

class ParallelTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(4); }
  void TearDown() override { at::set_num_threads(1); }
};

TEST_F(ParallelTest, PartsCoverTheRangeAndRunOnTorchsThreads) {
  const Calls calls(1);
  EXPECT_EQ(calls.threads.size(), 4u);
  std::int64_t next = 0;
  for (const auto& [begin, end] : calls.parts) {
    EXPECT_EQ(begin, next);
    next = end;
  }
  EXPECT_EQ(next, kParts);
}

TEST_F(ParallelTest, AGrainLimitsTheThreads) {
  EXPECT_EQ(Calls(kParts / 2).threads.size(), 2u);
  EXPECT_EQ(Calls(2 * kParts).threads.size(), 1u);
}

TEST_F(ParallelTest, OneThreadWhereTorchMayUseNoMore) {
  at::set_num_threads(1);
  EXPECT_EQ(Calls(1).threads.size(), 1u);
}

TEST_F(ParallelTest, OneThreadInsideAParallelRegion) {
  std::mutex mutex;
  std::set<std::size_t> threads;
  run_in_parallel(1, [&](std::int64_t, std::int64_t) {
    const std::size_t inner = Calls(1).threads.size();
    std::lock_guard lock(mutex);
    threads.insert(inner);
  });
  EXPECT_EQ(threads, std::set<std::size_t>{1});
}

TEST_F(ParallelTest, ALargeScanFindsABadValueWhereverItIs) {
  at::Tensor x = at::ones({(1 << 20) + 3});
  const auto scan = [&] {
    LoneTensor lone;
    look_at(x, &lone);
    return scan_large(lone.tensor);
  };
  EXPECT_FALSE(scan().nonfinite);
  EXPECT_EQ(scan().largest, 1.0f);
  auto* data = x.mutable_data_ptr<float>();
  for (std::int64_t at = 0; at < x.numel(); at += 9973) {
    data[at] = 3.0f;
    EXPECT_EQ(scan().largest, 3.0f) << at;
    data[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(scan().nonfinite) << at;
    data[at] = 1.0f;
  }
  data[x.numel() - 1] = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(scan().nonfinite);
}

}  // namespace
}  // namespace sherlorch
