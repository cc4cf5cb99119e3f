#include "sherlorch/report.h"

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/report/text.h"
#include "core/report/text_path.h"
#include "core/report/text_util.h"
#include "core/report/text_verdict.h"

namespace sherlorch {
namespace {

// Chosen: a path of 60 nodes is a tall picture, but one that can be read.
constexpr std::size_t kMaxDrawnSteps = 60;

// A quoted string. Graphviz reads escapes and HTML entities in labels, so both are taken out; "\n" starts a new line.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += c;
    }
  }
  return out + "\"";
}

class DotReport {
 public:
  explicit DotReport(const Diagnosis& diagnosis) : diagnosis_(diagnosis), files_(diagnosis) {
    for (const Culprit& culprit : diagnosis.culprits) culprits_.insert(culprit.step.seq);
  }

  std::string write() {
    out_ = "digraph sherlorch {\n";
    out_ += "  graph [rankdir=TB, labelloc=t, fontname=\"Helvetica\", label=" + quoted(verdict(diagnosis_, files_)) +
            "];\n";
    out_ += "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"Helvetica\"];\n";
    out_ += "  edge [fontname=\"Helvetica\", fontsize=10];\n";
    for (const Culprit& culprit : diagnosis_.culprits) {
      node(culprit.step);
      if (culprit.origin != Origin::kOp) origin(culprit);
      path(culprit);
    }
    node(diagnosis_.target);
    return std::move(out_) + "}\n";
  }

 private:
  static std::string id(const Step& step) { return "op" + std::to_string(step.seq); }

  void node(const Step& step) {
    if (!nodes_.insert(step.seq).second) return;
    std::string label = "[" + std::to_string(step.seq) + "] " + printable(step.op_name);
    if (const std::string node_name = node_around(step); !node_name.empty()) label += " in " + node_name;
    label += "\n" + shape_text(step.shape) + " " + printable(step.dtype);
    if (!step.module_path.empty()) label += "\n" + printable(step.module_path);
    const std::string where = files_.short_text(step.location);
    if (!where.empty()) label += "\n" + where;
    if (!step.counts.finite()) {
      label += "\n" + kinds_text(step.counts) + ": " + with_commas(static_cast<std::uint64_t>(step.counts.bad())) +
               " of " + with_commas(static_cast<std::uint64_t>(step.counts.numel));
    }
    out_ += "  " + id(step) + " [label=" + quoted(label) + ", tooltip=" + quoted(summary_line(step));
    if (culprits_.contains(step.seq)) out_ += ", fillcolor=\"#d62728\", fontcolor=white";
    if (step.seq == diagnosis_.target.seq) out_ += ", peripheries=2";
    out_ += "];\n";
  }

  // Held by no op: a note with an edge to the op that read it first.
  void origin(const Culprit& culprit) {
    const std::string name = "origin" + std::to_string(culprit.step.seq);
    if (!edges_.insert(name).second) return;
    out_ += "  " + name + " [shape=note, style=filled, fillcolor=\"#ffdd99\", label=" + quoted(origin_text(culprit)) +
            "];\n";
    out_ += "  " + name + " -> " + id(culprit.step) + " " + edge_label(origin_kinds(culprit)) + "];\n";
  }

  void path(const Culprit& culprit) {
    const Step* last = nullptr;
    const PathItem* gap = nullptr;
    const std::vector<PathItem> items = fold_path(culprit.path, kMaxDrawnSteps);
    for (const PathItem& item : items) {
      if (item.step == nullptr) {
        gap = &item;
        continue;
      }
      node(*item.step);
      if (last != nullptr) connect(*last, gap, *item.step);
      last = item.step;
      gap = nullptr;
    }
  }

  void connect(const Step& from, const PathItem* gap, const Step& to) {
    if (gap == nullptr) return edge(id(from), id(to), from, to);
    const std::string name = "gap" + std::to_string(from.seq) + "_" + std::to_string(to.seq);
    edge(id(from), name, from, from);
    if (edges_.insert(name).second) {
      out_ += "  " + name + " [shape=plaintext, style=\"\", label=" + quoted("... " + gap_text(*gap) + " ...") + "];\n";
    }
    edge(name, id(to), from, to);
  }

  // The spaces keep the label off the line.
  static std::string edge_label(const std::string& text) { return "[label=" + quoted(" " + text + " "); }

  void edge(const std::string& from, const std::string& to, const Step& carried, const Step& head) {
    if (!edges_.insert(from + ">" + to).second) return;
    std::string label = kinds_text(carried.counts);
    const bool changed = &carried != &head && head.transition != Transition::kNone;
    if (changed) {
      const std::string turned = kinds_text(head.counts);
      label += (label.empty() ? "" : " to ") + turned;
    }
    out_ += "  " + from + " -> " + to + " " + edge_label(label);
    if (changed) out_ += ", color=\"#d62728\", fontcolor=\"#d62728\", penwidth=2";
    out_ += "];\n";
  }

  const Diagnosis& diagnosis_;
  FileNames files_;
  std::set<OpSeq> culprits_;
  std::set<OpSeq> nodes_;
  std::set<std::string> edges_;  // written already
  std::string out_;
};

}  // namespace

std::string to_dot(const Diagnosis& diagnosis) { return DotReport(diagnosis).write(); }

}  // namespace sherlorch
