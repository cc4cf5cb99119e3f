#include <gtest/gtest.h>

#include <string>

#include "core/report/text_test_examples.h"
#include "sherlorch/report.h"

namespace sherlorch {
namespace {

// Without blanks: what is asked is the content.
bool has(std::string text, std::string part) {
  std::erase(text, ' ');
  std::erase(part, ' ');
  return text.find(part) != std::string::npos;
}

TEST(ProvTest, OpsAreActivitiesAndTheirOutputsEntities) {
  const std::string prov = to_prov_json(examples::forward_log());
  EXPECT_TRUE(has(prov, R"("sherlorch:op10": {"prov:label": "log", "prov:type": "sherlorch:Op")")) << prov;
  EXPECT_TRUE(has(prov, R"("sherlorch:role": "culprit")"));
  EXPECT_TRUE(has(prov, R"("sherlorch:tensor10": {"prov:label": "output of log")"));
  EXPECT_TRUE(has(prov, R"({"prov:entity": "sherlorch:tensor10", "prov:activity": "sherlorch:op10"})"));
  EXPECT_TRUE(has(prov, R"({"prov:activity": "sherlorch:op11", "prov:entity": "sherlorch:tensor10"})"));
  EXPECT_EQ(prov.back(), '\n');
}

TEST(ProvTest, WhatCameThroughFoldedOpsIsDerived) {
  Diagnosis d = examples::forward_log();
  d.culprits[0].path[0].folded = 5;
  const std::string prov = to_prov_json(d);
  EXPECT_TRUE(has(prov, R"({"prov:generatedEntity": "sherlorch:tensor11", "prov:usedEntity": "sherlorch:tensor10"})"))
      << prov;
  EXPECT_FALSE(has(prov, R"({"prov:activity": "sherlorch:op11", "prov:entity": "sherlorch:tensor10"})"));
}

TEST(ProvTest, AnOriginIsAnEntityThatTheFirstReaderUsed) {
  Diagnosis d = examples::forward_log();
  d.culprits[0].origin = Origin::kParameter;
  d.culprits[0].origin_label = "parameter net.weight";
  const std::string prov = to_prov_json(d);
  EXPECT_TRUE(has(prov, R"("prov:label": "parameter net.weight", "sherlorch:origin": "parameter")")) << prov;
  EXPECT_TRUE(has(prov, R"("prov:entity": "sherlorch:origin10")"));
}

TEST(ProvTest, NobodyToBlameLeavesTheTargetAlone) {
  Diagnosis d;
  d.target = examples::step(3, "sum", {}, {}, "");
  const std::string prov = to_prov_json(d);
  EXPECT_TRUE(has(prov, "sherlorch:op3"));
  EXPECT_TRUE(has(prov, R"("used": {})"));
}

}  // namespace
}  // namespace sherlorch
