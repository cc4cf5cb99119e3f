#include "core/report/chrome_trace.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/report/json_reader.h"

namespace sherlorch {
namespace {

void expect_valid_json(const std::string& text) {
  JsonReader json(text);
  EXPECT_NO_THROW({
    json.skip();
    json.end();
  }) << text;
}

std::vector<TimelineOp> three_ops() {
  return {{5, "relu", "m.py:3", "net", "", Phase::kForward, 3.5F, false, 5},
          {6, "log", "m.py:4", "net", "", Phase::kForward, 1.25F, true, 6},
          {7, "div", "", "", "pt_autograd_0", Phase::kBackward, 0, true, 7}};
}

TEST(ChromeTraceTest, OpsAreSlicesOnTheTrackOfTheirThread) {
  const std::string text = to_chrome_trace(three_ops());
  expect_valid_json(text);
  EXPECT_NE(text.find(R"({"name": "relu", "ph": "X", "pid": 1, "tid": 1, "ts": 5, "dur": 1, "cat": "forward", "args": )"
                      R"({"seq": 5, "location": "m.py:3", "module": "net", "largest": 3.5, "nonfinite": false}})"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find(R"("name": "div", "ph": "X", "pid": 1, "tid": 2, "ts": 7, "dur": 1, "cat": "backward,nonfinite")"),
      std::string::npos);
  EXPECT_NE(text.find(R"("tid": 1, "ts": 0, "args": {"name": "main thread"})"), std::string::npos);
  EXPECT_NE(text.find(R"("tid": 2, "ts": 0, "args": {"name": "pt_autograd_0"})"), std::string::npos);
}

TEST(ChromeTraceTest, FirstNonFiniteOpIsMarkedOnce) {
  const std::string text = to_chrome_trace(three_ops());
  const std::size_t at = text.find(R"("name": "first non-finite op: log", "ph": "i")");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(text.find("first non-finite op", at + 20), std::string::npos);
}

TEST(ChromeTraceTest, MetadataSaysThatThereIsNoClock) {
  EXPECT_NE(to_chrome_trace({}).find("\"clock\": \"none"), std::string::npos);
  expect_valid_json(to_chrome_trace({}));
}

TEST(ChromeTraceTest, OddNamesAndNumbersStayValidJson) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<TimelineOp> ops{{9, "\"</script>\n\xFF", "\\", "\x01", "\x1b", Phase::kOptimizer, inf, true,
                                     std::numeric_limits<double>::quiet_NaN()}};
  const std::string text = to_chrome_trace(ops);
  expect_valid_json(text);
  EXPECT_NE(text.find("\"ts\": 9, \"dur\""), std::string::npos) << "the ticket stands in for a missing start";
  EXPECT_NE(text.find("\"largest\": \"inf\""), std::string::npos);
}

TEST(ChromeTraceTest, LargeTicketsStayExact) {
  TimelineOp op = three_ops()[0];
  op.start_us = 1234567890123.0;
  EXPECT_NE(to_chrome_trace({&op, 1}).find("\"ts\": 1234567890123,"), std::string::npos);
}

}  // namespace
}  // namespace sherlorch
