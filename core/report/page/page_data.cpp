#include "core/report/page/page_data.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/report/json_writer.h"
#include "core/report/text_source.h"
#include "core/report/text_util.h"
#include "sherlorch/diagnosis.h"

namespace sherlorch {
namespace {

// Chosen: the script shows three lines on each side.
constexpr int kContext = 3;
// Chosen: 2,000 places with their neighbours are about half a megabyte; the culprits' own come first.
constexpr std::size_t kMaxPlaces = 2000;
constexpr std::size_t kMaxLineBytes = 400;  // chosen: a longer line is data, not code

// Three digits are enough for a picture; what is not finite has no number in JSON.
void append_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.3g", value);
  out += text.data();
}

// Appends `items` as an array, each by append_one(item).
template <typename Items, typename AppendOne>
void append_array(std::string& out, const Items& items, AppendOne&& append_one) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    append_one(item);
  }
  out += ']';
}

// Distinct strings in order of first sight.
class Names {
 public:
  std::size_t id(const std::string& name) {
    const auto [at, inserted] = ids_.try_emplace(name, ids_.size());
    if (inserted) order_.push_back(&at->first);
    return at->second;
  }
  void append_to(std::string& out) const {
    append_array(out, order_, [&](const std::string* name) { out += json_string(*name); });
  }

 private:
  std::unordered_map<std::string, std::size_t> ids_;
  std::vector<const std::string*> order_;  // keys of a node-based map stay where they are
};

// The lines that the page may show, by file and number.
class Sources {
 public:
  explicit Sources(const PageExtras& extras) : extras_(extras) {}

  void add(const SourceLocation& location, int context) {
    if (!extras_.show_source || !location.known() || places_.size() >= kMaxPlaces) return;
    // A diagnosis read from a file may name any path, and pages are passed on: no lines of what is not Python.
    if (!extras_.source && !location.file.ends_with(".py")) return;
    if (!places_.emplace(location.file, location.line, context).second) return;
    for (SourceLine& line : read_source(location, context, extras_.source)) {
      if (line.text.size() > kMaxLineBytes) line.text.resize(kMaxLineBytes);
      files_[location.file].insert_or_assign(line.number, std::move(line.text));
    }
  }

  void append_to(std::string& out) const {
    out += '{';
    bool first_file = true;
    for (const auto& [file, lines] : files_) {
      if (!first_file) out += ',';
      first_file = false;
      out += json_string(file);
      out += ":{";
      bool first = true;
      for (const auto& [number, text] : lines) {
        if (!first) out += ',';
        first = false;
        out += '"' + std::to_string(number) + "\":";
        out += json_string(text);
      }
      out += '}';
    }
    out += '}';
  }

 private:
  const PageExtras& extras_;
  std::set<std::tuple<std::string, int, int>> places_;
  std::map<std::string, std::map<int, std::string>> files_;
};

void append_sources(std::string& out, const Diagnosis& diagnosis, const PageExtras& extras) {
  Sources sources(extras);
  for (const Culprit& culprit : diagnosis.culprits) sources.add(culprit.step.location, kContext);
  for (const Culprit& culprit : diagnosis.culprits) {
    for (const SourceLocation& frame : culprit.stack) sources.add(frame, 0);
    for (const Step& step : culprit.path) sources.add(step.location, kContext);
  }
  sources.add(diagnosis.target.location, kContext);
  sources.append_to(out);
}

void append_heat_map(std::string& out, const HeatMap& map) {
  out += "{\"seq\":" + std::to_string(map.seq) + ",\"rows\":" + std::to_string(map.rows) +
         ",\"cols\":" + std::to_string(map.cols) + ",\"row_extent\":" + std::to_string(map.row_extent) +
         ",\"col_extent\":" + std::to_string(map.col_extent) + ",\"row_groups\":" + std::to_string(map.row_groups) +
         ",\"row_label\":";
  out += json_string(map.row_label);
  out += ",\"col_label\":";
  out += json_string(map.col_label);
  out += ",\"values\":";
  append_array(out, map.values, [&](float value) { append_number(out, value); });
  out += '}';
}

// Column by column, names by number, sequence numbers as differences: about 25 bytes an op.
void append_timeline(std::string& out, std::span<const TimelineOp> timeline) {
  Names ops, modules, threads, places;
  std::string seq, op, module, thread, place, phase, largest, bad;
  OpSeq before = 0;
  for (std::size_t i = 0; i < timeline.size(); ++i) {
    const TimelineOp& entry = timeline[i];
    const char* comma = i == 0 ? "" : ",";
    seq += comma + std::to_string(static_cast<std::int64_t>(entry.seq - before));
    before = entry.seq;
    op += comma + std::to_string(ops.id(entry.op_name));
    module += comma + std::to_string(modules.id(entry.module_path));
    thread += comma + std::to_string(threads.id(entry.thread_name));
    place += comma + std::to_string(places.id(entry.location));
    phase += comma + std::to_string(static_cast<int>(entry.phase));
    largest += comma;
    append_number(largest, entry.largest);
    if (entry.nonfinite) bad += (bad.empty() ? "" : ",") + std::to_string(i);
  }
  out += "{\"ops\":";
  ops.append_to(out);
  out += ",\"modules\":";
  modules.append_to(out);
  out += ",\"threads\":";
  threads.append_to(out);
  out += ",\"places\":";
  places.append_to(out);
  const std::pair<const char*, const std::string*> columns[] = {
      {"seq", &seq},     {"op", &op},       {"module", &module},   {"thread", &thread},
      {"place", &place}, {"phase", &phase}, {"largest", &largest}, {"bad", &bad}};
  for (const auto& [name, values] : columns) out += std::string(",\"") + name + "\":[" + *values + ']';
  out += '}';
}

}  // namespace

std::string page_data(const Diagnosis& diagnosis, std::span<const TimelineOp> timeline, const PageExtras& extras) {
  std::string out = "{\"diagnosis\":" + to_json(diagnosis, 0) + ",\"page\":{\"sources\":";
  append_sources(out, diagnosis, extras);
  out += ",\"heat_maps\":";
  std::vector<const HeatMap*> maps;
  for (const HeatMap& map : extras.heat_maps) {
    const bool whole =
        map.rows > 0 && map.cols > 0 && map.values.size() == static_cast<std::size_t>(map.rows * map.cols);
    if (whole) maps.push_back(&map);
  }
  append_array(out, maps, [&](const HeatMap* map) { append_heat_map(out, *map); });
  out += ",\"modules\":";
  append_array(out, extras.modules, [&](const PageModule& entry) {
    out += "{\"path\":";
    out += json_string(entry.path);
    out += ",\"type\":";
    out += json_string(entry.type);
    out += '}';
  });
  out += ",\"file_labels\":{";
  for (const auto& [file, label] : extras.file_labels) {
    if (out.back() != '{') out += ',';
    out += json_string(file) + ':' + json_string(label);
  }
  out += "},\"timeline\":";
  append_timeline(out, timeline);
  out += "}}";
  return escape_for_script(out);
}

std::string escape_for_script(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '<') {
      out += "\\u003c";
    } else if (json.substr(i, 3) == "\xE2\x80\xA8" || json.substr(i, 3) == "\xE2\x80\xA9") {
      out += json[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += json[i];
    }
  }
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace sherlorch
