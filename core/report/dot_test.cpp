#include "sherlorch/report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/report/text_test_examples.h"

namespace sherlorch {
namespace {

using examples::occurrences;

TEST(DotTest, PathBecomesNodesAndEdges) {
  const std::string dot = to_dot(examples::forward_log());
  EXPECT_NE(dot.find("  op10 [label=\"[10] log\\n(4, 4, 16, 16) torch.float32\\nmodel.layer1\\n"
                     "find_nan_in_transformer.py:25\\n-Inf: 2,051 of 4,096\", tooltip=\"[10] log  shape="),
            std::string::npos)
      << dot;
  EXPECT_NE(dot.find("<-- -Inf\", fillcolor=\"#d62728\", fontcolor=white];"), std::string::npos)
      << "the culprit is filled";
  EXPECT_NE(dot.find("  op10 -> op11 [label=\" -Inf \"];"), std::string::npos);
  EXPECT_NE(dot.find("  op13 -> op14 [label=\" -Inf to NaN \", color=\"#d62728\""), std::string::npos);
  EXPECT_EQ(occurrences(dot, "peripheries=2"), 1u) << "the target";
}

TEST(DotTest, SharedNodesAndEdgesComeOnce) {
  Diagnosis d = examples::backward_sqrt();
  d.culprits.push_back(d.culprits[0]);
  const std::string dot = to_dot(d);
  EXPECT_EQ(occurrences(dot, "  op97 ["), 1u);
  EXPECT_EQ(occurrences(dot, "  op88 -> op91 ["), 1u);
  EXPECT_EQ(occurrences(dot, " -> op97 ["), 2u) << "from both paths";
}

TEST(DotTest, OriginIsANoteBeforeItsFirstReader) {
  const std::string dot = to_dot(examples::parameter_origin());
  EXPECT_NE(dot.find("label=\"parameter net.4.running_mean (buffer)\"];"), std::string::npos);
  EXPECT_NE(dot.find("  origin3 -> op3 [label=\" NaN \"];"), std::string::npos);
}

TEST(DotTest, NamesAreEscaped) {
  Diagnosis d = examples::forward_log();
  d.culprits[0].path[1].module_path = "a\"];evil[\\N<b>&lt;\n\x1b\xFF";
  const std::string dot = to_dot(d);
  EXPECT_NE(dot.find("a\\\"];evil[\\\\N<b>&amp;lt;\\\\n\\\\x1b\xEF\xBF\xBD\\n"), std::string::npos) << dot;
  EXPECT_EQ(dot.find('\x1b'), std::string::npos);
}

TEST(DotTest, LongPathIsFolded) {
  const std::string dot = to_dot(examples::long_path(100'000));
  EXPECT_LT(dot.size(), 40'000u);
  EXPECT_EQ(occurrences(dot, "shape=plaintext"), 2u);
}

TEST(DotTest, FiniteTargetIsOneNode) {
  const std::string dot = to_dot(examples::finite());
  EXPECT_EQ(occurrences(dot, "  op"), 1u);
  EXPECT_EQ(occurrences(dot, "->"), 0u);
}

}  // namespace
}  // namespace sherlorch
