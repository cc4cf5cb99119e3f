#include "core/operators/traits.h"

#include <gtest/gtest.h>

namespace sherlorch {
namespace {

OperatorTraits traits_of(std::string name) {
  OperatorInfo info;
  info.name = std::move(name);
  return operator_traits(info);
}

TEST(TraitsTest, MemoryHandedOutUnwrittenIsNobodysValue) {
  for (const char* name : {"aten::empty", "aten::new_empty", "aten::empty_like", "aten::resize_"}) {
    EXPECT_TRUE(traits_of(name).uninitialized) << name;
  }
  EXPECT_FALSE(traits_of("aten::zeros").uninitialized);
}

TEST(TraitsTest, ChangingWhatATensorIsWritesNoMemory) {
  for (const char* name : {"aten::set_", "aten::t_", "aten::detach_", "aten::unsqueeze_"}) {
    EXPECT_TRUE(traits_of(name).metadata_only) << name;
  }
  EXPECT_FALSE(traits_of("aten::add_").metadata_only);
}

TEST(TraitsTest, BatchNormChangesItsStatisticsInTrainingOnly) {
  const OperatorTraits traits = traits_of("aten::batch_norm");
  EXPECT_EQ(traits.hidden_writes, 1u << 3 | 1u << 4);
  EXPECT_EQ(traits.hidden_writes_if, 5);
}

TEST(TraitsTest, OutArgumentsAreNotRead) {
  OperatorInfo info;
  info.name = "aten::add";
  info.arguments = {{"self", true, false, false}, {"out", true, false, true}};
  EXPECT_TRUE(operator_traits(info).only_out);
  info.arguments[0].is_written = true;
  EXPECT_FALSE(operator_traits(info).only_out);
}

TEST(TraitsTest, OnlyATensNamesAreKnown) {
  EXPECT_FALSE(traits_of("mylib::empty").uninitialized);
  EXPECT_TRUE(traits_of("profiler::_record_function_enter_new").ignore);
}

}  // namespace
}  // namespace sherlorch
