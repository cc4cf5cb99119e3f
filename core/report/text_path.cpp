#include "core/report/text_path.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/report/text_util.h"

namespace sherlorch {
namespace {

// Counts op names, in order of first sight.
class NameTally {
 public:
  void add(std::string_view name) {
    const auto [found, is_new] = index_.try_emplace(name, counts_.size());
    if (is_new) counts_.emplace_back(name, 0);
    ++counts_[found->second].second;
  }

  // "add x2,987, mul, others x12", where `total` is how many there are, named or not.
  std::string text(std::uint64_t total) {
    constexpr std::size_t kMaxNames = 4;  // chosen: fits a line
    std::stable_sort(counts_.begin(), counts_.end(), [](auto& a, auto& b) { return a.second > b.second; });
    std::string out;
    for (std::size_t i = 0; i < counts_.size() && i < kMaxNames; ++i) {
      append(out, printable(counts_[i].first), counts_[i].second);
      total -= counts_[i].second;
    }
    if (!out.empty() && total > 0) append(out, total == 1 ? "one other" : "others", total);
    return out;
  }

 private:
  static void append(std::string& out, std::string_view name, std::uint64_t count) {
    if (!out.empty()) out += ", ";
    out += name;
    if (count > 1) out += " x" + with_commas(count);
  }

  std::unordered_map<std::string_view, std::size_t> index_;
  std::vector<std::pair<std::string_view, std::uint64_t>> counts_;
};

std::vector<bool> steps_to_keep(std::span<const Step> path, std::size_t max_steps) {
  const std::size_t n = path.size();
  if (max_steps == 0 || n <= max_steps) return std::vector<bool>(n, true);
  std::vector<bool> keep(n, false);
  keep.front() = keep.back() = true;
  std::size_t budget = std::max<std::size_t>(max_steps, 2) - 2;
  for (std::size_t i = 1; i + 1 < n && budget > 0; ++i) {
    if (path[i].transition == Transition::kNone) continue;
    keep[i] = true;
    --budget;
  }
  // Where the value reaches a gradient, a parameter or a buffer.
  for (std::size_t i = 1; i + 1 < n && budget > 0; ++i) {
    if (keep[i] || path[i].label.empty() || path[i].label == path[i - 1].label) continue;
    keep[i] = true;
    --budget;
  }
  for (std::size_t front = 1, back = n - 2; budget > 0 && front <= back; ++front, --back) {
    for (const std::size_t i : {front, back}) {
      if (budget == 0 || keep[i]) continue;
      keep[i] = true;
      --budget;
    }
  }
  // A gap of one op would take the same line as the op itself.
  for (std::size_t i = 1; i + 1 < n; ++i) {
    if (keep[i - 1] && keep[i + 1]) keep[i] = true;
  }
  return keep;
}

}  // namespace

std::vector<PathItem> fold_path(std::span<const Step> path, std::size_t max_steps) {
  std::vector<PathItem> items;
  const std::vector<bool> keep = steps_to_keep(path, max_steps);
  for (std::size_t i = 0; i < path.size();) {
    items.push_back({.step = &path[i], .count = 0, .names = {}});
    NameTally tally;
    std::uint64_t count = path[i].folded;
    for (++i; i < path.size() && !keep[i]; ++i) {
      tally.add(path[i].op_name);
      count += 1 + path[i].folded;
    }
    if (count > 0) items.push_back({.step = nullptr, .count = count, .names = tally.text(count)});
  }
  return items;
}

std::string gap_text(const PathItem& item) {
  std::string out = with_commas(item.count) + " more op" + (item.count == 1 ? "" : "s");
  if (!item.names.empty()) out += " (" + item.names + ")";
  return out;
}

}  // namespace sherlorch
