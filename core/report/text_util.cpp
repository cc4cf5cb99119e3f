#include "core/report/text_util.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <unordered_set>

namespace sherlorch {
namespace {

constexpr CodePoint kInvalid{};

bool moves_or_hides_text(char32_t c) noexcept {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F)  // C0, DEL, C1
         || (c >= 0x200B && c <= 0x200F)       // zero width, left-to-right and right-to-left marks
         || (c >= 0x2028 && c <= 0x202E)       // line and paragraph separators, bidirectional embedding
         || (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF || c == 0x061C;
}

void append_escape(std::string& out, char32_t c) {
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c == '\r') {
    out += "\\r";
  } else {
    char buffer[12];
    std::snprintf(buffer, sizeof buffer, c < 0x100 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(c));
    out += buffer;
  }
}

// The last `parts` components of a path; the whole path if it has no more.
std::string_view last_components(std::string_view path, std::size_t parts) noexcept {
  std::size_t begin = path.size();
  while (parts-- > 0) {
    if (begin == 0) return path;
    const std::size_t slash = path.find_last_of("/\\", begin - 1);
    if (slash == std::string_view::npos) return path;
    begin = slash;
  }
  return path.substr(begin + 1);
}

std::string join_numbers(std::span<const std::int64_t> numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(numbers[i]);
  }
  return out;
}

}  // namespace

CodePoint decode_utf8(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1, true};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() - at < length) return kInvalid;
  char32_t value = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return kInvalid;
    value = (value << 6) | (byte(at + i) & 0x3F);
  }
  constexpr std::array<char32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[length] || value > 0x10FFFF || surrogate) return kInvalid;
  return {value, length, true};
}

void append_utf8(std::string& out, char32_t value) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | (value >> 6));
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | (value >> 12));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | (value >> 18));
    put(0x80 | ((value >> 12) & 0x3F));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    append_utf8(out, c.value);
    at += c.length;
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    if (moves_or_hides_text(c.value)) {
      append_escape(out, c.value);
    } else {
      append_utf8(out, c.value);
    }
    at += c.length;
  }
  return out;
}

std::size_t columns(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  constexpr std::string_view kWhite = " \t\r\n\f\v";
  std::vector<std::string> lines;
  std::size_t at = text.find_first_not_of(kWhite);
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(kWhite, at), text.size());
    const std::string word = printable(text.substr(at, end - at));
    if (lines.empty() || columns(lines.back()) + 1 + columns(word) > width) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
    at = text.find_first_not_of(kWhite, end);
  }
  return lines;
}

std::string with_commas(std::uint64_t number) {
  std::string out = std::to_string(number);
  for (std::size_t at = out.size(); at > 3;) {
    at -= 3;
    out.insert(at, 1, ',');
  }
  return out;
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return with_commas(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return "(" + join_numbers(shape) + (shape.size() == 1 ? ",)" : ")");
}

std::string index_text(std::span<const std::int64_t> index) { return "[" + join_numbers(index) + "]"; }

std::string kinds_text(const FinitenessCounts& counts) {
  std::string out;
  const auto add = [&](std::int64_t count, const char* name) {
    if (count <= 0) return;
    if (!out.empty()) out += " & ";
    out += name;
  };
  add(counts.nan, "NaN");
  add(counts.pos_inf, "Inf");
  add(counts.neg_inf, "-Inf");
  return out;
}

std::string node_around(const Step& step) {
  return step.autograd_node == step.op_name ? "" : printable(step.autograd_node);
}

std::string transition_text(const Step& step) {
  const std::string kinds = kinds_text(step.counts);
  const auto made = [&](const char* kind) { return (kinds.empty() ? kind : kinds) + " made here"; };
  const auto became = [&](const std::string& kind) {
    const std::string mark = "became " + kind + " here";
    return kinds.empty() || kinds == kind ? mark : kinds + ", " + mark;
  };
  switch (step.transition) {
    case Transition::kNone:
      return "";
    case Transition::kFiniteToInf:
      return made("Inf");
    case Transition::kFiniteToNan:
      return made("NaN");
    case Transition::kInfToNan:
      return became("NaN");
    case Transition::kNanToInf:
    case Transition::kInfToInf:
      return became(kinds == "-Inf" ? "-Inf" : "Inf");
  }
  return "";
}

FileNames::FileNames(const Diagnosis& diagnosis) {
  std::unordered_set<std::string_view> files;
  const auto add = [&](const SourceLocation& location) {
    if (location.known()) files.insert(location.file);
  };
  add(diagnosis.target.location);
  for (const Step& step : diagnosis.deliberate) add(step.location);
  for (const Culprit& culprit : diagnosis.culprits) {
    add(culprit.step.location);
    for (const Step& step : culprit.path) add(step.location);
    for (const SourceLocation& frame : culprit.stack) add(frame);
  }
  // One more component each round for those that still look the same. A path is never longer than its own name, so
  // this ends; the bound only guards against absurd depth.
  std::vector<std::string_view> open(files.begin(), files.end());
  for (std::size_t parts = 1; !open.empty() && parts <= 64; ++parts) {
    std::unordered_map<std::string_view, int> seen;
    for (std::string_view file : open) ++seen[last_components(file, parts)];
    std::erase_if(open, [&](std::string_view file) {
      short_[file] = last_components(file, parts);
      return seen[short_[file]] == 1;
    });
  }
}

std::string FileNames::short_text(const SourceLocation& location) const {
  if (!location.known()) return "";
  const auto found = short_.find(location.file);
  std::string out = printable(found == short_.end() ? std::string_view(location.file) : found->second);
  if (location.line > 0) out += ":" + std::to_string(location.line);
  return out;
}

}  // namespace sherlorch
