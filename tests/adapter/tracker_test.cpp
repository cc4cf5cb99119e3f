// The public C++ API on real ops.
#include "sherlorch/tracker.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "adapter/session.h"
#include "sherlorch/report.h"

namespace sherlorch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TrackerOptions stopped() {
  TrackerOptions options;
  options.start = false;
  return options;
}

std::vector<std::string> culprit_ops(const Diagnosis& diagnosis) {
  std::vector<std::string> names;
  for (const Culprit& culprit : diagnosis.culprits) names.push_back(culprit.step.op_name);
  return names;
}

TEST(TrackerTest, NamesTheOpThatMadeAnInfinity) {
  const Tracker tracker;
  const at::Tensor x = at::zeros({2, 3});
  const at::Tensor loss = at::log(x).mean();

  const Diagnosis diagnosis = tracker.diagnose(loss);

  ASSERT_THAT(culprit_ops(diagnosis), ElementsAre("log"));
  EXPECT_EQ(diagnosis.culprits[0].cause, Cause::kDivisionByZero);
  EXPECT_EQ(diagnosis.culprits[0].step.counts.neg_inf, 6);
  EXPECT_EQ(diagnosis.target.op_name, "mean");
}

TEST(TrackerTest, NoteSaysThatOpsCalledFromCppHaveNoLine) {
  const Tracker tracker;
  const Diagnosis diagnosis = tracker.diagnose(at::log(at::zeros({1})));

  EXPECT_FALSE(diagnosis.culprits.at(0).step.location.known());
  EXPECT_THAT(to_text(diagnosis), HasSubstr("called from C++"));
}

TEST(TrackerTest, FiniteTensorHasNoCulpritAndNoNote) {
  const Tracker tracker;
  const Diagnosis diagnosis = tracker.diagnose(at::ones({2}) + 1);

  EXPECT_TRUE(diagnosis.ok());
  EXPECT_EQ(diagnosis.note, "");
}

TEST(TrackerTest, TwoAtOnceSeeTheirOwnOpsEach) {
  Tracker outer;
  const at::Tensor bad = at::log(at::zeros({4}));
  const std::uint64_t before = outer.op_count();
  const Tracker inner;
  const at::Tensor target = at::add(bad, 1);

  EXPECT_EQ(inner.op_count(), 1u);
  EXPECT_EQ(outer.op_count(), before + 1);
  EXPECT_THAT(culprit_ops(outer.diagnose(target)), ElementsAre("log"));
  // The inner one never saw log: for it the value was bad when add read it.
  const Diagnosis diagnosis = inner.diagnose(target);
  ASSERT_EQ(diagnosis.culprits.size(), 1u);
  EXPECT_EQ(diagnosis.culprits[0].step.op_name, "add");
  EXPECT_EQ(diagnosis.culprits[0].origin, Origin::kInput);
}

TEST(TrackerTest, OneThatStopsLeavesTheOtherRecording) {
  const Tracker outer;
  {
    const Tracker inner;
  }
  EXPECT_THAT(culprit_ops(outer.diagnose(at::log(at::zeros({4})))), ElementsAre("log"));
}

TEST(TrackerTest, NestedStartRecordsUntilTheLastStop) {
  Tracker tracker(stopped());
  EXPECT_FALSE(tracker.recording());
  tracker.start();
  tracker.start();
  tracker.stop();
  EXPECT_TRUE(tracker.recording());
  const at::Tensor seen = at::log(at::zeros({4}));
  tracker.stop();
  EXPECT_FALSE(tracker.recording());
  const at::Tensor unseen = at::log(at::zeros({4}));

  EXPECT_THAT(culprit_ops(tracker.diagnose(seen)), ElementsAre("log"));
  EXPECT_THROW((void)tracker.diagnose(unseen), UntrackedTensorError);

  tracker.stop();  // one too many
  tracker.start();
  EXPECT_TRUE(tracker.recording());
}

TEST(TrackerTest, DisabledRecordsNothingUntilEnabled) {
  Tracker tracker;
  tracker.disable();
  const at::Tensor unseen = at::log(at::zeros({4}));
  EXPECT_EQ(tracker.op_count(), 0u);
  EXPECT_FALSE(tracker.recording());
  tracker.enable();
  const at::Tensor seen = at::log(at::zeros({4}));

  EXPECT_THROW((void)tracker.diagnose(unseen), UntrackedTensorError);
  EXPECT_THAT(culprit_ops(tracker.diagnose(seen)), ElementsAre("log"));
}

TEST(TrackerTest, ResetForgetsAndGoesOn) {
  Tracker tracker;
  const at::Tensor before = at::log(at::zeros({4}));
  tracker.reset();
  EXPECT_EQ(tracker.op_count(), 0u);
  const at::Tensor after = at::log(at::zeros({4}));

  EXPECT_THROW((void)tracker.diagnose(before), UntrackedTensorError);
  EXPECT_THAT(culprit_ops(tracker.diagnose(after)), ElementsAre("log"));
}

TEST(TrackerTest, MovedTrackerGoesOnRecording) {
  Tracker first;
  const at::Tensor before = at::log(at::zeros({4}));
  Tracker second = std::move(first);
  const at::Tensor after = at::log(at::zeros({4}));

  EXPECT_THAT(culprit_ops(second.diagnose(before)), ElementsAre("log"));
  EXPECT_THAT(culprit_ops(second.diagnose(after)), ElementsAre("log"));
  second = Tracker(stopped());
  EXPECT_FALSE(second.recording());
}

TEST(TrackerTest, OpsOfAnotherThreadCarryItsName) {
  const Tracker tracker;
  at::Tensor made;
  std::thread worker([&] {
    pthread_setname_np(pthread_self(), "loader");
    made = at::log(at::zeros({4}));
  });
  worker.join();
  const at::Tensor target = made.sum();

  const Diagnosis diagnosis = tracker.diagnose(target);

  ASSERT_THAT(culprit_ops(diagnosis), ElementsAre("log"));
  EXPECT_THAT(diagnosis.culprits[0].step.thread_name, HasSubstr("loader"));
  EXPECT_EQ(diagnosis.target.thread_name, "");
}

TEST(TrackerTest, InPlaceWriteThroughAViewIsFoundOnTheBase) {
  const Tracker tracker;
  const at::Tensor base = at::ones({4, 4});
  base.select(0, 2).sub_(1).log_();

  const Diagnosis diagnosis = tracker.diagnose(base);

  ASSERT_THAT(culprit_ops(diagnosis), ElementsAre("log_"));
  EXPECT_EQ(diagnosis.target.counts.neg_inf, 4);
  EXPECT_THAT(diagnosis.target.counts.first_neg_inf, ElementsAre(2, 0));
  EXPECT_TRUE(tracker.diagnose(base.select(0, 1)).ok());
}

TEST(TrackerTest, GradientIsBlamedOnTheBackwardOp) {
  const Tracker tracker;
  const at::Tensor weight = at::zeros({3}).requires_grad_();
  const at::Tensor loss = weight.sqrt().sum();
  loss.backward();

  EXPECT_TRUE(tracker.diagnose(loss).ok());
  const Diagnosis diagnosis = tracker.diagnose(weight.grad());

  ASSERT_EQ(diagnosis.culprits.size(), 1u);
  EXPECT_EQ(diagnosis.culprits[0].step.phase, Phase::kBackward);
  EXPECT_EQ(diagnosis.culprits[0].step.autograd_node, "SqrtBackward0");
}

TEST(TrackerTest, NoTensorIsKeptAliveOrTouched) {
  bool freed = false;
  float values[4] = {0, 0, 0, 0};
  {
    Tracker tracker;
    at::Tensor x = at::from_blob(values, {4}, [&](void*) { freed = true; });
    at::Tensor bad = at::log(x);
    const at::Tensor y = bad + 1;
    tracker.name(x, "x");
    (void)tracker.diagnose(y);

    EXPECT_EQ(x.use_count(), 1u);
    EXPECT_EQ(bad.use_count(), 1u);
    EXPECT_EQ(y.use_count(), 1u);
    EXPECT_EQ(x.storage().use_count(), 1u);
    EXPECT_EQ(bad.storage().use_count(), 1u);
    EXPECT_EQ(x._version(), 0);
    x.reset();
    EXPECT_TRUE(freed);
    // What is known of a tensor that is gone is enough to tell of.
    bad.reset();
    EXPECT_THAT(culprit_ops(tracker.diagnose(y)), ElementsAre("log"));
  }
}

// An exception inside the recorder: the op's result is what it is without the tracker, and the report counts it.
TEST(TrackerTest, FailureOfTheRecorderIsCountedAndDisturbsNothing) {
  const at::Tensor expected = at::log(at::zeros({4})) * 2;
  Tracker tracker;
  Session::get().recorder().inject_failures(1);
  const at::Tensor lost = at::log(at::zeros({4}));
  const at::Tensor result = lost * 2;
  Session::get().recorder().inject_failures(0);

  EXPECT_TRUE(result.equal(expected));
  const Diagnosis diagnosis = tracker.diagnose(result);
  ASSERT_EQ(diagnosis.blind_spots.size(), 1u);
  EXPECT_EQ(diagnosis.blind_spots[0].kind, "recorder_error");
  EXPECT_EQ(diagnosis.blind_spots[0].count, 1u);
  EXPECT_THAT(to_text(diagnosis), HasSubstr("an error inside sherlorch itself"));
  // The next op is recorded as ever.
  EXPECT_THAT(culprit_ops(tracker.diagnose(at::log(at::zeros({4})))), ElementsAre("log"));
  // And a tracker that begins later had no such failure.
  EXPECT_THAT(Tracker().diagnose(at::ones({1}) + 1).blind_spots, IsEmpty());
}

TEST(TrackerTest, NamedParameterIsNamedAsTheOrigin) {
  const at::Tensor weight = at::full({2, 2}, kNan);
  Tracker tracker;
  tracker.name(weight, "net.fc.weight");
  tracker.name({{at::full({2}, kNan), "gone", false}});
  const at::Tensor y = at::ones({2, 2}).mm(weight);

  const Diagnosis diagnosis = tracker.diagnose(y);

  ASSERT_EQ(diagnosis.culprits.size(), 1u);
  EXPECT_EQ(diagnosis.culprits[0].origin, Origin::kParameter);
  EXPECT_EQ(diagnosis.culprits[0].origin_label, "parameter net.fc.weight");
}

TEST(TrackerTest, LastNameOfAMemoryCounts) {
  const at::Tensor mean = at::full({2}, kNan);
  Tracker tracker;
  tracker.name(mean, "old");
  tracker.name(mean, "net.bn.running_mean", true);
  EXPECT_EQ(tracker.diagnose(mean + 1).culprits.at(0).origin_label, "buffer net.bn.running_mean");
}

// As torch::nn::Module is seen by watch().
struct Entry {
  std::string name;
  at::Tensor tensor;
  const std::string& key() const { return name; }
  const at::Tensor& value() const { return tensor; }
};
struct FakeModule {
  std::vector<Entry> named_parameters() const { return {{"weight", weight}}; }
  std::vector<Entry> named_buffers() const { return {{"running_mean", mean}}; }
  at::Tensor weight = at::full({2}, kNan);
  at::Tensor mean = at::full({2}, kNan);
};

TEST(TrackerTest, WatchNamesParametersAndBuffersOfAModuleOrItsHolder) {
  const FakeModule module;
  const auto holder = std::make_shared<FakeModule>();
  Tracker tracker;
  tracker.watch(module);
  tracker.watch(holder, "net");

  EXPECT_EQ(tracker.diagnose(module.weight + 1).culprits.at(0).origin_label, "parameter model.weight");
  EXPECT_EQ(tracker.diagnose(module.mean + 1).culprits.at(0).origin_label, "buffer model.running_mean");
  EXPECT_EQ(tracker.diagnose(holder->weight + 1).culprits.at(0).origin_label, "parameter net.weight");
}

TEST(TrackerTest, OnlyTheTypesAskedForAreAnsweredAbout) {
  TrackerOptions options;
  options.dtypes = {at::kHalf, at::kDouble};
  options.scan_views = true;
  const Tracker tracker(options);
  const at::Tensor single = at::log(at::zeros({2}));
  const at::Tensor twice = at::log(at::zeros({2}, at::kDouble));
  EXPECT_TRUE(tracker.diagnose(single).ok());
  EXPECT_FALSE(tracker.diagnose(twice).ok());
}

TEST(TrackerTest, ANameIsNotThatOfWhatAnOlderOpReadAtTheSameAddress) {
  Tracker tracker;
  StorageKey first = 0;
  at::Tensor bad;
  {
    const at::Tensor zero = at::zeros({2});
    first = reinterpret_cast<StorageKey>(zero.storage().unsafeGetStorageImpl());
    bad = at::log(zero);
  }
  // The address is taken again soon; where it is not, there is nothing to tell apart.
  for (int i = 0; i < 64; ++i) {
    const at::Tensor parameter = at::ones({2});
    if (reinterpret_cast<StorageKey>(parameter.storage().unsafeGetStorageImpl()) != first) continue;
    tracker.name(parameter, "net.weight");
    EXPECT_THAT(to_text(tracker.diagnose(bad)), Not(HasSubstr("net.weight")));
    return;
  }
  GTEST_SKIP() << "the allocator gave another address each time";
}

TEST(TrackerTest, QuestionAboutOneElementBlamesWhatMadeThatOne) {
  const Tracker tracker;
  const at::Tensor x = at::ones({2, 2});
  const at::Tensor y = x.clone();
  y.select(0, 0).sub_(1).log_();
  y.select(0, 1).fill_(-1).sqrt_();

  EXPECT_THAT(culprit_ops(tracker.diagnose(y, {0, 1})), ElementsAre("log_"));
  EXPECT_THAT(culprit_ops(tracker.diagnose(y, {-1, -1})), ElementsAre("sqrt_"));
  EXPECT_TRUE(tracker.diagnose(x, {1, 1}).ok());
  EXPECT_THAT(culprit_ops(tracker.diagnose(y.sum(), {})), Not(IsEmpty()));
  EXPECT_THROW((void)tracker.diagnose(y, {0}), IndexError);
  EXPECT_THROW((void)tracker.diagnose(y, {0, 2}), IndexError);
}

TEST(TrackerTest, TensorThatWasNeverSeenIsAnErrorThatSaysWhatToDo) {
  const at::Tensor stranger = at::zeros({3});
  const Tracker tracker;
  try {
    (void)tracker.diagnose(stranger);
    FAIL() << "no exception";
  } catch (const UntrackedTensorError& error) {
    EXPECT_THAT(error.what(), HasSubstr("trace"));
  }
  EXPECT_THROW((void)tracker.diagnose(at::Tensor()), UntrackedTensorError);
  EXPECT_THROW((void)tracker.diagnose(at::empty({2}, at::TensorOptions().device(at::kMeta))), UntrackedTensorError);
}

TEST(TrackerTest, HasIssueLooksAtAnyTensor) {
  const Tracker tracker(stopped());
  EXPECT_FALSE(tracker.has_issue(at::ones({3})));
  EXPECT_TRUE(tracker.has_issue(at::full({3}, kNan)));
  EXPECT_TRUE(tracker.has_issue(at::full({3, 3}, HUGE_VAL).t()));
  EXPECT_FALSE(tracker.has_issue(at::Tensor()));
  EXPECT_FALSE(tracker.has_issue(at::empty({2}, at::TensorOptions().device(at::kMeta))));
}

TEST(TrackerTest, DiagnosisOutlivesTheTracker) {
  auto tracker = std::make_unique<Tracker>();
  const Diagnosis diagnosis = tracker->diagnose(at::log(at::zeros({4})));
  tracker.reset();

  EXPECT_THAT(verdict(diagnosis), HasSubstr("log made -Inf"));
  EXPECT_THAT(culprit_ops(from_json(to_json(diagnosis))), ElementsAre("log"));
  EXPECT_THAT(to_dot(diagnosis), HasSubstr("digraph"));
  EXPECT_THAT(to_html(diagnosis), HasSubstr("<html"));
}

}  // namespace
}  // namespace sherlorch
