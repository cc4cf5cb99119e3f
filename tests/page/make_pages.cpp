// Writes the pages that test_page.py opens: `make_pages DIRECTORY PROGRAMS`, one HTML file an example, with the source
// lines of the programs in PROGRAMS.
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/report/html.h"

namespace sherlorch {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string programs;

SourceLocation at(const std::string& file, int line, std::string function) {
  return {programs + "/" + file, line, std::move(function)};
}

Step make_step(OpSeq seq, std::string op, std::vector<std::int64_t> shape, SourceLocation location, std::string module,
               std::string overload = "") {
  Step step;
  step.seq = seq;
  step.operator_name = "aten::" + op + (overload.empty() ? "" : "." + overload);
  step.op_name = std::move(op);
  step.counts.numel = 1;
  for (const std::int64_t size : shape) step.counts.numel *= size;
  step.shape = std::move(shape);
  step.dtype = "torch.float32";
  step.device = "cpu";
  step.location = std::move(location);
  step.module_path = std::move(module);
  return step;
}

Step with_neg_inf(Step step, std::int64_t count, std::vector<std::int64_t> first) {
  step.counts.neg_inf = count;
  step.element = first;
  step.counts.first_neg_inf = std::move(first);
  return step;
}
Step with_pos_inf(Step step, std::int64_t count, std::vector<std::int64_t> first) {
  step.counts.pos_inf = count;
  step.element = first;
  step.counts.first_pos_inf = std::move(first);
  return step;
}
Step with_nan(Step step, std::int64_t count, std::vector<std::int64_t> first) {
  step.counts.nan = count;
  step.element = first;
  step.counts.first_nan = std::move(first);
  return step;
}

Operand tensor_operand(std::string name, std::vector<std::int64_t> shape, double min, double max) {
  Operand operand;
  operand.name = std::move(name);
  operand.counts.numel = 1;
  for (const std::int64_t size : shape) operand.counts.numel *= size;
  operand.shape = std::move(shape);
  operand.dtype = "torch.float32";
  operand.has_range = true;
  operand.min = min;
  operand.max = max;
  return operand;
}

// A pseudo-random number in [0, 1), the same on every machine.
double noise(std::uint64_t n) {
  n = (n + 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
  n = (n ^ n >> 27) * 0x94d049bb133111ebull;
  return static_cast<double>((n ^ n >> 31) >> 11) / 9007199254740992.0;
}

struct Page {
  Diagnosis diagnosis;
  std::vector<TimelineOp> timeline;
  PageExtras extras;
};

TimelineOp tick(OpSeq seq, std::string op, std::string location, std::string module, float largest,
                bool nonfinite = false, Phase phase = Phase::kForward) {
  TimelineOp entry;
  entry.seq = seq;
  entry.op_name = std::move(op);
  entry.location = std::move(location);
  entry.module_path = std::move(module);
  entry.phase = phase;
  entry.largest = largest;
  entry.nonfinite = nonfinite;
  return entry;
}

// log(relu(x)) two modules deep, which LayerNorm turns into NaN.
Page attention() {
  Page page;
  const SourceLocation log_line = at("attention.py", 19, "Attention.forward");
  const SourceLocation mean_line = at("attention.py", 29, "Encoder.forward");
  const SourceLocation norm_line = at("attention.py", 30, "Encoder.forward");
  std::vector<std::int64_t> shape = {4, 4, 16, 16};
  ElementSet bad;
  for (std::int64_t i = 0; i < 4096; ++i) {
    if (i / 1024 != 1 && noise(static_cast<std::uint64_t>(i)) < 0.13) bad.append(i, i + 1);
  }
  const std::int64_t first = bad.first();
  const std::vector<std::int64_t> first_index = {first / 1024, first / 256 % 4, first / 16 % 16, first % 16};
  Step log = with_neg_inf(make_step(10, "log", shape, log_line, "model.layer1"), bad.count(), first_index);
  log.transition = Transition::kFiniteToInf;
  Step mean = with_neg_inf(make_step(11, "mean", {4, 4, 16}, mean_line, "model", "dim"), 171, {0, 0, 0});
  Step mean2 = with_neg_inf(make_step(12, "mean", {4, 16}, mean_line, "model", "dim"), 48, {0, 0});
  Step unsqueeze = with_neg_inf(make_step(13, "unsqueeze", {4, 16, 1}, norm_line, "model"), 48, {0, 0, 0});
  unsqueeze.inherited = true;
  Step add = with_neg_inf(make_step(14, "add", {4, 16, 32}, norm_line, "model", "Tensor"), 1536, {0, 0, 0});
  Step norm = with_nan(make_step(15, "layer_norm", {4, 16, 32}, norm_line, "model.norm"), 1536, {0, 0, 0});
  norm.transition = Transition::kInfToNan;
  Step square = with_nan(make_step(16, "square", {4, 16, 32}, at("attention.py", 36, "main"), ""), 1536, {0, 0, 0});
  Step loss = with_nan(make_step(17, "mean", {}, at("attention.py", 36, "main"), ""), 1, {});
  std::vector<Step> path = {log, mean, mean2, unsqueeze, add, norm, square, loss};
  for (std::size_t i = 1; i < path.size(); ++i) path[i].parents = {path[i - 1].seq};

  Culprit culprit;
  culprit.step = log;
  culprit.cause = Cause::kDivisionByZero;
  culprit.stack = {at("attention.py", 41, "<module>"),
                   at("attention.py", 36, "main"),
                   {"/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1775, "_wrapped_call_impl"},
                   {"/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1786, "_call_impl"},
                   at("attention.py", 29, "Encoder.forward"),
                   {"/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1786, "_call_impl"},
                   log_line};
  culprit.operands = {tensor_operand("self", shape, 0, 3.1)};
  int shown = 0;
  bad.for_each([&](std::int64_t i) {
    culprit.witness.push_back(
        {{i / 1024, i / 256 % 4, i / 16 % 16, i % 16}, -kInf, "log(0.0) = -inf", {{"self", 0.0}}});
    return ++shown < 4;
  });
  culprit.bad_samples = {0, 2, 3};
  culprit.bad_sample_count = 3;
  culprit.headline = "log(0.0) is -inf";
  culprit.explanation = "The logarithm goes to -inf at 0, and " + std::to_string(bad.count()) +
                        " elements of what it read are exactly 0, the smallest value there is (its range is 0 to 3.1).";
  culprit.help =
      "Keep the argument away from 0: torch.log(x.clamp_min(1e-6)), or add a small eps. If this is a "
      "log of a softmax, use log_softmax instead.";
  culprit.path = path;
  page.diagnosis.target = loss;
  page.diagnosis.culprits = {culprit};
  page.diagnosis.total_ops = 17;

  const char* ops[] = {"linear", "view", "permute", "linear", "view", "permute", "transpose", "matmul", "div", "relu"};
  const float sizes[] = {2.4f, 2.4f, 2.4f, 2.1f, 2.1f, 2.1f, 2.1f, 17.6f, 3.1f, 3.1f};
  const int lines[] = {16, 16, 16, 17, 17, 17, 18, 18, 18, 19};
  for (int i = 0; i < 10; ++i) {
    page.timeline.push_back(tick(static_cast<OpSeq>(i), ops[i], programs + "/attention.py:" + std::to_string(lines[i]),
                                 i == 0   ? "model.layer1.query"
                                 : i == 3 ? "model.layer1.key"
                                          : "model.layer1",
                                 sizes[i]));
  }
  for (const Step& step : path) {
    page.timeline.push_back(
        tick(step.seq, step.op_name, step.location.text(), step.module_path, step.seq < 15 ? 2.9f : 1.2f, true));
  }
  page.extras.heat_maps = {make_heat_map(10, shape, bad.runs())};
  page.extras.modules = {{"model", "Encoder"},
                         {"model.layer1", "Attention"},
                         {"model.layer1.query", "Linear"},
                         {"model.layer1.key", "Linear"},
                         {"model.norm", "LayerNorm"}};
  return page;
}

// sqrt(0) under a where(): the forward value is fine, its gradient is 0 * inf.
Page distance() {
  Page page;
  const SourceLocation line = at("distance.py", 11, "Distance.forward");
  const auto backward = [](Step step, std::string node) {
    step.phase = Phase::kBackward;
    step.at_forward = true;
    step.autograd_node = std::move(node);
    step.thread_name = "pt_autograd_0";
    step.device = "cuda:0";
    return step;
  };
  Step div = backward(with_nan(make_step(41, "div", {8}, line, "net.head", "Tensor"), 7, {1}), "SqrtBackward0");
  div.op_name = "SqrtBackward0";  // so a diagnosis calls the culprit of a backward pass
  div.transition = Transition::kFiniteToNan;
  const SourceLocation square_line = at("distance.py", 9, "Distance.forward");
  Step expand =
      backward(with_nan(make_step(43, "expand", {8, 3}, square_line, "net.head"), 21, {1, 0}), "SumBackward1");
  expand.inherited = true;
  Step mul =
      backward(with_nan(make_step(45, "mul", {8, 3}, square_line, "net.head", "Tensor"), 21, {1, 0}), "PowBackward0");
  Step mm = backward(with_nan(make_step(49, "mm", {3, 3}, at("distance.py", 21, "Net.forward"), "net.body"), 9, {0, 0}),
                     "AddmmBackward0");
  Culprit culprit;
  culprit.step = div;
  culprit.cause = Cause::kInvalidOperation;
  culprit.operands = {tensor_operand("self", {8}, 0, 1), tensor_operand("other", {8}, 0, 3.4641)};
  culprit.operands[0].label = "the gradient that arrived";
  culprit.witness = {{{1}, kNan, "0.0 / 0.0 = nan", {{"self", 0.0}, {"other", 0.0}}},
                     {{2}, kNan, "0.0 / 0.0 = nan", {{"self", 0.0}, {"other", 0.0}}}};
  culprit.bad_samples = {1, 2, 3, 4, 5, 6, 7};
  culprit.bad_sample_count = 7;
  culprit.headline = "the gradient of sqrt at 0.0 is nan";
  culprit.explanation =
      "The gradient 0 of a branch that where() did not select meets the slope +inf of sqrt at 0.0, and "
      "0 times inf is NaN. The forward value was fine.";
  culprit.help =
      "Make the argument of sqrt safe before it is taken, and select again after it (the double-where idiom): "
      "safe = torch.where(x > 0, x, 1.0); torch.where(x > 0, safe.sqrt(), 0.0).";
  culprit.path = {div, expand, mul, mm};
  culprit.certain = false;
  culprit.doubt = "An op on another stream wrote to the same memory in the meantime.";
  page.diagnosis.target = mm;
  page.diagnosis.culprits = {culprit};
  page.diagnosis.total_ops = 1204;
  page.diagnosis.deliberate = {with_neg_inf(
      make_step(20, "masked_fill", {8, 8}, at("distance.py", 21, "Net.forward"), "net.attn", "Scalar"), 28, {0, 1})};
  page.diagnosis.blind_spots = {{"compiled", 3, "3 ops inside a compiled region were not traced"},
                                {"sparse", 1, "1 sparse tensor was not scanned"}};
  const Run runs[] = {{1, 8}};
  page.extras.heat_maps = {make_heat_map(41, std::vector<std::int64_t>{8}, runs)};
  for (OpSeq seq = 1; seq <= 52; ++seq) {
    const bool back = seq > 36;
    const bool bad = seq == 41 || seq == 43 || seq == 45 || seq >= 49;
    page.timeline.push_back(tick(seq, back ? "mul" : "linear",
                                 programs + "/distance.py:" + std::to_string(back ? 11 : 21),
                                 seq % 3 ? "net.body" : "net.head", static_cast<float>(std::exp(4 * noise(seq) - 3)),
                                 bad, back ? Phase::kBackward : Phase::kForward));
  }
  return page;
}

// A running mean that was bad when it was loaded.
Page parameter() {
  Page page;
  const SourceLocation line = at("evaluate.py", 11, "main");
  Step norm = with_nan(make_step(5, "batch_norm", {32, 10}, line, "net.4"), 32, {0, 7});
  Step sum = with_nan(make_step(6, "sum", {}, at("evaluate.py", 12, "main"), ""), 1, {});
  Culprit culprit;
  culprit.step = norm;
  culprit.origin = Origin::kParameter;
  culprit.origin_label = "buffer net.4.running_mean";
  culprit.origin_detail = "buffer";
  culprit.cause = Cause::kBadOrigin;
  culprit.operands = {tensor_operand("input", {32, 10}, -2.5, 2.25), tensor_operand("running_mean", {10}, 0.25, 0.75)};
  culprit.operands[1].counts.nan = 1;
  culprit.operands[1].counts.first_nan = {7};
  culprit.operands[1].label = culprit.origin_label;
  culprit.headline = "buffer net.4.running_mean held nan from the start";
  culprit.explanation = "1 of its 10 elements is NaN, at [7]. batch_norm is the first op that read it.";
  culprit.help =
      "Look at what loaded or last wrote it: a checkpoint saved after the run had gone bad, or a batch of one.";
  culprit.path = {norm, sum};
  std::vector<Run> runs;
  for (std::int64_t row = 0; row < 32; ++row) runs.push_back({row * 10 + 7, row * 10 + 8});
  page.diagnosis.target = sum;
  page.diagnosis.culprits = {culprit};
  page.diagnosis.total_ops = 6;
  page.extras.heat_maps = {make_heat_map(5, std::vector<std::int64_t>{32, 10}, runs)};
  page.extras.modules = {{"net", "Sequential"}, {"net.0", "Linear"}, {"net.1", "ReLU"},
                         {"net.2", "Linear"},   {"net.3", "ReLU"},   {"net.4", "BatchNorm1d"}};
  return page;
}

Culprit loop_culprit(Step step, Cause cause, std::uint64_t times, std::string headline, std::string witness,
                     std::string explanation, std::string help, const Step& target) {
  Culprit culprit;
  culprit.step = step;
  culprit.cause = cause;
  culprit.times = times;
  culprit.headline = std::move(headline);
  culprit.witness = {{step.element, step.counts.nan ? kNan : kInf, std::move(witness), {}}};
  culprit.explanation = std::move(explanation);
  culprit.help = std::move(help);
  Step sum = with_nan(make_step(step.seq + 3, "add", {5}, at("loop.py", 13, "<module>"), "", "Tensor"), 5, {0});
  if (step.counts.pos_inf) sum.transition = Transition::kInfToNan;
  culprit.path = {step, sum, target};
  return culprit;
}

// Three lines of one loop, each with a fault of its own, and an innocent mask.
Page loop() {
  Page page;
  Step target = with_nan(make_step(118, "add", {5}, at("loop.py", 13, "<module>"), "", "Tensor"), 5, {0});
  Step ratio = with_nan(make_step(4, "div", {6, 5}, at("loop.py", 9, "<module>"), "", "Tensor"), 30, {0, 0});
  ratio.transition = Transition::kFiniteToNan;
  Step gains = with_pos_inf(make_step(24, "exp", {6, 5}, at("loop.py", 10, "<module>"), ""), 4, {2, 1});
  gains.transition = Transition::kFiniteToInf;
  Step half = with_pos_inf(make_step(16, "_to_copy", {6, 5}, at("loop.py", 11, "<module>"), ""), 11, {0, 3});
  half.transition = Transition::kFiniteToInf;
  half.dtype = "torch.float16";
  page.diagnosis.culprits = {
      loop_culprit(ratio, Cause::kInvalidOperation, 1, "0.0 / 0.0 is nan", "0.0 / 0.0 = nan",
                   "In the first round the batch is multiplied by 0, so every sum that it is divided by is 0 as well.",
                   "Skip empty rounds, or divide by batch.sum(dim=0).clamp_min(eps).", target),
      loop_culprit(half, Cause::kCastOverflow, 11, "1.3e+07 does not fit into float16", "float16(13126458.0) = inf",
                   "float16 ends at 65,504; 11 of 30 values are larger.", "Keep this op in float32 or bfloat16.",
                   target),
      loop_culprit(gains, Cause::kOverflow, 9, "exp(112.4) is inf", "exp(112.4) = inf",
                   "exp of anything above 88.7 does not fit into float32.",
                   "Clamp the exponent before exp, or subtract the maximum.", target)};
  page.diagnosis.target = target;
  page.diagnosis.total_ops = 118;
  page.diagnosis.deliberate = {
      with_neg_inf(make_step(8, "full", {5, 5}, at("loop.py", 12, "<module>"), ""), 25, {0, 0})};
  for (OpSeq seq = 1; seq <= 118; ++seq) {
    const bool bad = seq > 3 && seq % 10 > 3;
    const char* names[] = {"mul", "sum", "randn", "full", "div", "exp", "_to_copy", "sub", "triu", "add"};
    page.timeline.push_back(tick(seq, names[seq % 10], programs + "/loop.py:" + std::to_string(8 + seq % 6), "",
                                 static_cast<float>(std::pow(10.0, 0.03 * static_cast<double>(seq) + noise(seq))),
                                 bad));
  }
  return page;
}

// A path and a timeline of 100,000 ops.
Page large() {
  Page page;
  Culprit culprit;
  const char* names[] = {"linear", "relu", "add", "mul", "layer_norm"};
  constexpr std::size_t kOps = 100'000;
  for (std::size_t i = 0; i < kOps; ++i) {
    const std::string module = "model.layers." + std::to_string(i / 5 % 48) + (i % 2 ? ".mlp" : ".attn");
    Step step = make_step(i + 1, i == 0 ? "div" : names[i % 5], {8, 128},
                          at("attention.py", 16 + static_cast<int>(i % 4), "forward"), module);
    step = i < kOps / 2 ? with_pos_inf(step, 12, {0, 3}) : with_nan(step, 1024, {0, 0});
    if (i == 0) step.transition = Transition::kFiniteToInf;
    if (i == kOps / 2) step.transition = Transition::kInfToNan;
    if (i > 0) step.parents = {i};
    page.timeline.push_back(
        tick(i + 1, step.op_name, step.location.text(), module,
             static_cast<float>(std::pow(10.0, 6 * std::sin(static_cast<double>(i) / 9000) + noise(i))),
             i == 0 || i % 1000 > 990, static_cast<Phase>(i / 20000 % 4)));
    culprit.path.push_back(std::move(step));
  }
  culprit.step = culprit.path.front();
  culprit.headline = "1.0 / 0.0 is inf";
  culprit.cause = Cause::kDivisionByZero;
  page.diagnosis.target = culprit.path.back();
  page.diagnosis.culprits = {culprit};
  page.diagnosis.total_ops = kOps;
  return page;
}

// Names that are markup, or try to leave the script element, or hide what is read.
Page hostile() {
  Page page = attention();
  const std::string markup = "<img src=x onerror=\"document.title='owned'\">";
  const std::string script = "</script><script>document.title='owned'</script>";
  Culprit& culprit = page.diagnosis.culprits[0];
  culprit.step.module_path = "model." + markup;
  culprit.step.location.file = "/tmp/" + markup + ".py";
  culprit.headline = "log(0.0) is -inf " + script + " \xE2\x80\xA8 \xE2\x80\xAE\"quoted' & {{script}} \xff";
  culprit.explanation = "<!--<script>" + script;
  culprit.help = markup;
  culprit.path[0] = culprit.step;
  page.diagnosis.note = "<b>bold</b>" + script;
  page.timeline[3].op_name = markup;
  page.timeline[3].module_path = markup;
  page.extras.modules.push_back({"model." + markup, markup});
  page.extras.heat_maps[0].row_label = markup;
  page.extras.source = [script](const std::string&, int line, std::string* text) {
    *text = "x = '" + script + "'  # " + std::to_string(line);
    return true;
  };
  return page;
}

Page finite() {
  Page page;
  page.diagnosis.target = make_step(7, "sum", {}, at("evaluate.py", 12, "main"), "");
  page.diagnosis.total_ops = 8;
  return page;
}

}  // namespace
}  // namespace sherlorch

int main(int argc, char** argv) {
  using namespace sherlorch;
  if (argc != 3) {
    std::cerr << "usage: make_pages DIRECTORY PROGRAMS\n";
    return 2;
  }
  programs = argv[2];
  const std::pair<const char*, Page (*)()> pages[] = {
      {"attention", attention}, {"distance", distance}, {"parameter", parameter}, {"loop", loop},
      {"large", large},         {"hostile", hostile},   {"finite", finite}};
  for (const auto& [name, make] : pages) {
    const Page page = make();
    std::ofstream out(std::string(argv[1]) + "/" + name + ".html", std::ios::binary);
    out << to_html(page.diagnosis, page.timeline, page.extras);
    if (!out.flush()) return 1;
  }
  return 0;
}
