#include "core/report/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/report/text_test_examples.h"
#include "core/report/text_witness.h"
#include "sherlorch/report.h"

namespace sherlorch {
namespace {

// No file system: these goldens must not depend on what lies in /home/ann.
TextOptions without_source() {
  TextOptions options;
  options.show_source = false;
  return options;
}

FinitenessCounts counts_of(std::int64_t numel, std::int64_t nan, std::int64_t pos_inf, std::int64_t neg_inf) {
  FinitenessCounts counts;
  counts.numel = numel;
  counts.nan = nan;
  counts.pos_inf = pos_inf;
  counts.neg_inf = neg_inf;
  return counts;
}

std::size_t count_lines(const std::string& text) {
  return 1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(TextTest, ForwardLogReadsAsAWhole) {
  TextOptions options;
  options.source = [](const std::string&, int line, std::string* text) {
    if (line == 24) *text = "        # Bug: relu() can output exact zeros, and log(0) == -inf.";
    if (line == 25) *text = "        return torch.log(scores.relu())";
    return true;
  };
  EXPECT_EQ(
      to_text(examples::forward_log(), options),
      R"(log made -Inf at find_nan_in_transformer.py:25 in model.layer1; layer_norm at find_nan_in_transformer.py:36 turned it into NaN

sherlorch diagnosis for [14] layer_norm (shape=(4, 4, 16, 32)):
  Found 1 culprit op(s) out of 15 traced ops.

  Culprit #1: [10] log  shape=(4, 4, 16, 16) dtype=torch.float32  [model.layer1]  (/home/ann/run/find_nan_in_transformer.py:25)  <-- -Inf
        24 |         # Bug: relu() can output exact zeros, and log(0) == -inf.
      > 25 |         return torch.log(scores.relu())
        26 |
    Witness: 2,051 of 4,096 elements are -Inf; first at [0, 0, 0, 3]
             log(0.0) = -inf at [0, 0, 0, 3]
             log(0.0) = -inf at [0, 0, 0, 7]
             read self: shape=(4, 4, 16, 16) dtype=torch.float32, values in [0, 3.1]
             bad in every sample of the batch
    Cause:   division by zero: log(0.0) is -inf
             The logarithm has a pole at 0, and 2,051 elements of its input are exactly 0.
    Help:    Keep the argument above 0: torch.log(x + 1e-6), or torch.log(x.clamp_min(1e-6)).
    Called:  from find_nan_in_transformer.py:35 in forward, from find_nan_in_transformer.py:50 in
             main, from find_nan_in_transformer.py:58 in <module>
    Path to target:
      -> [10] log  shape=(4, 4, 16, 16) dtype=torch.float32  [model.layer1]  (find_nan_in_transformer.py:25)  <-- -Inf made here
      -> [11] mean  shape=(4, 4, 16)  [model]  (find_nan_in_transformer.py:35)  <-- -Inf
      -> [12] unsqueeze  shape=(4, 4, 16, 1)  [model]  (find_nan_in_transformer.py:36)  <-- -Inf
      -> [13] add  shape=(4, 4, 16, 32)  [model]  (find_nan_in_transformer.py:36)  <-- -Inf
      -> [14] layer_norm  shape=(4, 4, 16, 32)  [model.norm]  (find_nan_in_transformer.py:36)  <-- became NaN here

  Blind spots: none
  Certainty:   certain)");
}

TEST(TextTest, BackwardSqrtReadsAsAWhole) {
  EXPECT_EQ(to_text(examples::backward_sqrt(), without_source()),
            R"(div inside SqrtBackward0 made NaN in the backward of losses/safe.py:31 in net.head (and 1 more culprit)

sherlorch diagnosis for [97] mm (shape=(3, 3)):
  Found 2 culprit op(s) out of 1,204 traced ops.

  Culprit #1: [88] div  shape=(8, 3) dtype=torch.float32  [net.head]  (/home/ann/run/losses/safe.py:31)  <-- NaN
    When:    phase backward, inside SqrtBackward0; the line is that of the forward op; on cuda:0; on
             thread pt_autograd_0
    Witness: 2 of 24 elements are NaN; first at [3, 0]
             0.0 / 0.0 = nan at [3, 0]
             read self: shape=(8, 3) dtype=torch.float32, values in [0, 0.25]
             read other: shape=(8, 3) dtype=torch.float32, values in [0, 2.5]
             bad in 1 of 8 samples: 3
    Cause:   invalid operation: 0.0 / 0.0 is nan
             The gradient 0 of a branch that was not selected meets the slope +inf of sqrt at 0.0,
             and 0 times inf is NaN; the forward value was fine.
    Help:    Use the double-where idiom: replace the argument before the sqrt as well as the result
             after it.
    Path to target:
      -> [88] div  shape=(8, 3) dtype=torch.float32  [net.head]  (losses/safe.py:31)  in SqrtBackward0  <-- NaN made here
      -> [91] mul  shape=(8, 3)  [net.head]  (losses/safe.py:31)  in MulBackward0  <-- NaN
      -> [97] mm  shape=(3, 3)  [net.body]  (train.py:70)  in MmBackward0  <-- NaN

  Culprit #2: [93] div  shape=(8, 3) dtype=torch.float32  (/home/ann/run/model/safe.py:8)  <-- NaN
    When:    phase backward, inside SqrtBackward0; the line is that of the forward op; on cuda:0; 7
             times on this line
    Witness: 2 of 24 elements are NaN; first at [3, 0]
    Cause:   invalid operation: 0.0 / 0.0 is nan
    Path to target:
      -> [93] div  shape=(8, 3) dtype=torch.float32  (model/safe.py:8)  in SqrtBackward0  <-- NaN made here
      -> [97] mm  shape=(3, 3)  [net.body]  (train.py:70)  in MmBackward0  <-- NaN

  Deliberate:  masked_fill at train.py:61 (-Inf): put there on purpose, innocent
  Blind spots: 3 ops inside a compiled region were not traced
               1 sparse tensor was not scanned
  Certainty:   culprit #2 is not certain: the op's input had been overwritten when it was asked
               about)");
}

TEST(TextTest, CulpritThatGoesByItsNodesNameIsNotSaidToBeInsideItself) {
  Diagnosis d = examples::backward_sqrt();
  for (Culprit& culprit : d.culprits) {
    culprit.step.op_name = culprit.step.autograd_node;
    culprit.path.front() = culprit.step;
  }
  EXPECT_THAT(verdict(d), ::testing::StartsWith("SqrtBackward0 made NaN in the backward of losses/safe.py:31"));
  EXPECT_THAT(to_text(d, without_source()), ::testing::Not(::testing::HasSubstr("inside SqrtBackward0")));
}

TEST(TextTest, ParameterOriginReadsAsAWhole) {
  EXPECT_EQ(
      to_text(examples::parameter_origin(), without_source()),
      R"(parameter net.4.running_mean (buffer) held NaN before any op touched it; sub at eval.py:9 in net.4 was the first to read it

sherlorch diagnosis for [7] sum (shape=()):
  Found 1 culprit op(s) out of 8 traced ops.

  Culprit #1: [3] sub  shape=(32, 10) dtype=torch.float32  [net.4]  (eval.py:9)  <-- NaN
    Origin:  parameter net.4.running_mean (buffer)
    Witness: 32 of 320 elements are NaN; first at [0, 7]
             read self: shape=(32, 10) dtype=torch.float32, values in [-2.5, 2.25]
             read other = parameter net.4.running_mean: shape=(10,) dtype=torch.float32, 1 of 10
             elements is NaN; first at [7]; the rest in [0.25, 0.75]
             read alpha: the number 1.5
    Cause:   bad origin: parameter net.4.running_mean held nan before any op touched it
    Help:    Look at what loaded or last wrote it.
    Path to target:
      -> [3] sub  shape=(32, 10) dtype=torch.float32  [net.4]  (eval.py:9)  <-- NaN
      -> [7] sum  shape=()  (eval.py:12)  <-- NaN

  Blind spots: none
  Certainty:   certain)");
}

TEST(TextTest, FiniteTargetReadsAsInTheOriginal) {
  Diagnosis d = examples::finite();
  EXPECT_EQ(to_text(d), "No non-finite values found in target tensor (node [7] sum). 8 ops were traced.");
  d.blind_spots = {{"device", 2, ""}};
  d.note = "The target has changed since the trace.";
  EXPECT_EQ(to_text(d),
            "No non-finite values found in target tensor (node [7] sum). 8 ops were traced.\n"
            "  Note:        The target has changed since the trace.\n"
            "  Blind spots: device: 2");
}

TEST(TextTest, BadTargetWithoutCulpritIsNeverCalledFinite) {
  Diagnosis d = examples::finite();
  d.target.counts.neg_inf = 1;
  EXPECT_EQ(verdict(d),
            "The target tensor (node [7] sum) holds -Inf, but what made it was not seen. 8 ops were traced.");
  d.deliberate = {examples::step(5, "masked_fill", {2}, {"a.py", 3, ""}, "net")};
  EXPECT_EQ(
      verdict(d),
      "The target tensor (node [7] sum) holds -Inf that the program put there on purpose: masked_fill at a.py:3 in "
      "net. Nothing is to blame. 8 ops were traced.");
}

TEST(TextTest, SummaryLineIsTheOriginals) {
  Step step = examples::step(10, "log", {4, 16, 16}, {"file.py", 12, ""}, "model.layer1");
  EXPECT_EQ(summary_line(step), "[10] log  shape=(4, 16, 16) dtype=torch.float32  [model.layer1]  (file.py:12)");
  step.counts.neg_inf = 1;
  EXPECT_EQ(summary_line(step),
            "[10] log  shape=(4, 16, 16) dtype=torch.float32  [model.layer1]  (file.py:12)  <-- -Inf");
  step.counts.nan = 1;
  step.location = {};
  step.module_path = "";
  EXPECT_EQ(summary_line(step), "[10] log  shape=(4, 16, 16) dtype=torch.float32  <-- NaN & -Inf");
}

TEST(TextTest, VerdictNamesPhaseOriginAndDoubt) {
  Diagnosis d = examples::forward_log();
  Culprit& culprit = d.culprits[0];
  culprit.path.resize(1);
  culprit.step.module_path = "";
  EXPECT_EQ(verdict(d), "log made -Inf at find_nan_in_transformer.py:25");
  culprit.times = 1200;
  EXPECT_EQ(verdict(d), "log made -Inf at find_nan_in_transformer.py:25 (1,200 times)");
  culprit.times = 1;
  culprit.step.phase = Phase::kRecompute;
  EXPECT_EQ(verdict(d), "log made -Inf at find_nan_in_transformer.py:25, while checkpointing recomputed it");
  culprit.step.phase = Phase::kOptimizer;
  EXPECT_EQ(verdict(d), "log made -Inf in the optimizer's step at find_nan_in_transformer.py:25");
  culprit.step.location = {};
  culprit.step.phase = Phase::kBackward;
  EXPECT_EQ(verdict(d), "log made -Inf in backward");
  culprit.certain = false;
  EXPECT_EQ(verdict(d), "not certain: log made -Inf in backward");
  culprit.certain = true;
  culprit.step.phase = Phase::kForward;
  culprit.operands.clear();
  culprit.origin = Origin::kUninitialized;
  EXPECT_EQ(verdict(d),
            "uninitialized memory held a non-finite value before any op touched it; log was the first to read it");
}

TEST(TextTest, AMaskIsToldAsAskedFor) {
  Diagnosis d = examples::forward_log();
  Culprit& culprit = d.culprits[0];
  culprit.step.op_name = "softmax";
  culprit.step.counts = counts_of(4, 4, 0, 0);
  culprit.path = {culprit.step};
  culprit.origin = Origin::kConstant;
  culprit.origin_label = "-inf of masked_fill at model.py:9";
  culprit.cause = Cause::kDeliberateInfinity;
  EXPECT_EQ(verdict(d),
            "softmax made NaN at find_nan_in_transformer.py:25 in model.layer1 out of an infinity that the program "
            "put there (-inf of masked_fill at model.py:9)");
  culprit.cause = Cause::kBadOrigin;
  culprit.origin_label = "the number nan";
  EXPECT_EQ(verdict(d),
            "softmax read a non-finite value at find_nan_in_transformer.py:25 in model.layer1, which the program "
            "itself wrote down: the number nan");
}

TEST(TextTest, AWriteFromOutsideIsToldOnce) {
  Diagnosis d = examples::parameter_origin();
  Culprit& culprit = d.culprits[0];
  culprit.origin = Origin::kInput;
  culprit.origin_label = "argument 1 of sub (other)";
  culprit.origin_detail = "external write";
  EXPECT_EQ(verdict(d),
            "sub read NaN at eval.py:9 in net.4, which was written from outside torch: argument 1 of sub (other)");
}

TEST(TextTest, TheStandardLibraryIsNoCaller) {
  Diagnosis d = examples::forward_log();
  d.culprits[0].stack = {{"<frozen runpy>", 88, "_run_code"},
                         {"/usr/lib/python3.11/threading.py", 975, "run"},
                         {"/home/ann/run/train.py", 50, "main"}};
  EXPECT_THAT(to_text(d, without_source()), ::testing::HasSubstr("    Called:  from train.py:50 in main\n"));
}

TEST(TextTest, ATurnOfSignIsNotWorthASentence) {
  Diagnosis d = examples::forward_log();
  Step& turn = d.culprits[0].path[1];
  turn.op_name = "neg";
  turn.location = d.culprits[0].step.location;
  turn.counts = counts_of(4, 0, 4, 0);
  turn.transition = Transition::kInfToInf;
  d.culprits[0].path.resize(2);
  EXPECT_EQ(verdict(d), "log made -Inf at find_nan_in_transformer.py:25 in model.layer1");
}

TEST(TextTest, LongPathIsFolded) {
  const Diagnosis d = examples::long_path(100'000);
  const std::string text = to_text(d, without_source());
  EXPECT_LT(count_lines(text), 40u);
  EXPECT_NE(text.find("      ... 49,994 more ops (add x49,944, mul x50) ...\n"
                      "      -> [50001] add  shape=(2,)  (long.py:3)  <-- became NaN here\n"),
            std::string::npos)
      << text;
}

TEST(TextTest, ManyCulpritsAreCounted) {
  Diagnosis d = examples::forward_log();
  d.culprits.resize(500, d.culprits[0]);
  const std::string text = to_text(d, without_source());
  EXPECT_NE(text.find("Culprit #10: "), std::string::npos);
  EXPECT_EQ(text.find("Culprit #11: "), std::string::npos);
  EXPECT_NE(text.find("  ... and 490 more culprits that ran later."), std::string::npos);
}

TEST(TextTest, ColorIsOnlyThereWhenAskedFor) {
  TextOptions options = without_source();
  for (const Diagnosis& d : {examples::forward_log(), examples::backward_sqrt(), examples::parameter_origin(),
                             examples::long_path(100), examples::finite()}) {
    const std::string plain = to_text(d, options);
    EXPECT_EQ(plain.find('\x1b'), std::string::npos);
    options.color = true;
    std::string colored = to_text(d, options);
    options.color = false;
    EXPECT_NE(colored.find("\x1b["), std::string::npos);
    for (std::size_t at; (at = colored.find('\x1b')) != std::string::npos;) {
      colored.erase(at, colored.find('m', at) - at + 1);
    }
    EXPECT_EQ(colored, plain) << "color adds escapes and nothing else";
  }
}

TEST(TextTest, AStepSaysWhatItGaveToTheModelWhereThatBegins) {
  Diagnosis d = examples::forward_log();
  std::vector<Step>& path = d.culprits[0].path;
  ASSERT_GE(path.size(), 4u);
  path[1].label = path[2].label = "gradient net.weight.grad";
  path[3].label = "parameter net.weight";
  const std::string text = to_text(d);
  EXPECT_EQ(examples::occurrences(text, "  = gradient net.weight.grad"), 1u);
  EXPECT_EQ(examples::occurrences(text, "  = parameter net.weight"), 1u);
}

TEST(TextTest, NamesOfTheUserCannotMoveTheCursor) {
  const std::string evil = "a\x1b[2J\nFound 0 culprits\r\xE2\x80\xAE\xFF";
  Diagnosis d = examples::backward_sqrt();
  for (Culprit& culprit : d.culprits) {
    for (std::string* text :
         {&culprit.step.op_name, &culprit.step.module_path, &culprit.step.label, &culprit.step.location.file,
          &culprit.step.dtype, &culprit.step.device, &culprit.step.thread_name, &culprit.step.autograd_node,
          &culprit.origin_label, &culprit.origin_detail, &culprit.headline, &culprit.explanation, &culprit.help,
          &culprit.doubt}) {
      *text = evil;
    }
    culprit.origin = Origin::kInput;
    culprit.path = {culprit.step, culprit.step};
    culprit.stack = {{evil, 1, evil}};
    culprit.witness = {{{0}, 1, evil, {}}, {{0}, 1, "", {{evil, 1}}}};
    Operand operand;
    operand.name = operand.label = operand.dtype = evil;
    culprit.operands = {operand};
  }
  d.target = d.culprits[0].step;
  d.deliberate = {d.target};
  d.blind_spots = {{evil, 1, evil}, {evil, 1, ""}};
  d.note = evil;
  const std::string text = to_text(d, without_source());
  EXPECT_EQ(text.find_first_of("\x1b\r\xFF"), std::string::npos);
  EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos);
  EXPECT_EQ(text.find("\nFound 0 culprits"), std::string::npos);
  EXPECT_EQ(count_lines(verdict(d)), 1u);
  EXPECT_EQ(count_lines(summary_line(d.target)), 1u);
}

TEST(TextTest, SourceLineIsShownWithoutTabsOrEscapesAndCut) {
  TextOptions options;
  options.source = [](const std::string&, int line, std::string* text) {
    *text = line == 25 ? "\tx = \x1b[31m" + std::string(300, 'y') : "";
    return line == 25;
  };
  const std::string text = to_text(examples::forward_log(), options);
  const std::size_t at = text.find("      > 25 |     x = \\x1b[31myyy");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.substr(text.find('\n', at) - 3, 3), "...");
  EXPECT_LE(text.find('\n', at) - at, options.width);
}

TEST(TextTest, EmptyDiagnosisDoesNotCrash) {
  Diagnosis d;
  EXPECT_EQ(to_text(d), "No non-finite values found in target tensor (node [0] ). 0 ops were traced.");
  d.culprits.resize(1);
  EXPECT_NE(to_text(d).find("Culprit #1: [0] "), std::string::npos);
  TextOptions narrow;
  narrow.width = 0;
  EXPECT_NE(to_text(examples::backward_sqrt(), narrow), "");
}

TEST(TextTest, DeliberateInfinitiesTakeOneLine) {
  Diagnosis d = examples::backward_sqrt();
  d.deliberate.resize(1000, d.deliberate[0]);
  const std::string text = to_text(d, without_source());
  EXPECT_NE(
      text.find("  Deliberate:  masked_fill at train.py:61 (-Inf), and 999 more: put there on purpose, innocent\n"),
      std::string::npos)
      << text;
}

TEST(TextWitnessTest, Elements) {
  FinitenessCounts counts = counts_of(4096, 0, 0, 412);
  counts.first_neg_inf = {0, 3, 2};
  EXPECT_EQ(elements_text(counts), "412 of 4,096 elements are -Inf; first at [0, 3, 2]");
  counts.nan = 100;
  counts.first_nan = {1, 0, 0};
  EXPECT_EQ(elements_text(counts),
            "512 of 4,096 elements are bad: 100 NaN (first at [1, 0, 0]), 412 -Inf (first at [0, 3, 2])");
  EXPECT_EQ(elements_text(counts_of(1, 1, 0, 0)), "its only element is NaN");
  EXPECT_EQ(elements_text(counts_of(9, 9, 0, 0)), "all 9 elements are NaN");
  EXPECT_EQ(elements_text(counts_of(9, 1, 0, 0)), "1 of 9 elements is NaN");
}

TEST(TextWitnessTest, Samples) {
  Culprit culprit;
  culprit.step.shape = {32, 5};
  EXPECT_EQ(samples_text(culprit), "");
  culprit.bad_samples = {3, 7, 9};
  culprit.bad_sample_count = 3;
  EXPECT_EQ(samples_text(culprit), "bad in 3 of 32 samples: 3, 7, 9");
  culprit.bad_sample_count = 20;
  EXPECT_EQ(samples_text(culprit), "bad in 20 of 32 samples: 3, 7, 9, and 17 more");
  culprit.bad_sample_count = 32;
  EXPECT_EQ(samples_text(culprit), "bad in every sample of the batch");
  culprit.bad_sample_count = 3;
  culprit.dropped_samples = {3, 9};
  culprit.dropped_sample_count = 2;
  EXPECT_EQ(samples_text(culprit), "bad in 3 of 32 samples: 3, 7, 9; 3, 9 do not reach the target");
}

TEST(TextWitnessTest, Operands) {
  Operand operand;
  operand.name = "self";
  operand.shape = {3};
  operand.dtype = "torch.float16";
  EXPECT_EQ(operand_text(operand), "self: shape=(3,) dtype=torch.float16");
  operand.has_range = true;
  operand.min = operand.max = 0;
  EXPECT_EQ(operand_text(operand), "self: shape=(3,) dtype=torch.float16, every value is 0.0");
  operand.overwritten = true;
  EXPECT_EQ(operand_text(operand),
            "self: shape=(3,) dtype=torch.float16, overwritten in place since: its values are gone; before that, none "
            "was larger than 0 in magnitude");
  operand.has_range = false;
  EXPECT_EQ(operand_text(operand),
            "self: shape=(3,) dtype=torch.float16, overwritten in place since: its values are gone");
}

TEST(TextWitnessTest, OfManyOperandsTheFiniteOnesAreCounted) {
  Diagnosis d = examples::parameter_origin();
  Culprit& culprit = d.culprits[0];
  const Operand bad = culprit.operands[1];
  culprit.operands.assign(9, culprit.operands[0]);
  culprit.operands.push_back(bad);
  const std::vector<std::string> rows = witness_rows(culprit);
  EXPECT_THAT(rows, ::testing::Contains(::testing::HasSubstr("read other = parameter")));
  EXPECT_THAT(rows, ::testing::Contains("read 6 more operands, all finite"));
}

TEST(TextWitnessTest, ElementWithoutWordsTellsItsOperands) {
  WitnessElement element{{2}, examples::kNan, "", {{"self", -0.5}, {"other", 2.5}}};
  EXPECT_EQ(witness_text(element), "self -0.5, other 2.5 gave nan at [2]");
  element.operands.clear();
  element.index.clear();
  EXPECT_EQ(witness_text(element), "the value is nan");
}

}  // namespace
}  // namespace sherlorch
