#include "core/report/text_witness.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/diagnose/explain.h"
#include "core/report/text_util.h"

namespace sherlorch {
namespace {

// Counts in a file that was edited by hand may be negative.
std::uint64_t positive(std::int64_t number) { return number > 0 ? static_cast<std::uint64_t>(number) : 0; }

// "65504", "3.1": an end of a range, where 0.0 would be noise.
std::string bound_text(double value) {
  std::string text = format_number(value);
  if (text.size() > 2 && text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

// "attention = nan": where no operand could be read, the counts have said all of it.
bool says_nothing(const WitnessElement& element) {
  const std::size_t end = element.text.find(" = ");
  return end != std::string::npos && element.text.find_first_of(" (0123456789") == end;
}

}  // namespace

std::string elements_text(const FinitenessCounts& counts) {
  if (counts.numel == 1) return "its only element is " + kinds_text(counts);
  struct Kind {
    const char* name;
    std::int64_t count;
    const std::vector<std::int64_t>& first;
  };
  std::vector<Kind> kinds{{"NaN", counts.nan, counts.first_nan},
                          {"Inf", counts.pos_inf, counts.first_pos_inf},
                          {"-Inf", counts.neg_inf, counts.first_neg_inf}};
  std::vector<const Kind*> present;
  for (const Kind& kind : kinds) {
    if (kind.count > 0) present.push_back(&kind);
  }
  const std::int64_t bad = counts.bad();
  std::string out = bad == counts.numel ? "all " : with_commas(positive(bad)) + " of ";
  out += with_commas(positive(counts.numel)) + (bad == 1 ? " elements is " : " elements are ");
  if (present.size() == 1) {
    const Kind& kind = *present.front();
    return out + kind.name + (kind.first.empty() ? "" : "; first at " + index_text(kind.first));
  }
  out += "bad: ";
  for (const Kind* kind : present) {
    if (kind != present.front()) out += ", ";
    out += with_commas(positive(kind->count)) + " " + kind->name;
    if (!kind->first.empty()) out += " (first at " + index_text(kind->first) + ")";
  }
  return out;
}

std::string witness_text(const WitnessElement& element) {
  std::string out = printable(element.text);
  if (out.empty()) {
    for (const auto& [name, value] : element.operands) {
      out += (out.empty() ? "" : ", ") + printable(name) + " " + format_number(value);
    }
    out += (out.empty() ? "the value is " : " gave ") + format_number(element.value);
  }
  if (!element.index.empty()) out += " at " + index_text(element.index);
  return out;
}

std::string operand_text(const Operand& operand) {
  std::string out = printable(operand.name);
  if (!operand.label.empty()) out += " = " + printable(operand.label);
  if (operand.is_scalar) return out + ": the number " + bound_text(operand.value);
  out += ": shape=" + shape_text(operand.shape) + " dtype=" + printable(operand.dtype);
  if (operand.overwritten) {
    out += ", overwritten in place since: its values are gone";
    if (!operand.counts.finite()) return out + "; before that, " + elements_text(operand.counts);
    return operand.has_range ? out + "; before that, none was larger than " + bound_text(operand.max) + " in magnitude"
                             : out;
  }
  const bool finite = operand.counts.finite();
  if (!finite) out += ", " + elements_text(operand.counts);
  if (!operand.has_range) return out;
  out += finite ? ", " : "; the rest ";
  if (operand.min == operand.max) return out + (finite ? "every value is " : "is ") + format_number(operand.min);
  return out + (finite ? "values in [" : "in [") + bound_text(operand.min) + ", " + bound_text(operand.max) + "]";
}

namespace {

std::string sample_list(const std::vector<std::int64_t>& samples, std::int64_t count) {
  std::string out;
  for (std::size_t i = 0; i < samples.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(samples[i]);
  const std::uint64_t unlisted = positive(count) - std::min<std::uint64_t>(positive(count), samples.size());
  if (unlisted > 0) out += ", and " + with_commas(unlisted) + " more";
  return out;
}

}  // namespace

std::string samples_text(const Culprit& culprit) {
  if (culprit.bad_samples.empty() || culprit.step.shape.empty()) return "";
  const std::int64_t total = culprit.step.shape.front();
  const auto bad = std::max(culprit.bad_sample_count, static_cast<std::int64_t>(culprit.bad_samples.size()));
  std::string out;
  if (bad >= total) {
    out = "bad in " + std::string(total == 1 ? "the only sample" : "every sample") + " of the batch";
  } else {
    out = "bad in " + with_commas(positive(bad)) + " of " + counted(positive(total), "sample") + ": " +
          sample_list(culprit.bad_samples, bad);
  }
  const std::int64_t dropped = culprit.dropped_sample_count;
  if (dropped > 0 && dropped < bad) {
    out += "; " + sample_list(culprit.dropped_samples, dropped) +
           (dropped == 1 ? " does not reach the target" : " do not reach the target");
  }
  return out;
}

std::vector<std::string> witness_rows(const Culprit& culprit) {
  std::vector<std::string> rows;
  if (!culprit.step.counts.finite()) rows.push_back(elements_text(culprit.step.counts));
  for (const WitnessElement& element : culprit.witness) {
    if (!says_nothing(element)) rows.push_back(witness_text(element));
  }
  constexpr std::size_t kMostOperands = 7;  // chosen: of more, the finite ones are noise
  const bool many = culprit.operands.size() > kMostOperands;
  std::size_t finite = 0;
  std::size_t left_out = 0;
  for (const Operand& operand : culprit.operands) {
    const bool quiet = operand.is_scalar ? std::isfinite(operand.value) : operand.counts.finite();
    if (many && quiet && ++finite > 3) {
      ++left_out;
      continue;
    }
    rows.push_back((operand.name == "output" ? "wrote " : "read ") + operand_text(operand));
  }
  if (left_out > 0) rows.push_back("read " + counted(left_out, "more operand") + ", all finite");
  const std::string samples = samples_text(culprit);
  if (!samples.empty()) rows.push_back(samples);
  return rows;
}

}  // namespace sherlorch
