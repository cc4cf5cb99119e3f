#include "core/report/text_verdict.h"

#include <cmath>

#include "sherlorch/report.h"

namespace sherlorch {
namespace {

// " at model.py:12 in model.layer1"
std::string place(const Step& step, const FileNames& files) {
  std::string out;
  if (step.location.known()) out += " at " + files.short_text(step.location);
  if (!step.module_path.empty()) out += " in " + printable(step.module_path);
  return out;
}

std::string kinds_or(const FinitenessCounts& counts, const char* otherwise) {
  const std::string kinds = kinds_text(counts);
  return kinds.empty() ? otherwise : kinds;
}

// Of a number as of a tensor with one element.
FinitenessCounts counts_of(const Operand& operand) {
  if (!operand.is_scalar) return operand.counts;
  FinitenessCounts counts;
  counts.numel = 1;
  counts.nan = std::isnan(operand.value) ? 1 : 0;
  counts.pos_inf = std::isinf(operand.value) && operand.value > 0 ? 1 : 0;
  counts.neg_inf = std::isinf(operand.value) && operand.value < 0 ? 1 : 0;
  return counts;
}

// "log at model.py:12 in net made -Inf", with `did` in place of "made".
std::string op_sentence(const Step& step, const FileNames& files, const std::string& did) {
  const std::string op = printable(step.op_name);
  const std::string where = place(step, files);
  switch (step.phase) {
    case Phase::kForward:
      break;
    case Phase::kBackward: {
      // The place is the forward op's, so the words must not say that the op ran there.
      const std::string around = node_around(step);
      const std::string node = around.empty() ? "" : " inside " + around;
      const std::string line = files.short_text(step.location);
      if (!step.at_forward) return op + node + " " + did + " in backward" + where;
      std::string out = op + node + " " + did + " in " + (line.empty() ? "backward" : "the backward of " + line);
      return step.module_path.empty() ? out : out + " in " + printable(step.module_path);
    }
    case Phase::kRecompute:
      return op + " " + did + where + ", while checkpointing recomputed it";
    case Phase::kOptimizer:
      return op + " " + did + " in the optimizer's step" + where;
  }
  return op + " " + did + where;
}

std::string origin_sentence(const Culprit& culprit, const FileNames& files) {
  const std::string kinds = origin_kinds(culprit);
  if (culprit.cause == Cause::kDeliberateInfinity) {
    // The infinities that it passed on are those of the program; the NaN is its own.
    const bool nan = culprit.step.counts.nan > 0;
    const std::string made = "made " + (nan ? "NaN" : kinds_or(culprit.step.counts, "a non-finite value"));
    const std::string label = culprit.origin_label.empty() ? "" : " (" + printable(culprit.origin_label) + ")";
    return op_sentence(culprit.step, files, made) + " out of an infinity that the program put there" + label;
  }
  if (culprit.origin == Origin::kConstant) {
    return op_sentence(culprit.step, files, "read " + kinds) +
           ", which the program itself wrote down: " + origin_text(culprit);
  }
  if (culprit.origin_detail == "external write") {
    return op_sentence(culprit.step, files, "read " + kinds) +
           ", which was written from outside torch: " + printable(culprit.origin_label);
  }
  return origin_text(culprit) + " held " + kinds + " before any op touched it; " + printable(culprit.step.op_name) +
         place(culprit.step, files) + " was the first to read it";
}

// "; layer_norm at model.py:40 turned it into NaN"
std::string turn_sentence(const Culprit& culprit, const FileNames& files) {
  const Step* turn = nullptr;  // the first that made NaN of it, or else the last that made an infinity of a NaN
  for (std::size_t i = 1; i < culprit.path.size(); ++i) {
    const Step& step = culprit.path[i];
    // An infinity that only changed its sign is the same trouble.
    if (step.transition == Transition::kInfToNan || step.transition == Transition::kNanToInf) turn = &step;
    if (step.transition == Transition::kInfToNan) break;
  }
  if (turn == nullptr) return "";
  const std::string kind = turn->transition == Transition::kInfToNan ? "NaN" : kinds_or(turn->counts, "Inf");
  std::string out = "; " + printable(turn->op_name);
  if (turn->location.known() && turn->location != culprit.step.location) {
    out += " at " + files.short_text(turn->location);
  }
  return out + " turned it into " + kind;
}

}  // namespace

std::string origin_text(const Culprit& culprit) {
  std::string out = printable(culprit.origin_label);
  if (out.empty()) {
    switch (culprit.origin) {
      case Origin::kOp:
      case Origin::kInput:
        out = "an input";
        break;
      case Origin::kParameter:
        out = "a parameter";
        break;
      case Origin::kConstant:
        out = "a constant";
        break;
      case Origin::kUninitialized:
        out = "uninitialized memory";
        break;
    }
  }
  const bool said = out.starts_with(culprit.origin_detail + " ");  // "buffer net.4.running_var", detail "buffer"
  if (!culprit.origin_detail.empty() && !said) out += " (" + printable(culprit.origin_detail) + ")";
  return out;
}

std::string origin_kinds(const Culprit& culprit) {
  const Operand* origin = nullptr;
  for (const Operand& operand : culprit.operands) {
    if (operand.name == "output" || counts_of(operand).finite()) continue;
    const bool named = !culprit.origin_label.empty() && operand.label == culprit.origin_label;
    if (origin == nullptr || named) origin = &operand;
    if (named) break;
  }
  return origin == nullptr ? "a non-finite value" : kinds_text(counts_of(*origin));
}

std::string culprit_verdict(const Culprit& culprit, const FileNames& files) {
  const std::string made = "made " + kinds_or(culprit.step.counts, "a non-finite value");
  std::string out =
      culprit.origin == Origin::kOp ? op_sentence(culprit.step, files, made) : origin_sentence(culprit, files);
  out += turn_sentence(culprit, files);
  if (culprit.times > 1) out += " (" + with_commas(culprit.times) + " times)";
  return culprit.certain ? out : "not certain: " + out;
}

std::string no_culprit_verdict(const Diagnosis& diagnosis, const FileNames& files) {
  const Step& target = diagnosis.target;
  const std::string node = "node [" + std::to_string(target.seq) + "] " + printable(target.op_name);
  const std::string traced =
      with_commas(diagnosis.total_ops) + (diagnosis.total_ops == 1 ? " op was traced." : " ops were traced.");
  if (target.counts.finite()) {
    return "No non-finite values found in target tensor (" + node + "). " + traced;
  }
  const std::string holds = "The target tensor (" + node + ") holds " + kinds_text(target.counts);
  if (diagnosis.deliberate.empty()) return holds + ", but what made it was not seen. " + traced;
  const Step& first = diagnosis.deliberate.front();
  return holds + " that the program put there on purpose: " + printable(first.op_name) + place(first, files) +
         ". Nothing is to blame. " + traced;
}

std::string verdict(const Diagnosis& diagnosis, const FileNames& files) {
  if (diagnosis.ok()) return no_culprit_verdict(diagnosis, files);
  std::string out = culprit_verdict(diagnosis.culprits.front(), files);
  const std::size_t more = diagnosis.culprits.size() - 1;
  if (more > 0) out += " (and " + counted(more, "more culprit") + ")";
  return out;
}

std::string verdict(const Diagnosis& diagnosis) { return verdict(diagnosis, FileNames(diagnosis)); }

}  // namespace sherlorch
