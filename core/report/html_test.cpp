#include "core/report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/report/page/csp_hash.h"
#include "core/report/page/page_data.h"
#include "core/report/text_test_examples.h"

namespace sherlorch {
namespace {

using examples::occurrences;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Runs = std::vector<Run>;  // inside a test, Run names a member of testing::Test

std::string data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"sherlorch-data\">";
  const std::size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(HtmlTest, PageIsOneFileThatLoadsNothing) {
  const std::string page = to_html(examples::forward_log());
  EXPECT_EQ(page.substr(0, 15), "<!DOCTYPE html>");
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  for (const char* loader : {"http://", "https://", " src=", "@import", "url(", "<link", "<iframe"}) {
    EXPECT_THAT(page, Not(HasSubstr(loader)));
  }
}

TEST(HtmlTest, EveryPlaceholderIsFilled) {
  const std::string page = to_html(examples::finite());
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(HtmlTest, VerdictStandsInThePageWithoutTheScript) {
  const std::string page = to_html(examples::forward_log());
  EXPECT_THAT(page, HasSubstr("<title>sherlorch: log(0.0) is -inf</title>"));
  EXPECT_LT(page.find("<h1>"), page.find("<noscript>"));
}

TEST(HtmlTest, NoDataCanLeaveItsScriptElement) {
  Diagnosis d = examples::forward_log();
  d.culprits[0].headline = "</script><script>alert(1)</script><!--<script>";
  d.culprits[0].step.module_path = "<img src=x onerror=alert(1)>";
  d.note = "{{script}}";
  const std::string page = to_html(d);
  EXPECT_EQ(occurrences(page, "<script"), 2u);
  EXPECT_EQ(occurrences(page, "</script>"), 2u);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(data_of(page), Not(HasSubstr("<")));
  EXPECT_THAT(data_of(page), HasSubstr("{{script}}"));
}

TEST(HtmlTest, QuotesLineSeparatorsAndBadBytesStayJson) {
  Diagnosis d = examples::forward_log();
  d.note = "a \"quoted\" \\ name \xE2\x80\xA8 \xE2\x80\xA9 \xff\n";
  const std::string data = data_of(to_html(d));
  EXPECT_THAT(data, HasSubstr("a \\\"quoted\\\" \\\\ name \\u2028 \\u2029 \xEF\xBF\xBD\\n"));
}

TEST(HtmlTest, NamesInTheTimelineAndTheTreeAreEscaped) {
  TimelineOp op;
  op.seq = 1;
  op.op_name = "</script>\"";
  op.module_path = "<b>";
  PageExtras extras;
  extras.modules = {{"net.<i>", "<u>"}};
  extras.file_labels = {{"/tmp/1.py", "In[<s>]"}};
  const std::string data = data_of(to_html(examples::finite(), {&op, 1}, extras));
  EXPECT_THAT(data, HasSubstr("\\u003c/script>\\\""));
  EXPECT_THAT(data, HasSubstr("net.\\u003ci>"));
  EXPECT_THAT(data, HasSubstr("\"file_labels\":{\"/tmp/1.py\":\"In[\\u003cs>]\"}"));
}

TEST(HtmlTest, NonFiniteMagnitudeIsNullInTheTimeline) {
  std::vector<TimelineOp> ops(2);
  ops[0].seq = 5;
  ops[0].largest = std::numeric_limits<float>::infinity();
  ops[1].seq = 7;
  ops[1].largest = 1.5f;
  ops[1].nonfinite = true;
  const std::string data = data_of(to_html(examples::finite(), ops));
  EXPECT_THAT(data, HasSubstr("\"seq\":[5,2]"));
  EXPECT_THAT(data, HasSubstr("\"largest\":[null,1.5]"));
  EXPECT_THAT(data, HasSubstr("\"bad\":[1]"));
}

TEST(HtmlTest, HundredThousandOpsStaySmall) {
  std::vector<TimelineOp> ops(100'000);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].seq = i + 1;
    ops[i].op_name = "op" + std::to_string(i % 50);
    ops[i].module_path = "model.layers." + std::to_string(i % 96);
    ops[i].location = "/home/ann/run/model.py:" + std::to_string(i % 300);
    ops[i].largest = static_cast<float>(i) * 1.37f;
  }
  EXPECT_LT(to_html(examples::long_path(100'000), ops).size(), 5'000'000u);
}

TEST(HtmlTest, LongPathKeepsItsEndsItsTransitionsAndTheNumberOfItsOps) {
  const Diagnosis d = examples::long_path(100'000);
  const std::string data = data_of(to_html(d));
  // Not as matchers: a failure would print megabytes.
  EXPECT_NE(data.find("\"transition\": \"inf_to_nan\""), std::string::npos);
  EXPECT_NE(data.find("\"seq\": 100000,"), std::string::npos);
  EXPECT_NE(data.find("\"folded\": 4"), std::string::npos);
}

TEST(HtmlTest, SourceLinesComeFromTheReaderOnlyWhenAsked) {
  PageExtras extras;
  extras.source = [](const std::string&, int line, std::string* text) {
    *text = "line <" + std::to_string(line) + ">";
    return true;
  };
  EXPECT_THAT(data_of(to_html(examples::forward_log(), {}, extras)), HasSubstr("\"25\":\"line \\u003c25>\""));
  extras.show_source = false;
  EXPECT_THAT(data_of(to_html(examples::forward_log(), {}, extras)), HasSubstr("\"sources\":{}"));
}

TEST(HtmlTest, SameDiagnosisGivesSamePage) {
  EXPECT_EQ(to_html(examples::backward_sqrt()), to_html(examples::backward_sqrt()));
}

TEST(HeatMapTest, SmallMatrixIsShownElementByElement) {
  const std::vector<std::int64_t> shape = {2, 3};
  const Runs bad = {{1, 4}};
  const HeatMap map = make_heat_map(7, shape, bad);
  EXPECT_EQ(map.seq, 7u);
  EXPECT_EQ(map.rows, 2);
  EXPECT_EQ(map.cols, 3);
  EXPECT_THAT(map.values, ElementsAre(0, 1, 1, 1, 0, 0));
}

TEST(HeatMapTest, LargeTensorIsDownsampledToShares) {
  const std::vector<std::int64_t> shape = {4, 32, 256};  // 128 rows, 2 a cell; 4 columns a cell
  const Runs bad = {{0, 4}, {512, 32768}};
  const HeatMap map = make_heat_map(1, shape, bad);
  EXPECT_EQ(map.rows, 64);
  EXPECT_EQ(map.cols, 64);
  EXPECT_EQ(map.row_groups, 4);
  EXPECT_FLOAT_EQ(map.values[0], 0.5f);
  EXPECT_FLOAT_EQ(map.values[1], 0.0f);
  for (std::size_t i = 64; i < map.values.size(); ++i) EXPECT_FLOAT_EQ(map.values[i], 1.0f);
}

TEST(HeatMapTest, SharesAddUpToTheCountWhateverTheSizes) {
  for (const std::int64_t rows : {1, 63, 64, 65, 100, 1000}) {
    for (const std::int64_t cols : {1, 64, 67, 129}) {
      const std::vector<std::int64_t> shape = {rows, cols};
      const Runs bad = {{0, rows * cols}};
      for (const float share : make_heat_map(1, shape, bad).values) EXPECT_FLOAT_EQ(share, 1.0f);
    }
  }
}

TEST(HeatMapTest, LongVectorIsFoldedAndStrayRunsAreCut) {
  const std::vector<std::int64_t> shape = {100};
  const Runs bad = {{-5, 1}, {99, 2000}};
  const HeatMap map = make_heat_map(1, shape, bad);
  EXPECT_EQ(map.rows, 2);
  EXPECT_EQ(map.cols, 64);
  EXPECT_FLOAT_EQ(map.values[0], 1.0f);
  EXPECT_FLOAT_EQ(map.values[64 + 35], 1.0f);
  EXPECT_FLOAT_EQ(map.values[64 + 36], 0.0f);
}

TEST(HeatMapTest, TensorWithoutElementsHasNoMap) {
  const std::vector<std::int64_t> shape = {0, 3};
  EXPECT_EQ(make_heat_map(1, shape, {}).rows, 0);
  EXPECT_EQ(make_heat_map(1, {}, Runs{{0, 1}}).values.size(), 1u);
}

TEST(CspHashTest, AgreesWithPublishedDigests) {
  EXPECT_EQ(csp_hash(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
  EXPECT_EQ(csp_hash("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
  EXPECT_EQ(csp_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "'sha256-JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE='");
}

}  // namespace
}  // namespace sherlorch
