#include "core/report/text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/report/text_path.h"
#include "core/report/text_source.h"
#include "core/report/text_util.h"
#include "core/report/text_verdict.h"
#include "core/report/text_witness.h"
#include "sherlorch/report.h"

namespace sherlorch {
namespace {

enum class Paint { kBold, kDim, kRed, kGreen, kCyan };

const char* escape_of(Paint paint) noexcept {
  switch (paint) {
    case Paint::kBold:
      return "\x1b[1m";
    case Paint::kDim:
      return "\x1b[2m";
    case Paint::kRed:
      return "\x1b[1;31m";
    case Paint::kGreen:
      return "\x1b[32m";
    case Paint::kCyan:
      return "\x1b[36m";
  }
  return "";
}

std::string flag_of(const Step& step) {
  const std::string kinds = kinds_text(step.counts);
  return kinds.empty() ? "" : "  <-- " + kinds;
}

// What the summary line cannot say: phase, device, thread, repetitions.
std::string circumstances(const Culprit& culprit) {
  const Step& step = culprit.step;
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : "; ") + text; };
  if (step.phase != Phase::kForward) {
    std::string text = "phase " + std::string(phase_name(step.phase));
    if (const std::string node = node_around(step); !node.empty()) text += ", inside " + node;
    add(text);
    if (step.at_forward && step.location.known()) add("the line is that of the forward op");
  }
  if (!step.device.empty() && step.device != "cpu") add("on " + printable(step.device));
  if (!step.thread_name.empty()) {
    const bool said = step.thread_name.starts_with("thread ");
    add((said ? "on " : "on thread ") + printable(step.thread_name));
  }
  if (culprit.times > 1) add(with_commas(culprit.times) + " times on this line");
  if (culprit.first_call > 1) {
    const std::string call = with_commas(culprit.first_call);
    add(culprit.times > 1 ? "first in call " + call + " of it" : "in call " + call + " of this line");
  }
  return out;
}

// Not the user's code: site-packages, dist-packages, the standard library, frozen modules.
bool is_installed(std::string_view file) {
  return file.find("-packages/") != std::string_view::npos || file.find("/lib/python3") != std::string_view::npos ||
         file.starts_with("<frozen ");
}

class TextReport {
 public:
  TextReport(const Diagnosis& diagnosis, const TextOptions& options)
      : diagnosis_(diagnosis), options_(options), files_(diagnosis) {}

  std::string write() {
    if (diagnosis_.ok()) {
      out_ +=
          paint(diagnosis_.target.counts.finite() ? Paint::kGreen : Paint::kBold, verdict(diagnosis_, files_)) + "\n";
      footer();
    } else {
      line(0, paint(Paint::kBold, verdict(diagnosis_, files_)));  // one line, however long: it is what people grep for
      line(0, "");
      line(0, "sherlorch diagnosis for [" + std::to_string(diagnosis_.target.seq) + "] " +
                  printable(diagnosis_.target.op_name) + " (shape=" + shape_text(diagnosis_.target.shape) + "):");
      line(2, "Found " + with_commas(diagnosis_.culprits.size()) + " culprit op(s) out of " +
                  with_commas(diagnosis_.total_ops) + " traced ops.");
      const std::size_t n = diagnosis_.culprits.size();
      const std::size_t shown = options_.max_culprits == 0 ? n : std::min(n, options_.max_culprits);
      for (std::size_t i = 0; i < shown; ++i) culprit(i);
      if (shown < n) {
        line(0, "");
        line(2, "... and " + counted(n - shown, "more culprit") + " that ran later.");
      }
      line(0, "");
      footer();
    }
    while (!out_.empty() && out_.back() == '\n') out_.pop_back();
    return std::move(out_);
  }

 private:
  std::string paint(Paint paint, std::string_view text) const {
    if (!options_.color || text.empty()) return std::string(text);
    return escape_of(paint) + std::string(text) + "\x1b[0m";
  }

  void line(std::size_t indent, std::string_view text) {
    if (!text.empty()) out_.append(indent, ' ');
    out_ += text;
    out_ += '\n';
  }

  // Columns left for prose at this indent; never so few that each word stands alone.
  std::size_t width(std::size_t indent) const { return options_.width > indent + 40 ? options_.width - indent : 40; }

  // "Label:   first paragraph" with its continuation and the further paragraphs below it.
  void labelled(std::size_t indent, std::string_view label, std::size_t label_width,
                const std::vector<std::string>& paragraphs) {
    std::string head(label);
    head.resize(std::max(label_width, head.size() + 1), ' ');
    const std::size_t hang = indent + head.size();
    bool first = true;
    for (const std::string& paragraph : paragraphs) {
      for (const std::string& row : wrap(paragraph, width(hang))) {
        if (first) {
          line(indent, paint(Paint::kCyan, label) + head.substr(label.size()) + row);
        } else {
          line(hang, row);
        }
        first = false;
      }
    }
  }

  void culprit(std::size_t i) {
    const Culprit& culprit = diagnosis_.culprits[i];
    const std::string flag = flag_of(culprit.step);
    std::string summary = summary_line(culprit.step);
    summary.resize(summary.size() - flag.size());
    line(0, "");
    line(2, paint(Paint::kBold, "Culprit #" + std::to_string(i + 1) + ": ") + summary + paint(Paint::kRed, flag));
    if (culprit.origin != Origin::kOp) labelled(4, "Origin:", kLabel, {origin_text(culprit)});
    const std::string extra = circumstances(culprit);
    if (!extra.empty()) labelled(4, "When:", kLabel, {extra});
    if (options_.show_source) source(culprit);
    labelled(4, "Witness:", kLabel, witness_rows(culprit));
    labelled(4, "Cause:", kLabel, cause(culprit));
    if (!culprit.help.empty()) labelled(4, "Help:", kLabel, {culprit.help});
    callers(culprit);
    path(culprit);
  }

  void source(const Culprit& culprit) {
    const std::vector<SourceLine> lines = read_source(culprit.step.location, 1, options_.source);
    if (lines.empty()) return;
    const std::size_t digits = std::to_string(lines.back().number).size();
    for (const SourceLine& source : lines) {
      const bool here = source.number == culprit.step.location.line;
      std::string number = std::to_string(source.number);
      number.insert(0, digits - number.size(), ' ');
      std::string text = (here ? "> " : "  ") + number + " |";
      if (!source.text.empty()) text += " " + source_text(source.text);
      line(6, paint(here ? Paint::kBold : Paint::kDim, text));
    }
  }

  // Tabs as spaces, cut to the width.
  std::string source_text(std::string_view raw) const {
    std::string spaced;
    for (const char c : raw) spaced += c == '\t' ? std::string(4, ' ') : std::string(1, c);
    std::string text = printable(spaced);
    const std::size_t most = width(16);
    if (columns(text) <= most) return text;
    std::size_t at = 0;
    for (std::size_t column = 0; column + 3 < most; ++column) at += decode_utf8(text, at).length;
    return text.substr(0, at) + "...";
  }

  std::vector<std::string> cause(const Culprit& culprit) const {
    std::string first = culprit.cause == Cause::kUnknown ? "" : cause_name(culprit.cause);
    if (!culprit.headline.empty()) first += (first.empty() ? "" : ": ") + culprit.headline;
    std::vector<std::string> rows;
    if (!first.empty()) rows.push_back(first);
    if (!culprit.explanation.empty()) rows.push_back(culprit.explanation);
    return rows;
  }

  void callers(const Culprit& culprit) {
    std::vector<std::string> frames;  // innermost first
    bool more = false;
    for (auto frame = culprit.stack.rbegin(); frame != culprit.stack.rend(); ++frame) {
      const bool same_line = frame->file == culprit.step.location.file && frame->line == culprit.step.location.line;
      if (!frame->known() || is_installed(frame->file) || (same_line && frames.empty())) continue;
      if (frames.size() == options_.max_frames) {
        more = true;
        break;
      }
      std::string text = files_.short_text(*frame);
      if (!frame->function.empty()) text += " in " + printable(frame->function);
      frames.push_back(std::move(text));
    }
    if (frames.empty()) return;
    std::string text;
    for (const std::string& frame : frames) text += (text.empty() ? "" : ", from ") + frame;
    labelled(4, "Called:", kLabel, {"from " + text + (more ? ", from ..." : "")});
  }

  void path(const Culprit& culprit) {
    if (culprit.path.size() < 2) return;
    line(4, paint(Paint::kCyan, "Path to target:"));
    const Step* before = nullptr;
    for (const PathItem& item : fold_path(culprit.path, options_.max_path_steps)) {
      if (item.step == nullptr) {
        line(6, paint(Paint::kDim, "... " + gap_text(item) + " ..."));
        continue;
      }
      path_step(*item.step, before);
      before = item.step;
    }
  }

  // As summary_line(), with the short file name, the transition in words, and the dtype and the label where they are
  // not those of the step before (null: none).
  void path_step(const Step& step, const Step* before) {
    std::string text =
        "-> [" + std::to_string(step.seq) + "] " + printable(step.op_name) + "  shape=" + shape_text(step.shape);
    const auto is_new = [&](std::string Step::* member) {
      return !(step.*member).empty() && (before == nullptr || before->*member != step.*member);
    };
    if (is_new(&Step::dtype)) text += " dtype=" + printable(step.dtype);
    if (is_new(&Step::label)) text += "  = " + printable(step.label);
    if (!step.module_path.empty()) text += "  [" + printable(step.module_path) + "]";
    if (step.location.known()) text += "  (" + files_.short_text(step.location) + ")";
    if (const std::string node = node_around(step); !node.empty()) {
      text += "  in " + node;
    } else if (step.phase != Phase::kForward) {
      text += "  in " + std::string(phase_name(step.phase));
    }
    const std::string transition = transition_text(step);
    const std::string kinds = kinds_text(step.counts);
    const std::string& mark = transition.empty() ? kinds : transition;
    line(6, mark.empty() ? text : text + paint(transition.empty() ? Paint::kDim : Paint::kRed, "  <-- " + mark));
  }

  void footer() {
    constexpr std::size_t kWidth = 13;  // by definition: the longest label and a space
    if (!diagnosis_.note.empty()) labelled(2, "Note:", kWidth, {diagnosis_.note});
    if (!diagnosis_.deliberate.empty()) labelled(2, "Deliberate:", kWidth, {deliberate(width(2 + kWidth))});
    if (!diagnosis_.blind_spots.empty() || !diagnosis_.ok()) labelled(2, "Blind spots:", kWidth, blind_spots());
    if (!diagnosis_.ok()) labelled(2, "Certainty:", kWidth, certainty());
  }

  // One line: as many as fit, the rest counted.
  std::string deliberate(std::size_t most) const {
    std::string out;
    for (std::size_t i = 0; i < diagnosis_.deliberate.size(); ++i) {
      const Step& step = diagnosis_.deliberate[i];
      const bool literal = step.op_name == "lift_fresh";  // what torch.tensor() does last
      std::string text = (i == 0 ? "" : ", ") + (literal ? "a literal" : printable(step.op_name));
      if (step.location.known()) text += " at " + files_.short_text(step.location);
      if (!step.counts.finite()) text += " (" + kinds_text(step.counts) + ")";
      constexpr std::size_t kTail = 34;  // ", and 99 more, put there on purpose"
      if (i > 0 && columns(out) + columns(text) + kTail > most) {
        out += ", and " + with_commas(diagnosis_.deliberate.size() - i) + " more";
        break;
      }
      out += text;
    }
    return out + ": put there on purpose, innocent";
  }

  std::vector<std::string> blind_spots() const {
    if (diagnosis_.blind_spots.empty()) return {"none"};
    std::vector<std::string> rows;
    for (const BlindSpot& spot : diagnosis_.blind_spots) {
      rows.push_back(spot.text.empty() ? spot.kind + ": " + with_commas(spot.count) : spot.text);
    }
    return rows;
  }

  std::vector<std::string> certainty() const {
    std::vector<std::string> rows;
    const bool alone = diagnosis_.culprits.size() == 1;
    for (std::size_t i = 0; i < diagnosis_.culprits.size(); ++i) {
      const Culprit& culprit = diagnosis_.culprits[i];
      if (culprit.certain) continue;
      if (rows.size() == 5) {  // chosen: more doubts than this are read in the data
        rows.emplace_back("... and more; the data (JSON, page) says it of each");
        break;
      }
      const std::string who = alone ? "not certain" : "culprit #" + std::to_string(i + 1) + " is not certain";
      rows.push_back(who + (culprit.doubt.empty() ? "" : ": " + culprit.doubt));
    }
    if (rows.empty()) rows.emplace_back("certain");
    return rows;
  }

  static constexpr std::size_t kLabel = 9;  // by definition: "Witness: "

  const Diagnosis& diagnosis_;
  const TextOptions& options_;
  FileNames files_;
  std::string out_;
};

}  // namespace

std::string summary_line(const Step& step) {
  std::string out = "[" + std::to_string(step.seq) + "] " + printable(step.op_name) +
                    "  shape=" + shape_text(step.shape) + " dtype=" + printable(step.dtype);
  if (!step.module_path.empty()) out += "  [" + printable(step.module_path) + "]";
  if (step.location.known()) out += "  (" + printable(step.location.text()) + ")";
  return out + flag_of(step);
}

std::string to_text(const Diagnosis& diagnosis, const TextOptions& options) {
  return TextReport(diagnosis, options).write();
}

}  // namespace sherlorch
