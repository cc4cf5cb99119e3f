#include "core/report/html.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "core/report/page/csp_hash.h"
#include "core/report/page/page_data.h"
#include "core/report/page_resources.h"
#include "core/report/text_util.h"

namespace sherlorch {
namespace {

// Chosen: at about 500 bytes a step, a page stays under some ten megabytes whatever the diagnosis.
constexpr std::size_t kMaxSteps = 20'000;     // of all paths together
constexpr std::size_t kMaxPathSteps = 4'000;  // of one path
constexpr std::size_t kMinPathSteps = 40;

// A path of at most `limit` steps: both ends, the transitions between them, and how many were left out where.
void shorten(std::vector<Step>& path, std::size_t limit) {
  if (path.size() <= limit) return;
  const std::size_t end = limit / 3;
  std::size_t spare = limit - 2 * end;
  std::vector<Step> kept;
  kept.reserve(limit);
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool at_end = i < end || i >= path.size() - end;
    const bool keep = at_end || (path[i].transition != Transition::kNone && spare > 0);
    if (keep) {
      if (!at_end) --spare;
      kept.push_back(std::move(path[i]));
    } else {
      kept.back().folded += 1 + path[i].folded;
    }
  }
  path = std::move(kept);
}

Diagnosis shortened(Diagnosis diagnosis) {
  const std::size_t share = kMaxSteps / std::max<std::size_t>(1, diagnosis.culprits.size());
  const std::size_t limit = std::clamp(share, kMinPathSteps, kMaxPathSteps);
  for (Culprit& culprit : diagnosis.culprits) shorten(culprit.path, limit);
  return diagnosis;
}

// What a reader without JavaScript sees.
std::string summary(const Diagnosis& diagnosis) {
  std::string out = "<h1>" + escape_html(verdict(diagnosis)) + "</h1>\n";
  TextOptions options;
  options.show_source = false;
  options.max_culprits = 3;
  out += "<noscript><p>The page below needs JavaScript; this is the same report as text.</p>\n<pre>";
  // Line by line: line ends are layout here, every other control character is not.
  std::string_view text;
  const std::string report = to_text(diagnosis, options);
  for (std::size_t at = 0; at < report.size(); at += text.size() + 1) {
    text = std::string_view(report).substr(at, report.find('\n', at) - at);
    out += escape_html(text) + "\n";
  }
  return out + "</pre></noscript>";
}

// Puts each {{name}} of the template in its place; one pass, so that nothing in a value is taken for a name.
std::string fill(std::string_view page, std::span<const std::pair<std::string_view, std::string_view>> values) {
  std::string out;
  std::size_t at = 0;
  while (at < page.size()) {
    const std::size_t open = page.find("{{", at);
    const std::size_t close = open == std::string_view::npos ? open : page.find("}}", open);
    if (close == std::string_view::npos) break;
    out += page.substr(at, open - at);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    for (const auto& [known, value] : values) {
      if (known == name) out += value;
    }
    at = close + 2;
  }
  return out += page.substr(at);
}

std::string dimensions_text(std::span<const std::int64_t> shape, std::size_t first, std::size_t last) {
  std::string out = last - first == 1 ? "dimension " + std::to_string(first)
                                      : "dimensions " + std::to_string(first) + " to " + std::to_string(last - 1);
  out += ": ";
  for (std::size_t i = first; i < last; ++i) out += (i == first ? "" : " × ") + std::to_string(shape[i]);
  return out;
}

// Adds rows [row_begin, row_end) x columns [col_begin, col_end) to the counts of the cells.
class CellCounts {
 public:
  explicit CellCounts(const HeatMap& map) : map_(map), counts_(static_cast<std::size_t>(map.rows * map.cols), 0) {}

  void add(std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin, std::int64_t col_end) {
    if (row_begin >= row_end || col_begin >= col_end) return;
    for (std::int64_t r = cell_of(row_begin, map_.rows, map_.row_extent); r < map_.rows; ++r) {
      const std::int64_t height = overlap(r, map_.rows, map_.row_extent, row_begin, row_end);
      if (height == 0) break;
      for (std::int64_t c = cell_of(col_begin, map_.cols, map_.col_extent); c < map_.cols; ++c) {
        const std::int64_t width = overlap(c, map_.cols, map_.col_extent, col_begin, col_end);
        if (width == 0) break;
        counts_[static_cast<std::size_t>(r * map_.cols + c)] += height * width;
      }
    }
  }

  // The share of each cell, of the elements in it that exist (the last row of a folded vector may be short).
  std::vector<float> shares(std::int64_t numel) const {
    std::vector<float> out(counts_.size());
    for (std::int64_t r = 0; r < map_.rows; ++r) {
      for (std::int64_t c = 0; c < map_.cols; ++c) {
        const std::size_t cell = static_cast<std::size_t>(r * map_.cols + c);
        if (counts_[cell] == 0) continue;
        const std::int64_t all = size_of(r, map_.rows, map_.row_extent) * size_of(c, map_.cols, map_.col_extent);
        const std::int64_t there = std::max(counts_[cell], std::min(all, numel));
        out[cell] = static_cast<float>(static_cast<double>(counts_[cell]) / static_cast<double>(there));
      }
    }
    return out;
  }

 private:
  // Cell i covers elements [i * extent / cells, (i + 1) * extent / cells); the script reckons alike.
  static std::int64_t begin_of(std::int64_t i, std::int64_t cells, std::int64_t extent) {
    return extent / cells * i + extent % cells * i / cells;
  }
  static std::int64_t size_of(std::int64_t i, std::int64_t cells, std::int64_t extent) {
    return begin_of(i + 1, cells, extent) - begin_of(i, cells, extent);
  }
  static std::int64_t cell_of(std::int64_t element, std::int64_t cells, std::int64_t extent) {
    std::int64_t i = static_cast<std::int64_t>(static_cast<double>(element) / static_cast<double>(extent) *
                                               static_cast<double>(cells));
    i = std::clamp<std::int64_t>(i, 0, cells - 1);
    while (i > 0 && begin_of(i, cells, extent) > element) --i;
    while (i + 1 < cells && begin_of(i + 1, cells, extent) <= element) ++i;
    return i;
  }
  static std::int64_t overlap(std::int64_t i, std::int64_t cells, std::int64_t extent, std::int64_t begin,
                              std::int64_t end) {
    return std::max<std::int64_t>(
        0, std::min(end, begin_of(i + 1, cells, extent)) - std::max(begin, begin_of(i, cells, extent)));
  }

  const HeatMap& map_;
  std::vector<std::int64_t> counts_;
};

}  // namespace

HeatMap make_heat_map(OpSeq seq, std::span<const std::int64_t> shape, std::span<const Run> bad) {
  HeatMap map;
  map.seq = seq;
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) {
    if (size <= 0 || numel > INT64_MAX / size) return map;
    numel *= size;
  }
  if (shape.size() >= 2) {
    map.col_extent = shape.back();
    map.row_extent = numel / map.col_extent;
    if (shape.size() >= 3) map.row_groups = shape[0];
    map.row_label = dimensions_text(shape, 0, shape.size() - 1);
    map.col_label = dimensions_text(shape, shape.size() - 1, shape.size());
  } else if (numel <= HeatMap::kMaxSide) {
    map.col_extent = numel;
    map.row_extent = 1;
    map.col_label = shape.empty() ? "one number" : dimensions_text(shape, 0, 1);
  } else {
    map.col_extent = HeatMap::kMaxSide;
    map.row_extent = (numel + map.col_extent - 1) / map.col_extent;
    map.row_label = "rows of " + std::to_string(map.col_extent);
    map.col_label = dimensions_text(shape, 0, 1) + ", folded";
  }
  map.rows = std::min(map.row_extent, HeatMap::kMaxSide);
  map.cols = std::min(map.col_extent, HeatMap::kMaxSide);

  CellCounts counts(map);
  for (const Run& run : bad) {
    const std::int64_t begin = std::max<std::int64_t>(run.begin, 0);
    const std::int64_t end = std::min(run.end, numel);
    if (begin >= end) continue;
    const std::int64_t row = begin / map.col_extent;
    const std::int64_t last_row = (end - 1) / map.col_extent;
    if (row == last_row) {
      counts.add(row, row + 1, begin - row * map.col_extent, end - row * map.col_extent);
      continue;
    }
    counts.add(row, row + 1, begin - row * map.col_extent, map.col_extent);
    counts.add(row + 1, last_row, 0, map.col_extent);
    counts.add(last_row, last_row + 1, 0, end - last_row * map.col_extent);
  }
  map.values = counts.shares(numel);
  return map;
}

std::string to_html(const Diagnosis& diagnosis, std::span<const TimelineOp> timeline, const PageExtras& extras) {
  const std::string_view style(kPageCss, kPageCssSize);
  const std::string_view script(kPageJs, kPageJsSize);
  const std::string policy = "default-src 'none'; script-src " + csp_hash(script) + "; style-src " + csp_hash(style) +
                             "; base-uri 'none'; form-action 'none'";
  const Diagnosis shown = shortened(diagnosis);
  const std::string title =
      escape_html("sherlorch: " + (shown.culprits.empty() ? verdict(shown) : shown.culprits[0].headline));
  const std::string text = summary(shown);
  const std::string data = page_data(shown, timeline, extras);
  const std::pair<std::string_view, std::string_view> values[] = {
      {"csp", policy}, {"title", title}, {"style", style}, {"script", script}, {"summary", text}, {"data", data}};
  return fill(std::string_view(kPageHtml, kPageHtmlSize), values);
}

std::string to_html(const Diagnosis& diagnosis, const PageOptions& options) {
  PageExtras extras;
  extras.show_source = options.show_source;
  extras.source = options.source;
  return to_html(diagnosis, {}, extras);
}

}  // namespace sherlorch
