// Diagnoses as real runs give them, for the tests of the reports.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sherlorch/diagnosis.h"

namespace sherlorch::examples {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

// How often `what` stands in `text`, without overlap.
inline std::size_t occurrences(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

inline Step step(OpSeq seq, std::string op, std::vector<std::int64_t> shape, SourceLocation location,
                 std::string module_path) {
  Step s;
  s.seq = seq;
  s.operator_name = "aten::" + op;
  s.op_name = std::move(op);
  s.shape = std::move(shape);
  s.dtype = "torch.float32";
  s.device = "cpu";
  s.location = std::move(location);
  s.module_path = std::move(module_path);
  s.counts.numel = 1;
  for (const std::int64_t size : s.shape) s.counts.numel *= size;
  return s;
}

// The original's example: log(relu(x)) two modules deep, which LayerNorm turns into NaN.
inline Diagnosis forward_log() {
  const std::string file = "/home/ann/run/find_nan_in_transformer.py";
  const SourceLocation log_line{file, 25, "forward"};
  const SourceLocation mean_line{file, 35, "forward"};
  const SourceLocation norm_line{file, 36, "forward"};

  Step log = step(10, "log", {4, 4, 16, 16}, log_line, "model.layer1");
  log.counts.neg_inf = 2051;
  log.counts.first_neg_inf = {0, 0, 0, 3};
  log.transition = Transition::kFiniteToInf;
  log.element = {0, 0, 0, 3};
  Step mean = step(11, "mean", {4, 4, 16}, mean_line, "model");
  mean.counts.neg_inf = 256;
  mean.counts.first_neg_inf = {0, 0, 0};
  mean.parents = {10};
  Step unsqueeze = step(12, "unsqueeze", {4, 4, 16, 1}, norm_line, "model");
  unsqueeze.counts.neg_inf = 256;
  unsqueeze.counts.first_neg_inf = {0, 0, 0, 0};
  unsqueeze.inherited = true;
  unsqueeze.parents = {11};
  Step add = step(13, "add", {4, 4, 16, 32}, norm_line, "model");
  add.operator_name = "aten::add.Tensor";
  add.counts.neg_inf = 8192;
  add.counts.first_neg_inf = {0, 0, 0, 0};
  add.parents = {12};
  Step norm = step(14, "layer_norm", {4, 4, 16, 32}, norm_line, "model.norm");
  norm.counts.nan = 8192;
  norm.counts.first_nan = {0, 0, 0, 0};
  norm.transition = Transition::kInfToNan;
  norm.parents = {13};

  Culprit culprit;
  culprit.step = log;
  culprit.cause = Cause::kDivisionByZero;
  culprit.stack = {{file, 58, "<module>"},
                   {file, 50, "main"},
                   {"/usr/lib/python3/site-packages/torch/nn/modules/module.py", 1751, "_wrapped_call_impl"},
                   {file, 35, "forward"},
                   {file, 25, "forward"}};
  Operand self;
  self.name = "self";
  self.shape = log.shape;
  self.dtype = log.dtype;
  self.counts.numel = 4096;
  self.has_range = true;
  self.min = 0;
  self.max = 3.1;
  culprit.operands = {self};
  culprit.witness = {{{0, 0, 0, 3}, -kInf, "log(0.0) = -inf", {{"self", 0.0}}},
                     {{0, 0, 0, 7}, -kInf, "log(0.0) = -inf", {{"self", 0.0}}}};
  culprit.bad_samples = {0, 1, 2, 3};
  culprit.bad_sample_count = 4;
  culprit.headline = "log(0.0) is -inf";
  culprit.explanation = "The logarithm has a pole at 0, and 2,051 elements of its input are exactly 0.";
  culprit.help = "Keep the argument above 0: torch.log(x + 1e-6), or torch.log(x.clamp_min(1e-6)).";
  culprit.path = {log, mean, unsqueeze, add, norm};

  Diagnosis d;
  d.target = norm;
  d.culprits = {culprit};
  d.total_ops = 15;
  return d;
}

// sqrt(0) under a where(): the forward is fine, its backward is 0 * inf. Two lines do it, one of them in a loop.
inline Diagnosis backward_sqrt() {
  const SourceLocation sqrt_line{"/home/ann/run/losses/safe.py", 31, "distance"};
  const SourceLocation norm_line{"/home/ann/run/model/safe.py", 8, "penalty"};

  Step div = step(88, "div", {8, 3}, sqrt_line, "net.head");
  div.operator_name = "aten::div.Tensor";
  div.device = "cuda:0";
  div.phase = Phase::kBackward;
  div.at_forward = true;
  div.autograd_node = "SqrtBackward0";
  div.thread_name = "pt_autograd_0";
  div.counts.nan = 2;
  div.counts.first_nan = {3, 0};
  div.transition = Transition::kFiniteToNan;
  Step mul = step(91, "mul", {8, 3}, sqrt_line, "net.head");
  mul.device = "cuda:0";
  mul.phase = Phase::kBackward;
  mul.at_forward = true;
  mul.autograd_node = "MulBackward0";
  mul.counts.nan = 2;
  mul.counts.first_nan = {3, 0};
  mul.parents = {88};
  Step grad = step(97, "mm", {3, 3}, {"/home/ann/run/train.py", 70, "step"}, "net.body");
  grad.device = "cuda:0";
  grad.phase = Phase::kBackward;
  grad.at_forward = true;
  grad.autograd_node = "MmBackward0";
  grad.counts.nan = 9;
  grad.counts.first_nan = {0, 0};
  grad.parents = {91};

  Culprit first;
  first.step = div;
  first.cause = Cause::kInvalidOperation;
  Operand upstream;
  upstream.name = "self";
  upstream.shape = {8, 3};
  upstream.dtype = "torch.float32";
  upstream.counts.numel = 24;
  upstream.has_range = true;
  upstream.min = 0;
  upstream.max = 0.25;
  Operand slope = upstream;
  slope.name = "other";
  slope.max = 2.5;
  first.operands = {upstream, slope};
  first.witness = {{{3, 0}, kNan, "0.0 / 0.0 = nan", {{"self", 0.0}, {"other", 0.0}}}};
  first.bad_samples = {3};
  first.bad_sample_count = 1;
  first.headline = "0.0 / 0.0 is nan";
  first.explanation =
      "The gradient 0 of a branch that was not selected meets the slope +inf of sqrt at 0.0, and 0 times inf is NaN; "
      "the forward value was fine.";
  first.help = "Use the double-where idiom: replace the argument before the sqrt as well as the result after it.";
  first.path = {div, mul, grad};

  Culprit second = first;
  second.step.seq = 93;
  second.step.location = norm_line;
  second.step.module_path = "";
  second.step.thread_name = "";
  second.path = {second.step, grad};
  second.times = 7;
  second.certain = false;
  second.doubt = "the op's input had been overwritten when it was asked about";
  second.witness.clear();
  second.operands.clear();
  second.bad_samples.clear();
  second.bad_sample_count = 0;
  second.explanation.clear();
  second.help.clear();

  Step mask = step(20, "masked_fill", {8, 3}, {"/home/ann/run/train.py", 61, "step"}, "net.attn");
  mask.counts.neg_inf = 12;
  mask.counts.first_neg_inf = {0, 1};

  Diagnosis d;
  d.target = grad;
  d.culprits = {first, second};
  d.deliberate = {mask};
  d.total_ops = 1204;
  d.blind_spots = {{"compiled", 3, "3 ops inside a compiled region were not traced"},
                   {"sparse", 1, "1 sparse tensor was not scanned"}};
  return d;
}

// A checkpoint with a bad running mean: nobody computed the NaN, the first reader is named.
inline Diagnosis parameter_origin() {
  const SourceLocation line{"eval.py", 9, "<module>"};
  Step sub = step(3, "sub", {32, 10}, line, "net.4");
  sub.operator_name = "aten::sub.Tensor";
  sub.counts.nan = 32;
  sub.counts.first_nan = {0, 7};
  Step sum = step(7, "sum", {}, {"eval.py", 12, "<module>"}, "");
  sum.counts.nan = 1;
  sum.parents = {3};

  Culprit culprit;
  culprit.step = sub;
  culprit.origin = Origin::kParameter;
  culprit.origin_label = "parameter net.4.running_mean";
  culprit.origin_detail = "buffer";
  culprit.cause = Cause::kBadOrigin;
  Operand self;
  self.name = "self";
  self.shape = {32, 10};
  self.dtype = "torch.float32";
  self.counts.numel = 320;
  self.has_range = true;
  self.min = -2.5;
  self.max = 2.25;
  Operand other;
  other.name = "other";
  other.label = culprit.origin_label;
  other.shape = {10};
  other.dtype = "torch.float32";
  other.counts.numel = 10;
  other.counts.nan = 1;
  other.counts.first_nan = {7};
  other.has_range = true;
  other.min = 0.25;
  other.max = 0.75;
  Operand alpha;
  alpha.name = "alpha";
  alpha.is_scalar = true;
  alpha.value = 1.5;
  culprit.operands = {self, other, alpha};
  culprit.headline = "parameter net.4.running_mean held nan before any op touched it";
  culprit.help = "Look at what loaded or last wrote it.";
  culprit.path = {sub, sum};

  Diagnosis d;
  d.target = sum;
  d.culprits = {culprit};
  d.total_ops = 8;
  return d;
}

// sum() over a path of `ops` additions that starts at a division by zero and becomes NaN in the middle.
inline Diagnosis long_path(std::size_t ops) {
  const SourceLocation line{"long.py", 3, "<module>"};
  Culprit culprit;
  for (std::size_t i = 0; i < ops; ++i) {
    Step s = step(i + 1, i == 0 ? "div" : i % 1000 == 7 ? "mul" : "add", {2}, line, "");
    (i < ops / 2 ? s.counts.pos_inf : s.counts.nan) = 1;
    if (i == 0) s.transition = Transition::kFiniteToInf;
    if (i == ops / 2 && i > 0) s.transition = Transition::kInfToNan;
    if (i > 0) s.parents = {i};
    culprit.path.push_back(std::move(s));
  }
  culprit.step = culprit.path.front();
  Diagnosis d;
  d.target = culprit.path.back();
  d.culprits = {culprit};
  d.total_ops = ops;
  return d;
}

inline Diagnosis finite() {
  Diagnosis d;
  d.target = step(7, "sum", {}, {}, "");
  d.total_ops = 8;
  return d;
}

}  // namespace sherlorch::examples
