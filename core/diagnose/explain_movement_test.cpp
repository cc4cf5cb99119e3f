// One case a family at least: facts as the recorder fills them in from a real mistake, and what must be said about
// them.
#include <gtest/gtest.h>

#include "core/diagnose/explain_test_facts.h"

namespace sherlorch {
namespace {

using namespace explain_test;

TEST(ExplainMovementTest, CastsLiteralsAndCollectingOps) {
  check({"cast", op("_to_copy", kInf, {point("self", 1e6)}, kHalf), Cause::kCastOverflow,
         "1e+06 does not fit into float16 (largest 65504)", "infinite", "bfloat16"});
  check({"mask cast", op("half", -kInf, {point("self", -3.4028e38)}, kHalf), Cause::kCastOverflow, "", "end of float16",
         "finfo"});
  check({"copy_", op("copy_", kInf, {lost("self"), point("src", 70000)}, kHalf), Cause::kCastOverflow,
         "70000.0 does not fit into float16 (largest 65504)", "infinite", "float32"});
  check({"type_as", op("type_as", kInf, {range("self", 0, 1e5), range("other", 0, 1)}, kHalf), Cause::kCastOverflow, "",
         "largest number cast", "float32"});
  check({"float8", op("to", kNan, {point("self", 300)}, "torch.float8_e4m3fnuz"), Cause::kCastOverflow,
         "300.0 does not fit into float8_e4m3fnuz (largest 240)", "no infinity", "scale"});
  check({"literal nan", op("full", kNan, {scalar("fill_value", kNan)}), Cause::kBadOrigin, "full writes nan",
         "program itself", "mask"});
  check({"masked_fill", op("masked_fill_", -kInf, {lost("self"), range("mask", 0, 1), scalar("value", -kInf)}),
         Cause::kDeliberateInfinity, "masked_fill writes -inf", "program itself", "row"});
  check({"where", op("where", kNan, {range("condition", 0, 1), range("self", 0, 1), scalar("other", kNan)}),
         Cause::kBadOrigin, "where writes nan", "program itself", "mask"});
  check({"empty", op("new_empty", kNan, {range("self", 0, 1)}), Cause::kBadOrigin,
         "new_empty gave memory that nobody has filled", "as it is", "torch.zeros"});
  check({"index_add", op("index_add_", kInf, {lost("self"), slice("source", 900, 1000, 100)}, kHalf), kOver, "",
         "into one place", "float32"});
  check({"scatter_add", op("scatter_add", kInf, {range("self", 0, 0), range("src", 0, 60000)}, kHalf), kOver, "",
         "65504", "float32"});
  check({"index_put",
         op("_index_put_impl_", kNan,
            {range("self", 0, 1),
             [] {
               Arg a = holding("values", kInf);
               a.operand.counts.neg_inf = 1;
               return a;
             }()}),
         kInvalid, "", "both signs", "infinities"});
  check({"embedding", op("embedding", kNan, {holding("weight", kNan), range("indices", 0, 4)}), Cause::kBadOrigin, "",
         "embedding table", "step"});
  check({"renorm", op("renorm", kNan, {holding("self", kInf)}), kInvalid, "", "inf / inf", "weight"});
  check({"dropout of a mask", op("dropout", kNan, {point("input", -kInf), scalar("p", 0.5)}), kInvalid, "",
         "what it drops by 0", "after dropout"});
  check({"dropout in half", op("native_dropout", kInf, {point("input", 60000), scalar("p", 0.5)}, kHalf), kOver, "",
         "1 / (1 - p)", "float"});
  check(
      {"resize image", op("upsample_bilinear2d", kNan, {holding("self", kInf)}), kInvalid, "", "neighbour", "nearest"});
  check({"grid_sample", op("grid_sampler_2d", kNan, {range("input", 0, 1), holding("grid", kNan)}), kInvalid, "",
         "grid", "flow"});
}

}  // namespace
}  // namespace sherlorch
