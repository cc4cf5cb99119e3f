#include "core/report/json_reader.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sherlorch/errors.h"

namespace sherlorch {
namespace {

// "" if the text is valid JSON, or the reader's complaint.
std::string complaint(std::string_view text) {
  try {
    JsonReader json(text);
    json.skip();
    json.end();
  } catch (const ReportError& error) {
    return error.what();
  }
  return "";
}

TEST(JsonReaderTest, AcceptsWhatTheStandardDoes) {
  for (const char* text : {"{}", "[]", "null", "true", "false", "0", "-0", "1.5e+3", "1E-2", "\"\"", " [1 , 2]\n",
                           R"({"a": {"b": [null, "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"]}})"}) {
    EXPECT_EQ(complaint(text), "") << text;
  }
}

TEST(JsonReaderTest, RefusesWhatTheStandardDoes) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "[1",
                           "[1,",
                           "[1,]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{'a':1}",
                           "nul",
                           "tru",
                           "NaN",
                           "Infinity",
                           "-",
                           "01",
                           "-01",
                           "1.",
                           ".5",
                           "1e",
                           "1e+",
                           "+1",
                           "0x1",
                           "\"",
                           "\"\\",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "\"\n\"",
                           "\"\xFF\"",
                           "\"\xC0\xAF\"",
                           "[] []",
                           "// x\n1",
                           "[1 2]"}) {
    EXPECT_NE(complaint(text), "") << text;
  }
}

TEST(JsonReaderTest, ComplaintNamesLineAndColumn) {
  EXPECT_EQ(complaint("{\n  \"a\": x\n}"), "expected a number (line 2, column 8)");
  EXPECT_EQ(complaint("[1, 2"), "the text ends too early (line 1, column 6)");
}

TEST(JsonReaderTest, DeepNestingIsRefusedInsteadOfOverflowingTheStack) {
  EXPECT_EQ(complaint(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_NE(complaint(std::string(65, '[') + std::string(65, ']')).find("nested too deep"), std::string::npos);
  EXPECT_NE(complaint(std::string(10'000'000, '[')), "");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(complaint(objects), "");
}

TEST(JsonReaderTest, NumbersKeepTheirTypeAndRange) {
  EXPECT_EQ(JsonReader("18446744073709551615").unsigned_integer(), 18446744073709551615U);
  EXPECT_EQ(JsonReader("-9223372036854775808").integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_THROW(JsonReader("18446744073709551616").unsigned_integer(), ReportError);
  EXPECT_THROW(JsonReader("-1").unsigned_integer(), ReportError);
  EXPECT_THROW(JsonReader("1.0").integer(), ReportError);
  EXPECT_THROW(JsonReader("1e2").integer(), ReportError);
  EXPECT_THROW(JsonReader("1e999").number(), ReportError);
  EXPECT_EQ(JsonReader("0.1").number(), 0.1);
  EXPECT_TRUE(std::signbit(JsonReader("-0").number()));
  EXPECT_TRUE(std::isnan(JsonReader("\"nan\"").number()));
  EXPECT_EQ(JsonReader("\"-inf\"").number(), -std::numeric_limits<double>::infinity());
  EXPECT_THROW(JsonReader("\"NaN\"").number(), ReportError);
}

TEST(JsonReaderTest, EscapesAreDecoded) {
  EXPECT_EQ(JsonReader(R"("\u0041\u00e9\u20ac\ud83d\ude00\u0000")").string(),
            std::string("A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\0", 11));
}

}  // namespace
}  // namespace sherlorch
