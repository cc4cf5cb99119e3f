#include "core/report/text_util.h"

#include <gtest/gtest.h>

#include "core/report/text_test_examples.h"

namespace sherlorch {
namespace {

TEST(TextUtilTest, Utf8IsDecodedStrictly) {
  EXPECT_EQ(valid_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(valid_utf8("\xC0\xAF"), replacement + replacement) << "overlong";
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), replacement + replacement + replacement) << "a surrogate";
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80").size(), 4 * replacement.size()) << "above U+10FFFF";
  EXPECT_EQ(valid_utf8("x\xE2\x82"), "x" + replacement + replacement) << "cut off";
  EXPECT_EQ(valid_utf8("\xFF"), replacement);
}

TEST(TextUtilTest, PrintableLeavesNothingThatMovesTheCursor) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\td\re\x7f"), "a\\x1b[2Jb\\nc\\td\\re\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"), "\\x9b") << "the one-byte form of ESC [";
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b"),
            "a\\u202eb")
      << "right-to-left override";
  EXPECT_EQ(printable("<b>&amp; \xC3\xA9</b>"), "<b>&amp; \xC3\xA9</b>");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
}

TEST(TextUtilTest, WrapBreaksAtWhiteSpaceAndNeverInsideAWord) {
  EXPECT_EQ(wrap("the  quick\nbrown fox", 10), (std::vector<std::string>{"the quick", "brown fox"}));
  EXPECT_EQ(wrap("a incomprehensibilities b", 5), (std::vector<std::string>{"a", "incomprehensibilities", "b"}));
  EXPECT_EQ(wrap("\xC3\xA9\xC3\xA9 \xC3\xA9\xC3\xA9", 5).size(), 1u) << "columns, not bytes";
  EXPECT_TRUE(wrap(" \n ", 10).empty());
}

TEST(TextUtilTest, NumbersAndShapes) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(18446744073709551615U), "18,446,744,073,709,551,615");
  EXPECT_EQ(shape_text(std::vector<std::int64_t>{}), "()");
  EXPECT_EQ(shape_text(std::vector<std::int64_t>{4}), "(4,)");
  EXPECT_EQ(shape_text(std::vector<std::int64_t>{4, 16}), "(4, 16)");
  EXPECT_EQ(index_text(std::vector<std::int64_t>{0, 3, 2}), "[0, 3, 2]");
}

TEST(TextUtilTest, KindsAreToldApartBySign) {
  FinitenessCounts counts;
  EXPECT_EQ(kinds_text(counts), "");
  counts.neg_inf = 1;
  EXPECT_EQ(kinds_text(counts), "-Inf");
  counts.pos_inf = 2;
  EXPECT_EQ(kinds_text(counts), "Inf & -Inf");
  counts.nan = 3;
  EXPECT_EQ(kinds_text(counts), "NaN & Inf & -Inf");
}

TEST(TextUtilTest, TransitionsAreMarkedInWords) {
  Step step;
  const auto mark = [&](Transition transition, std::int64_t nan, std::int64_t pos, std::int64_t neg) {
    step.transition = transition;
    step.counts.nan = nan;
    step.counts.pos_inf = pos;
    step.counts.neg_inf = neg;
    return transition_text(step);
  };
  EXPECT_EQ(mark(Transition::kNone, 1, 0, 0), "");
  EXPECT_EQ(mark(Transition::kFiniteToInf, 0, 0, 1), "-Inf made here");
  EXPECT_EQ(mark(Transition::kFiniteToInf, 0, 0, 0), "Inf made here");
  EXPECT_EQ(mark(Transition::kFiniteToNan, 1, 0, 0), "NaN made here");
  EXPECT_EQ(mark(Transition::kInfToNan, 1, 0, 0), "became NaN here");
  EXPECT_EQ(mark(Transition::kInfToNan, 1, 0, 2), "NaN & -Inf, became NaN here");
  EXPECT_EQ(mark(Transition::kInfToInf, 0, 0, 1), "became -Inf here");
  EXPECT_EQ(mark(Transition::kNanToInf, 0, 1, 0), "became Inf here");
}

TEST(TextUtilTest, FileNamesAreAsShortAsKeepsThemApart) {
  Diagnosis d;
  Culprit culprit;
  for (const char* file : {"/r/a/utils.py", "/r/b/utils.py", "/r/train.py", "<ipython-input-3-abc>", "utils.py"}) {
    culprit.stack.push_back({file, 5, ""});
  }
  d.culprits.push_back(culprit);
  const FileNames files(d);
  EXPECT_EQ(files.short_text({"/r/a/utils.py", 5, ""}), "a/utils.py:5");
  EXPECT_EQ(files.short_text({"/r/b/utils.py", 5, ""}), "b/utils.py:5");
  EXPECT_EQ(files.short_text({"utils.py", 5, ""}), "utils.py:5");
  EXPECT_EQ(files.short_text({"/r/train.py", 7, ""}), "train.py:7");
  EXPECT_EQ(files.short_text({"<ipython-input-3-abc>", 1, ""}), "<ipython-input-3-abc>:1");
  EXPECT_EQ(files.short_text({}), "");
}

TEST(TextUtilTest, LocationText) {
  EXPECT_EQ((SourceLocation{"a.py", 12, "f"}.text()), "a.py:12");
  EXPECT_EQ((SourceLocation{"a.py", 0, "f"}.text()), "a.py");
  EXPECT_EQ((SourceLocation{"", 12, "f"}.text()), "");
}

}  // namespace
}  // namespace sherlorch
