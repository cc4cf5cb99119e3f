// Writes JSON (RFC 8259). What it writes is strict: UTF-8 only (invalid bytes become U+FFFD), and non-finite numbers,
// which JSON does not have, become the strings "nan", "inf" and "-inf".
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sherlorch {

// Calls must nest as the text does: inside an object each value follows a key(). Not checked.
class JsonWriter {
 public:
  // Spaces a level; 0: everything on one line.
  explicit JsonWriter(int indent = 0) : indent_(indent > 0 ? indent : 0) {}

  // What is inline stays on one line whatever the indent; so does all that is in it.
  void begin_object(bool is_inline = false);
  void end_object();
  void begin_array(bool is_inline = false);
  void end_array();
  void key(std::string_view name);

  void string(std::string_view text);
  void integer(std::int64_t number);
  void unsigned_integer(std::uint64_t number);
  void number(double number);  // the shortest text that reads back as the same double
  void number(float number);
  void boolean(bool value);
  void null();

  // The text so far; the writer is empty afterwards.
  std::string take();

 private:
  struct Level {
    bool is_inline;
    bool has_items;
  };
  void begin(char bracket, bool is_inline);
  void end(char bracket);
  void before_value();
  void new_line();
  template <std::floating_point T>
  void floating(T number);

  int indent_;
  bool after_key_ = false;
  std::vector<Level> levels_;
  std::string out_;
};

// The text as a JSON string, quotes included.
std::string json_string(std::string_view text);

}  // namespace sherlorch
