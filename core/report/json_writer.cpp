#include "core/report/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/report/text_util.h"

namespace sherlorch {
namespace {

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    at += c.length;
    switch (c.value) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c.value < 0x20 || c.value == 0x7F) {
          char buffer[8];
          std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c.value));
          out += buffer;
        } else {
          append_utf8(out, c.value);
        }
    }
  }
  out += '"';
}

}  // namespace

void JsonWriter::begin_object(bool is_inline) { begin('{', is_inline); }
void JsonWriter::end_object() { end('}'); }
void JsonWriter::begin_array(bool is_inline) { begin('[', is_inline); }
void JsonWriter::end_array() { end(']'); }

void JsonWriter::key(std::string_view name) {
  before_value();
  append_json_string(out_, name);
  out_ += ": ";
  after_key_ = true;
}

void JsonWriter::string(std::string_view text) {
  before_value();
  append_json_string(out_, text);
}

void JsonWriter::integer(std::int64_t number) {
  before_value();
  out_ += std::to_string(number);
}

void JsonWriter::unsigned_integer(std::uint64_t number) {
  before_value();
  out_ += std::to_string(number);
}

void JsonWriter::number(double number) { floating(number); }
void JsonWriter::number(float number) { floating(number); }

void JsonWriter::boolean(bool value) {
  before_value();
  out_ += value ? "true" : "false";
}

void JsonWriter::null() {
  before_value();
  out_ += "null";
}

std::string JsonWriter::take() {
  levels_.clear();
  after_key_ = false;
  return std::exchange(out_, {});
}

void JsonWriter::begin(char bracket, bool is_inline) {
  before_value();
  out_ += bracket;
  const bool inherited = !levels_.empty() && levels_.back().is_inline;
  levels_.push_back({is_inline || inherited || indent_ == 0, false});
}

void JsonWriter::end(char bracket) {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.has_items && !level.is_inline) new_line();
  out_ += bracket;
}

void JsonWriter::before_value() {
  if (std::exchange(after_key_, false) || levels_.empty()) return;
  Level& level = levels_.back();
  if (level.has_items) out_ += level.is_inline ? ", " : ",";
  level.has_items = true;
  if (!level.is_inline) new_line();
}

void JsonWriter::new_line() {
  out_ += '\n';
  out_.append(levels_.size() * static_cast<std::size_t>(indent_), ' ');
}

template <std::floating_point T>
void JsonWriter::floating(T number) {
  if (std::isnan(number)) return string("nan");
  if (std::isinf(number)) return string(number > 0 ? "inf" : "-inf");
  before_value();
  char buffer[40];  // the longest double takes 24
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, number);
  out_.append(buffer, result.ptr);
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace sherlorch
