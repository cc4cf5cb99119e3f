#include "core/graph/tables.h"

#include <gtest/gtest.h>

namespace sherlorch {
namespace {

TEST(ModuleTableTest, LivingModulesComeInTheOrderInWhichTheyWereNamed) {
  ModuleTable table;
  const int a = 0, b = 0, c = 0;
  const ModuleId first = table.id_of(&a);
  table.id_of(&c);  // never named
  table.set_name(table.id_of(&b), "net", "Net");
  table.set_name(first, "net.fc", "Linear");
  const std::vector<NamedModule> living = table.living();
  ASSERT_EQ(living.size(), 2u);
  EXPECT_EQ(living[0].name, "net");
  EXPECT_EQ(living[0].type, "Net");
  EXPECT_EQ(living[1].name, "net.fc");
  EXPECT_EQ(living[1].type, "Linear");
}

TEST(ModuleTableTest, AModuleThatIsGoneKeepsItsNameButIsNotListed) {
  ModuleTable table;
  const int a = 0;
  const ModuleId id = table.id_of(&a);
  table.set_name(id, "net", "Net");
  table.forget(&a);
  EXPECT_TRUE(table.living().empty());
  EXPECT_EQ(table.name(id), "net");
}

}  // namespace
}  // namespace sherlorch
