#include "core/report/text_path.h"

#include <gtest/gtest.h>

#include "core/report/text_test_examples.h"

namespace sherlorch {
namespace {

// "1 2 (3) 6": kept steps by number, gaps by their count.
std::string shape_of(const std::vector<PathItem>& items) {
  std::string out;
  for (const PathItem& item : items) {
    if (!out.empty()) out += " ";
    out += item.step != nullptr ? std::to_string(item.step->seq) : "(" + gap_text(item) + ")";
  }
  return out;
}

std::vector<Step> chain(std::size_t n) {
  std::vector<Step> path(n);
  for (std::size_t i = 0; i < n; ++i) {
    path[i].seq = i + 1;
    path[i].op_name = "add";
  }
  return path;
}

TEST(TextPathTest, ShortPathIsKeptWhole) {
  EXPECT_EQ(shape_of(fold_path(chain(4), 4)), "1 2 3 4");
  EXPECT_EQ(shape_of(fold_path(chain(1), 2)), "1");
  EXPECT_EQ(shape_of(fold_path({}, 2)), "");
  EXPECT_EQ(fold_path(chain(500), 0).size(), 500u) << "0: no limit";
}

TEST(TextPathTest, LongPathIsFoldedInTheMiddle) {
  EXPECT_EQ(shape_of(fold_path(chain(10), 4)), "1 2 (6 more ops (add x6)) 9 10");
  EXPECT_EQ(shape_of(fold_path(chain(10), 1)), "1 (8 more ops (add x8)) 10") << "both ends always";
}

TEST(TextPathTest, TransitionsAreKept) {
  std::vector<Step> path = chain(100);
  path[49].transition = Transition::kInfToNan;
  path[20].op_name = "mul";
  EXPECT_EQ(shape_of(fold_path(path, 4)), "1 2 (47 more ops (add x46, mul)) 50 (49 more ops (add x49)) 100");
}

TEST(TextPathTest, WhereTheValueReachesAParameterIsKept) {
  std::vector<Step> path = chain(100);
  path[59].label = path[60].label = path[61].label = "gradient a.grad";
  EXPECT_EQ(shape_of(fold_path(path, 3)), "1 (58 more ops (add x58)) 60 (39 more ops (add x39)) 100");
}

TEST(TextPathTest, GapOfOneIsShownAsTheOpItself) { EXPECT_EQ(shape_of(fold_path(chain(5), 4)), "1 2 3 4 5"); }

TEST(TextPathTest, StepsFoldedByTheDiagnosisAreCounted) {
  std::vector<Step> path = chain(2);
  path[0].folded = 99985;
  EXPECT_EQ(shape_of(fold_path(path, 12)), "1 (99,985 more ops) 2");
  path = chain(6);
  path[2].folded = 7;
  EXPECT_EQ(shape_of(fold_path(path, 2)), "1 (11 more ops (add x4, others x7)) 6");
}

TEST(TextPathTest, RareNamesAreSummedUp) {
  std::vector<Step> path = chain(9);
  const char* names[] = {"a", "b", "c", "d", "e", "f", "b"};
  for (std::size_t i = 0; i < 7; ++i) path[i + 1].op_name = names[i];
  EXPECT_EQ(shape_of(fold_path(path, 2)), "1 (7 more ops (b x2, a, c, d, others x2)) 9");
}

}  // namespace
}  // namespace sherlorch
