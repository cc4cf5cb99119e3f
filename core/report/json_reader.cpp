#include "core/report/json_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

#include "core/report/text_util.h"
#include "sherlorch/errors.h"

namespace sherlorch {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

}  // namespace

void JsonReader::fail(const std::string& what) const {
  const std::string_view before = text_.substr(0, std::min(at_, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const std::size_t column = 1 + before.size() - line_start;
  throw ReportError(what + " (line " + std::to_string(line) + ", column " + std::to_string(column) + ")");
}

void JsonReader::skip_white() {
  while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
}

char JsonReader::peek() {
  skip_white();
  if (at_ >= text_.size()) fail("the text ends too early");
  return text_[at_];
}

void JsonReader::expect(char c, const char* what) {
  if (peek() != c) fail(std::string("expected ") + what);
  ++at_;
}

void JsonReader::open(char bracket, const char* what) {
  expect(bracket, what);
  if (++depth_ > kMaxDepth) fail("nested too deep");
}

bool JsonReader::more(char bracket, bool first) {
  if (peek() == bracket) {
    ++at_;
    return false;
  }
  if (!first) expect(',', "',' or the closing bracket");
  return true;
}

std::string JsonReader::string() {
  expect('"', "a string");
  std::string out;
  while (true) {
    if (at_ >= text_.size()) fail("the text ends inside a string");
    const char c = text_[at_];
    if (c == '"') break;
    if (static_cast<unsigned char>(c) < 0x20) fail("a control character inside a string");
    if (c == '\\') {
      escape(out);
      continue;
    }
    const CodePoint point = decode_utf8(text_, at_);
    if (!point.valid) fail("a byte that is not UTF-8");
    out.append(text_, at_, point.length);
    at_ += point.length;
  }
  ++at_;
  return out;
}

void JsonReader::escape(std::string& out) {
  ++at_;
  if (at_ >= text_.size()) fail("the text ends inside a string");
  constexpr std::string_view kShort = "\"\\/bfnrt";
  constexpr std::string_view kMeans = "\"\\/\b\f\n\r\t";
  const std::size_t which = kShort.find(text_[at_]);
  if (which != std::string_view::npos) {
    out += kMeans[which];
    ++at_;
    return;
  }
  if (text_[at_] != 'u') fail("an unknown escape in a string");
  ++at_;
  char32_t value = hex4();
  if (value >= 0xD800 && value < 0xDC00) {
    if (text_.substr(at_, 2) != "\\u") fail("half of a surrogate pair");
    at_ += 2;
    const unsigned low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) fail("half of a surrogate pair");
    value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
  } else if (value >= 0xDC00 && value <= 0xDFFF) {
    fail("half of a surrogate pair");
  }
  append_utf8(out, value);
}

unsigned JsonReader::hex4() {
  const std::string_view digits = text_.substr(at_, 4);
  unsigned value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() != 4 || result.ptr != digits.data() + 4) fail("expected four hexadecimal digits");
  at_ += 4;
  return value;
}

void JsonReader::digits(const char* where) {
  if (at_ >= text_.size() || !is_digit(text_[at_])) fail(std::string("expected ") + where);
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
}

std::string_view JsonReader::number_token() {
  const char first = peek();
  if (first != '-' && !is_digit(first)) fail("expected a number");
  const std::size_t begin = at_;
  const auto next_is = [&](std::string_view any) {
    return at_ < text_.size() && any.find(text_[at_]) != std::string_view::npos;
  };
  if (first == '-') ++at_;
  const bool zero = next_is("0");
  const std::size_t whole = at_;
  digits("a digit");
  if (zero && at_ - whole > 1) fail("a number with a leading zero");
  if (next_is(".")) {
    ++at_;
    digits("a digit after the point");
  }
  if (next_is("eE")) {
    ++at_;
    if (next_is("+-")) ++at_;
    digits("a digit of the exponent");
  }
  return text_.substr(begin, at_ - begin);
}

std::int64_t JsonReader::integer() {
  const std::string_view token = number_token();
  std::int64_t value = 0;
  const auto result = std::from_chars(token.data(), token.data() + token.size(), value);
  if (result.ec != std::errc() || result.ptr != token.data() + token.size()) fail("expected a whole number of 64 bits");
  return value;
}

std::uint64_t JsonReader::unsigned_integer() {
  const std::string_view token = number_token();
  std::uint64_t value = 0;
  const auto result = std::from_chars(token.data(), token.data() + token.size(), value);
  if (result.ec != std::errc() || result.ptr != token.data() + token.size()) {
    fail("expected a whole number of 64 bits that is not negative");
  }
  return value;
}

double JsonReader::number() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (peek() == '"') {
    const std::string word = string();
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (word == "inf") return kInf;
    if (word == "-inf") return -kInf;
    fail("expected a number, \"nan\", \"inf\" or \"-inf\"");
  }
  const std::string_view token = number_token();
  double value = 0;
  const auto result = std::from_chars(token.data(), token.data() + token.size(), value);
  if (result.ec != std::errc()) fail("a number that no double can hold");
  return value;
}

bool JsonReader::take_word(std::string_view word) {
  skip_white();
  if (text_.substr(std::min(at_, text_.size()), word.size()) != word) return false;
  at_ += word.size();
  return true;
}

bool JsonReader::boolean() {
  if (take_word("true")) return true;
  if (take_word("false")) return false;
  fail("expected true or false");
}

bool JsonReader::null_if_next() { return take_word("null"); }

void JsonReader::skip() {
  switch (peek()) {
    case '{':
      return object([this](std::string_view) { skip(); });
    case '[':
      return array([this] { skip(); });
    case '"':
      string();
      return;
    case 't':
    case 'f':
      boolean();
      return;
    case 'n':
      if (!null_if_next()) fail("expected a value");
      return;
    default:
      number_token();
  }
}

void JsonReader::end() {
  skip_white();
  if (at_ < text_.size()) fail("more text after the end");
}

}  // namespace sherlorch
