// A strict JSON reader (RFC 8259) that hands the text out piece by piece, so that a large file needs no tree in memory.
// Safe on any bytes: nothing is read past the end, nesting is limited, and whatever is wrong throws ReportError with a
// sentence that names line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sherlorch {

class JsonReader {
 public:
  // Chosen: a diagnosis nests 6 deep.
  static constexpr int kMaxDepth = 64;

  // The text must outlive the reader.
  explicit JsonReader(std::string_view text) : text_(text) {}

  // Reads an object; member(std::string_view key) is called for each member and must read exactly its value.
  template <typename F>
  void object(F&& member) {
    open('{', "an object");
    for (bool first = true; more('}', first); first = false) {
      const std::string key = string();
      expect(':', "':' after the key");
      member(std::string_view(key));
    }
    --depth_;
  }

  // Reads an array; item() is called for each item and must read exactly it.
  template <typename F>
  void array(F&& item) {
    open('[', "an array");
    for (bool first = true; more(']', first); first = false) item();
    --depth_;
  }

  std::string string();
  std::int64_t integer();
  std::uint64_t unsigned_integer();
  // A number, or one of the strings "nan", "inf", "-inf".
  double number();
  bool boolean();
  // Reads null if that is what comes next.
  bool null_if_next();
  // Reads any value and drops it.
  void skip();
  // REQUIRES that nothing but white space is left.
  void end();

  // Throws ReportError: "<what> (line 3, column 14)".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void skip_white();
  char peek();  // the next character that is not white space; fails at the end
  void expect(char c, const char* what);
  void open(char bracket, const char* what);
  bool more(char bracket, bool first);
  bool take_word(std::string_view word);
  std::string_view number_token();
  void digits(const char* where);
  void escape(std::string& out);
  unsigned hex4();

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace sherlorch
