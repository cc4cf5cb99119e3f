#include "core/report/text_source.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace sherlorch {
namespace {

// Chosen: more than any source line that a person reads; a line of minified data is cut here.
constexpr std::size_t kMaxReadBytes = 4096;
// Chosen: a site further down than this is not in a file that a person wrote.
constexpr int kMaxLineNumber = 10'000'000;

bool next_line(std::istream& in, std::string* text) {
  text->clear();
  bool any = false;
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    any = true;
    if (c == '\n') break;
    if (text->size() < kMaxReadBytes) *text += static_cast<char>(c);
  }
  if (!text->empty() && text->back() == '\r') text->pop_back();
  return any;
}

std::vector<SourceLine> read_file(const SourceLocation& location, int first, int last) {
  std::vector<SourceLine> lines;
  std::error_code error;
  // Regular files only: opening a pipe would block, and a device has no end.
  if (!std::filesystem::is_regular_file(location.file, error) || error) return lines;
  std::ifstream in(location.file, std::ios::binary);
  std::string text;
  for (int number = 1; number <= last && next_line(in, &text); ++number) {
    if (number >= first) lines.push_back({number, text});
  }
  return lines;
}

}  // namespace

std::vector<SourceLine> read_source(const SourceLocation& location, int context, const SourceReader& reader) {
  if (!location.known() || location.line < 1 || location.line > kMaxLineNumber) return {};
  const int first = std::max(1, location.line - context);
  const int last = location.line + context;
  std::vector<SourceLine> lines;
  if (reader) {
    for (int number = first; number <= last; ++number) {
      std::string text;
      if (reader(location.file, number, &text)) lines.push_back({number, text});
    }
  } else {
    lines = read_file(location, first, last);
  }
  // Neighbours without the line itself would mislead: the file is not the one that ran.
  const bool found =
      std::any_of(lines.begin(), lines.end(), [&](const SourceLine& line) { return line.number == location.line; });
  return found ? lines : std::vector<SourceLine>{};
}

}  // namespace sherlorch
