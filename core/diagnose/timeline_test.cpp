#include "core/diagnose/timeline.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sherlorch {
namespace {

class TimelineTest : public testing::Test {
 protected:
  TimelineTest() {
    view_.visible = [](OpSeq) { return true; };
    view_.names_modules = [](OpSeq) { return true; };
    view_.thread_text = [](ThreadId thread) { return thread == 0 ? std::string() : "worker"; };
    forward_site_ = graph_.tables.sites.add({"net.py", "forward", 12});
    backward_site_ = graph_.tables.sites.add({"train.py", "main", 40});
    module_ = graph_.tables.modules.id_of(&graph_);
    graph_.tables.modules.set_name(module_, "net.fc", "Linear");
  }

  OpSeq write(FlightHeader header, TensorRole role, DType dtype = DType::kFloat32) {
    header.seq = graph_.flight.take_ticket(1);
    FlightTensor tensor;
    tensor.role = role;
    tensor.dtype = dtype;
    graph_.flight.write(header, 1, [&](std::size_t) { return tensor; });
    return header.seq;
  }

  Graph graph_{StorageGuardOps{}, 64};
  View view_;
  SiteId forward_site_ = 0, backward_site_ = 0;
  ModuleId module_ = 0;
};

TEST_F(TimelineTest, OnlyWhatWasScannedHasAMagnitude) {
  FlightHeader header;
  header.largest = 2.5f;
  write(header, TensorRole::kWrite);
  write(header, TensorRole::kAlias);
  write(header, TensorRole::kWrite, DType::kOther);
  header.nonfinite = true;
  write(header, TensorRole::kWrite);
  const Timeline found = timeline(graph_, view_, 10);
  ASSERT_EQ(found.steps.size(), 4u);
  EXPECT_EQ(found.steps[0].largest, 2.5f);
  EXPECT_TRUE(std::isnan(found.steps[1].largest)) << "a view";
  EXPECT_TRUE(std::isnan(found.steps[2].largest)) << "integers";
  EXPECT_TRUE(std::isnan(found.steps[3].largest));
  EXPECT_TRUE(found.steps[3].nonfinite);
}

TEST_F(TimelineTest, ABackwardOpStandsAtTheLineOfItsForwardOp) {
  FlightHeader forward;
  forward.site = forward_site_;
  forward.module = module_;
  forward.thread = 1;
  forward.sequence_end = 101;
  forward.nodes = 1;
  write(forward, TensorRole::kWrite);
  FlightHeader backward;
  backward.site = backward_site_;
  backward.phase = Phase::kBackward;
  backward.node_thread = 1;
  backward.node_sequence = 100;
  write(backward, TensorRole::kWrite);
  backward.node_sequence = 77;  // of an op that the recorder no longer holds
  write(backward, TensorRole::kWrite);
  const Timeline found = timeline(graph_, view_, 10);
  ASSERT_EQ(found.steps.size(), 3u);
  EXPECT_EQ(found.places.at(found.steps[1].site), "net.py:12");
  EXPECT_EQ(found.modules.at(found.steps[1].module), "net.fc");
  EXPECT_EQ(found.places.at(found.steps[2].site), "train.py:40");
  EXPECT_EQ(found.threads.at(found.steps[0].thread), "worker");
}

TEST_F(TimelineTest, TheNewestAreKeptAndHiddenModulesStayHidden) {
  view_.names_modules = [](OpSeq) { return false; };
  FlightHeader header;
  header.module = module_;
  write(header, TensorRole::kWrite);
  const OpSeq last = write(header, TensorRole::kWrite);
  const Timeline found = timeline(graph_, view_, 1);
  ASSERT_EQ(found.steps.size(), 1u);
  EXPECT_EQ(found.steps[0].seq, last);
  EXPECT_EQ(found.modules.at(found.steps[0].module), "");
  EXPECT_TRUE(timeline(graph_, view_, 0).steps.empty());
}

}  // namespace
}  // namespace sherlorch
