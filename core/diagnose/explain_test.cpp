// What explain must not say, how it words what it is not sure of, and how numbers are printed.
#include <gtest/gtest.h>

#include "core/diagnose/explain_test_facts.h"

namespace sherlorch {
namespace {

using namespace explain_test;

// Operands that do not bear the usual story out: only the facts may be told.
TEST(ExplainDoubtTest, SaysOnlyTheFactsWhereTheOperandsDoNotBearItOut) {
  const std::vector<OpFacts> cases = {
      op("log", kNan, {point("self", kNan)}),
      op("log", kInf, {point("self", kInf)}),
      op("sqrt", kNan, {point("self", kNan)}),
      op("sqrt", kInf, {point("self", kInf)}),
      op("exp", kInf, {point("self", kInf)}),
      op("exp", kInf, {point("self", 50)}),
      op("lgamma", kInf, {point("self", -kInf)}),
      op("special_entr", -kInf, {point("self", -kInf)}),
      op("remainder", kNan, {point("self", kNan), point("other", 0)}),
      op("fmod", kNan, {point("self", kInf), point("other", kNan)}),
      op("pow", kInf, {point("self", 2), point("exponent", kInf)}),
      op("xlogy", -kInf, {point("self", kInf), point("other", 0)}),
      op("acos", kNan, {point("self", kNan)}),
      op("div", kNan, {point("self", kNan), point("other", 0)}),
      op("div", kNan, {point("self", 1), point("other", kNan)}),
      op("div", kInf, {point("self", kInf), point("other", 2)}),
      op("mul", kNan, {point("self", kNan), point("other", 2)}),
      op("mul", kInf, {point("self", kInf), point("other", 2)}),
      op("add", kNan, {point("self", kNan), point("other", 2)}),
      op("add", kInf, {point("self", kInf), point("other", kInf)}),
      op("sub", kInf, {point("self", kInf), point("other", -kInf)}),
      op("pow", kNan, {point("self", kNan), scalar("exponent", 0.5)}),
      op("pow", kNan, {point("self", -2), scalar("exponent", 2)}),
      op("xlogy", kNan, {point("self", kNan), point("other", 1)}),
      op("softmax", kNan, {slice("self", 0, 1, 4, 2, 1, kNan)}),
      op("softmax", kNan, {slice("self", 0, 1, 4, 2)}),
      op("mean", kNan, {slice("self", 0, 1, 4, 2, 1, kNan)}),
      op("sum", kInf, {slice("self", 0, 1, 4, 2, 1, kInf)}),
      op("std", kNan, {slice("self", 0, 1, 4, 2, 1, kNan), scalar("correction", 1)}),
      op("std", kNan, {slice("self", 0, 1, 4, 2), scalar("correction", 1)}),
      op("linear", kInf, {slice("input", 0, 1, 4), slice("weight", 0, 1, 4)}),
      op("linear", kNan, {slice("input", 0, 1, 4, 2, 1, kNan), slice("weight", 0, 1, 4)}),
      op("layer_norm", kNan, {slice("input", 0, 1, 4, 2, 1, kNan), scalar("eps", 1e-5)}),
      op("layer_norm", kNan, {slice("input", 0, 1, 4, 2), scalar("eps", 1e-5)}),
      op("_to_copy", kInf, {point("self", kInf)}, kHalf),
      op("_to_copy", kInf, {point("self", 100)}, kHalf),
      op("cross_entropy_loss", kNan, {holding("self", kNan), range("target", 0, 3)}),
      op("mse_loss", kNan, {holding("self", kNan), range("target", 0, 3)}),
      op("linalg_inv_ex", kNan, {holding("A", kNan, 8)}),
      op("linalg_svd", kNan, {range("A", 0, 1e30)}),  // LAPACK scales
      op("_fused_adam_", kNan, {range("grads", 0, 1), range("exp_avg_sqs", 0, 1), scalar("eps", 1e-8)},
         kHalf),  // computes in float32
      op("logsumexp", kNan, {slice("self", 0, 1, 4, 2, 1, kInf)}),
      op("linalg_vector_norm", kNan, {slice("self", 0, 1, 4, 2, 1, kInf)}),
      op("addcdiv_", kNan, {point("self", 1), point("tensor1", kNan), point("tensor2", 2)}),
      op("lerp", kNan, {point("self", kNan), point("end", 1), scalar("weight", 0.5)}),
      op("cosine_similarity", kNan, {range("x1", 1, 2), range("x2", 1, 2), scalar("eps", 1e-8)}),
      op("dropout", kNan, {point("input", kNan), scalar("p", 0.5)}),
      op("frobnicate", kNan, {point("self", 1), point("other", 2)}),
  };
  for (const OpFacts& facts : cases) {
    const Explanation e = explain(facts);
    SCOPED_TRACE(e.headline);
    EXPECT_EQ(static_cast<int>(e.cause), static_cast<int>(Cause::kUnknown)) << e.explanation;
    EXPECT_TRUE(e.explanation.empty()) << e.explanation;
    EXPECT_FALSE(e.headline.empty());
  }
}

TEST(ExplainDoubtTest, RangesAreSaidToBeProbable) {
  EXPECT_NE(explain(op("log", -kInf, {range("self", 0, 3.1)}))
                .explanation.find("lies in [0, 3.1], so it probably is 0 there"),
            std::string::npos);
  const Explanation div = explain(op("div", kInf, {range("self", 1, 2), range("other", 0, 5)}));
  EXPECT_EQ(static_cast<int>(div.cause), static_cast<int>(Cause::kDivisionByZero));
  EXPECT_NE(div.explanation.find("probably"), std::string::npos);
  EXPECT_NE(explain(op("div", kNan, {range("self", 0, 2), range("other", 0, 5)})).explanation.find("probably"),
            std::string::npos);
  EXPECT_TRUE(explain(op("log", -kInf, {range("self", 0.5, 3.1)})).explanation.empty());
  EXPECT_TRUE(explain(op("div", kInf, {range("self", 1, 2), range("other", 1, 5)})).explanation.empty());
}

TEST(ExplainDoubtTest, AnOverwrittenOperandIsInferredFromTheResultWhereThatIsUnique) {
  const Explanation log = explain(op("log_", -kInf, {lost("self")}));
  EXPECT_EQ(static_cast<int>(log.cause), static_cast<int>(Cause::kDivisionByZero));
  EXPECT_NE(log.explanation.find("overwritten in place; going by the result, it was 0"), std::string::npos);
  EXPECT_EQ(log.headline, "log of an overwritten value is -inf");
  EXPECT_TRUE(explain(op("reciprocal_", kInf, {lost("self")})).explanation.empty());  // 0, or merely tiny
}

TEST(ExplainDoubtTest, ABadOriginIsNamedAndTheReaderIsNotBlamed) {
  OpFacts facts = op("sub", kNan, {point("self", kNan), point("other", 1)});
  facts.origin = Origin::kInput;
  facts.origin_label = "argument 0 of sub";
  Explanation e = explain(facts);
  EXPECT_EQ(static_cast<int>(e.cause), static_cast<int>(Cause::kBadOrigin));
  EXPECT_EQ(e.headline, "argument 0 of sub held nan before any op touched it");
  EXPECT_NE(e.help.find("data loader"), std::string::npos);
  EXPECT_EQ(witness(facts), "nan - 1.0 = nan");

  facts.origin = Origin::kParameter;
  facts.origin_label = "parameter net.4.running_var";
  EXPECT_EQ(explain(facts).headline, "parameter net.4.running_var held nan before any op touched it");
  facts.origin = Origin::kUninitialized;
  facts.origin_label = "";
  e = explain(facts);
  EXPECT_EQ(e.headline, "the uninitialized memory was never written; it holds nan");
  EXPECT_NE(e.help.find("torch.zeros"), std::string::npos);
  facts.origin = Origin::kConstant;
  EXPECT_NE(explain(facts).explanation.find("it is a number of the program"), std::string::npos);
}

TEST(ExplainDoubtTest, ADeliberateInfinityIsTheCauseWhateverTheOp) {
  const Explanation e = explain(deliberate(op("frobnicate", kNan, {point("self", -kInf)})));
  EXPECT_EQ(static_cast<int>(e.cause), static_cast<int>(Cause::kDeliberateInfinity));
  EXPECT_FALSE(e.explanation.empty());
  EXPECT_FALSE(e.help.empty());
}

TEST(ExplainDoubtTest, AnOpWithoutReadingsStillHasAHeadline) {
  OpFacts facts;
  facts.op_name = "frobnicate_";
  EXPECT_EQ(explain(facts).headline, "frobnicate made a non-finite value");
  facts.output.counts.numel = 4;
  facts.output.counts.neg_inf = 1;
  EXPECT_EQ(explain(facts).headline, "frobnicate made -inf");
  facts.operands.push_back(holding("self", kInf).operand);
  EXPECT_EQ(explain(facts).headline, "frobnicate got inf and made -inf");
}

TEST(ExplainDoubtTest, ReadsTheTensorOfAListThatTheElementBelongsTo) {
  OpFacts facts = op("_foreach_div_", kInf, {point("self[1]", 1), point("other[1]", 0)});
  facts.operands.insert(facts.operands.begin(), {range("self[0]", 5, 6).operand, range("other[0]", 5, 6).operand});
  EXPECT_EQ(explain(facts).headline, "1.0 / 0.0 is inf");
  OpFacts fused = op("_fused_adam_", kNan,
                     {range("grads[0]", 0, 1), range("grads[1]", 0, 1), range("exp_avg_sqs[0]", 1, 2),
                      range("exp_avg_sqs[1]", 0, 2), scalar("eps", 0)});
  EXPECT_EQ(static_cast<int>(explain(fused).cause), static_cast<int>(Cause::kInvalidOperation));
}

TEST(ExplainDoubtTest, TheSumOfAHalfReadSliceIsNoProof) {
  OpFacts facts = op("sum", kInf, {slice("self", 0, 100, 1000000, 65600)}, kHalf);
  facts.elements.front().operands.front().complete = false;
  EXPECT_EQ(explain(facts).explanation.rfind("Probably the sum", 0), 0U);
}

TEST(ExplainDoubtTest, ASliceOfOneElementIsReadAsAValue) {
  const Explanation e = explain(op("std", kNan, {point("self", 2), scalar("correction", 1)}));
  EXPECT_EQ(static_cast<int>(e.cause), static_cast<int>(Cause::kInvalidOperation));
  EXPECT_EQ(e.headline, "standard deviation of the one value 2.0 is nan");
}

TEST(ExplainDoubtTest, ComplexRootsAreNotInvalid) {
  EXPECT_TRUE(explain(op("sqrt", kNan, {point("self", -4)}, "torch.complex64")).explanation.empty());
}

TEST(ExplainDoubtTest, NoFamilyFailsOnAnyCombinationOfOperands) {
  const double values[] = {0.0, -0.0, 1, -1, 1e30, kInf, -kInf, kNan};
  for (const char* name :
       {"add",        "sub",         "mul",      "div",       "pow",       "remainder",  "xlogy",       "hypot",
        "ldexp",      "log",         "sqrt",     "exp",       "sum",       "var",        "softmax",     "matmul",
        "layer_norm", "batch_norm",  "mse_loss", "kl_div",    "ctc_loss",  "linalg_inv", "addcdiv",     "_fused_adam_",
        "where",      "masked_fill", "to",       "index_add", "attention", "cdist",      "weight_norm", "fft_fft"}) {
    for (double a : values) {
      for (double b : values) {
        for (double result : {kNan, kInf, -kInf}) {
          for (const char* node : {"", "SqrtBackward0", "PowBackward0", "LogsumexpBackward0", "MmBackward0"}) {
            OpFacts facts = backward(node, name, result, {point("self", a), point("other", b)});
            EXPECT_FALSE(explain(facts).headline.empty());
            EXPECT_FALSE(witness(facts).empty());
            facts.elements.clear();
            EXPECT_FALSE(explain(facts).headline.empty());
          }
        }
      }
    }
  }
}

TEST(DescribeElementTest, ShowsTheOperandsOfThisElement) {
  EXPECT_EQ(witness(op("log", -kInf, {point("self", 0)})), "log(0.0) = -inf");
  EXPECT_EQ(witness(op("div", kInf, {point("self", 1), point("other", 0)})), "1.0 / 0.0 = inf");
  EXPECT_EQ(witness(op("sqrt", kNan, {point("self", -4)})), "sqrt(-4.0) = nan");
  EXPECT_EQ(witness(op("mul", kNan, {point("self", 0), point("other", -kInf)})), "0.0 * -inf = nan");
  EXPECT_EQ(witness(op("mul", kInf, {point("self", 300), point("other", 300)}, kHalf)),
            "300.0 * 300.0 = inf (float16 ends at 65504)");
  EXPECT_EQ(witness(op("_to_copy", kInf, {point("self", 1e6)}, kHalf)),
            "1e+06 does not fit into float16 (largest 65504)");
  EXPECT_EQ(witness(op("sum", kInf, {slice("self", 0, 60000, 65536, 2e9)}, kHalf)),
            "sum of 65536 values in [0, 60000] = inf (float16 ends at 65504)");
  EXPECT_EQ(witness(op("softmax", kNan, {slice("self", 0, 0, 0, 0, 5, -kInf)})),
            "softmax over a row of only -inf = nan");
  EXPECT_EQ(witness(op("frobnicate", kNan, {point("self", 1), point("other", 2)})), "frobnicate(1.0, 2.0) = nan");
}

TEST(ExplainBackwardTest, WhatTheNodeMadeOfTheInfinityIsTold) {
  OpFacts facts = backward("PowBackward0", "pow", kInf, {point("self", 0), scalar("exponent", -0.5)});
  facts.turn = {"mul", true};
  Explanation e = explain(facts);
  EXPECT_EQ(e.headline, "0.0 ** -0.5 is inf in the backward of pow, and 0 * inf is nan");
  EXPECT_NE(e.explanation.find("a gradient of 0 does not save it"), std::string::npos) << e.explanation;
  EXPECT_EQ(witness(facts), "0.0 ** -0.5 = inf, then 0 * inf = nan");
  facts.turn = {"sum", false};  // what it met is not known
  e = explain(facts);
  EXPECT_EQ(e.headline, "0.0 ** -0.5 is inf in the backward of pow, and sum makes nan of it");
  EXPECT_EQ(e.explanation.find("multiplies it by 0"), std::string::npos);
}

TEST(ExplainOriginTest, AWriteFromOutsideHasAHelpOfItsOwn) {
  OpFacts facts = op("sum", kInf, {point("self", kInf)});
  facts.origin = Origin::kInput;
  facts.origin_label = "argument 0 of sum (self)";
  facts.external_write = true;
  facts.last_writer = "mul at model.py:12";
  const Explanation e = explain(facts);
  EXPECT_EQ(e.headline, "argument 0 of sum (self) was changed to inf from outside torch");
  EXPECT_NE(e.explanation.find("mul at model.py:12"), std::string::npos);
  EXPECT_NE(e.help.find("numpy"), std::string::npos);
  EXPECT_EQ(e.help.find("data loader"), std::string::npos);
}

TEST(ExplainOptimizerTest, AFusedStepWithoutEpsIsExplainedThoughAllIsOverwritten) {
  const OpFacts facts = op("_fused_adam_", kNan, {lost("grads[0]"), lost("exp_avg_sqs[0]"), scalar("eps", 0)});
  EXPECT_NE(explain(facts).explanation.find("0/0"), std::string::npos);
}

TEST(FormatNumberTest, PrintsShortAndUnambiguous) {
  EXPECT_EQ(format_number(-kInf), "-inf");
  EXPECT_EQ(format_number(kNan), "nan");
  EXPECT_EQ(format_number(0), "0.0");
  EXPECT_EQ(format_number(-0.0), "-0.0");
  EXPECT_EQ(format_number(3.1), "3.1");
  EXPECT_EQ(format_number(65504), "65504.0");
  EXPECT_EQ(format_number(65519.5), "6.552e+04");
  EXPECT_EQ(format_number(1e6), "1e+06");
  EXPECT_EQ(format_number(-1.2e-7), "-1.2e-07");
  EXPECT_EQ(format_number(static_cast<double>(0.1f)), "0.1");
  EXPECT_EQ(format_number(1.0000001), "1.0000001");
  EXPECT_EQ(format_number(std::nextafter(1.0, 0.0)), "0.99999999999999989");
}

}  // namespace
}  // namespace sherlorch
