// Small pieces of text that several reports share. All of it is cold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sherlorch/diagnosis.h"

namespace sherlorch {

// One code point of strict UTF-8 (no overlong forms, no surrogates). Where the bytes at `at` are none, `valid` is
// false, `value` is U+FFFD and `length` is 1. REQUIRES: at < text.size().
struct CodePoint {
  char32_t value = 0xFFFD;
  std::size_t length = 1;
  bool valid = false;
};
CodePoint decode_utf8(std::string_view text, std::size_t at) noexcept;
void append_utf8(std::string& out, char32_t value);

// The text with each invalid byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// Valid UTF-8 in which nothing moves the cursor, changes colors or reorders what is read: control characters and the
// bidirectional ones come out as "\n", "\x1b", "\u202e".
std::string printable(std::string_view text);

// Code points, which is what a terminal column is for the text that we print.
std::size_t columns(std::string_view text) noexcept;

// Printable lines of at most `width` columns, broken at white space (a longer word gets a line of its own).
std::vector<std::string> wrap(std::string_view text, std::size_t width);

// "2,988"
std::string with_commas(std::uint64_t number);
// "1 op", "2,988 ops"
std::string counted(std::uint64_t number, std::string_view noun);

// As Python prints a tuple: "(4, 16)", "(4,)", "()".
std::string shape_text(std::span<const std::int64_t> shape);
// "[0, 3, 2]"
std::string index_text(std::span<const std::int64_t> index);

// The classes present: "NaN", "-Inf", "NaN & Inf & -Inf"; "" if finite.
std::string kinds_text(const FinitenessCounts& counts);

// The autograd node that the op ran in, printable; "" for none, and for a culprit that goes by the node's name itself.
std::string node_around(const Step& step);

// What the op did to the value, for a mark on a path: "NaN made here", "became -Inf here"; "" for kNone.
std::string transition_text(const Step& step);

// The shortest names that keep the files of one report apart: "model.py", or "a/utils.py" and "b/utils.py".
// The diagnosis must outlive it.
class FileNames {
 public:
  explicit FileNames(const Diagnosis& diagnosis);
  // "model.py:12"; "" if unknown. Printable.
  std::string short_text(const SourceLocation& location) const;

 private:
  std::unordered_map<std::string_view, std::string_view> short_;
};

}  // namespace sherlorch
