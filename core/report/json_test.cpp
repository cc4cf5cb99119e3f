#include "sherlorch/report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "core/report/json_writer.h"
#include "core/report/text_test_examples.h"

namespace sherlorch {
namespace {

std::string refusal(std::string_view text) {
  try {
    from_json(text);
  } catch (const ReportError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

std::vector<Diagnosis> all_examples() {
  return {examples::forward_log(), examples::backward_sqrt(), examples::parameter_origin(),
          examples::long_path(50), examples::finite(),        Diagnosis{}};
}

TEST(JsonTest, RoundTripLosesNothing) {
  for (Diagnosis d : all_examples()) {
    for (const int indent : {0, 2}) EXPECT_EQ(to_json(from_json(to_json(d, indent)), 2), to_json(d, 2));
    for (Culprit& culprit : d.culprits) {
      for (WitnessElement& element : culprit.witness) {
        if (element.value != element.value) element.value = examples::kInf;  // NaN is equal to nothing
      }
    }
    EXPECT_EQ(from_json(to_json(d, 0)), d);
  }
}

TEST(JsonTest, ExtremesOfEveryFieldSurvive) {
  using namespace std::string_literals;  // "..."s keeps what follows the NUL
  Diagnosis d = examples::backward_sqrt();
  d.total_ops = 18446744073709551615U;
  d.target.seq = 18446744073709551615U;
  d.target.shape = {0, std::numeric_limits<std::int64_t>::max()};
  d.target.location = {"", 5, "f"};
  d.target.module_path = "\"\\/\b\f\n\r\t\0\x7F\x1b <b>&amp;</script> \xF0\x9F\x98\x80\xE2\x80\xA8"s;
  d.target.folded = 7;
  d.culprits[0].operands[0].min = -0.0;
  d.culprits[0].operands[0].max = std::numeric_limits<double>::denorm_min();
  d.culprits[0].operands[0].value = -examples::kInf;
  d.culprits[0].witness[0].value = 0.1;
  for (int i = 0; i <= static_cast<int>(Cause::kBadOrigin); ++i) {
    d.culprits[0].cause = static_cast<Cause>(i);
    d.culprits[0].origin = static_cast<Origin>(i % 5);
    d.target.phase = static_cast<Phase>(i % 4);
    d.target.transition = static_cast<Transition>(i % 6);
    EXPECT_EQ(from_json(to_json(d)), d);
  }
}

TEST(JsonTest, NonFiniteNumbersAreStrings) {
  const std::string text = to_json(examples::backward_sqrt(), 0);
  EXPECT_NE(text.find("\"value\": \"nan\""), std::string::npos);
  EXPECT_EQ(text.find(": nan"), std::string::npos);
  EXPECT_NE(to_json(examples::forward_log(), 0).find("\"value\": \"-inf\""), std::string::npos);
}

TEST(JsonTest, InvalidUtf8IsReplaced) {
  Diagnosis d = examples::finite();
  d.target.module_path = "a\xFF\xC0\xAF";
  const std::string text = to_json(d);
  EXPECT_EQ(from_json(text).target.module_path, "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(JsonTest, OneLineOrIndented) {
  EXPECT_EQ(to_json(examples::forward_log(), 0).find('\n'), std::string::npos);
  EXPECT_EQ(to_json(examples::forward_log(), -3).find('\n'), std::string::npos);
  EXPECT_TRUE(
      to_json(examples::finite(), 2)
          .starts_with("{\n  \"schema\": \"sherlorch-diagnosis\",\n  \"version\": 1,\n  \"ok\": true,\n"
                       "  \"verdict\": \"No non-finite values found in target tensor (node [7] sum). 8 ops were "
                       "traced.\",\n  \"target\": {\n    \"seq\": 7,\n"));
}

TEST(JsonTest, UnknownKeysAreSkipped) {
  const std::string text = to_json(examples::forward_log(), 0);
  const std::string more = replaced(text, "\"total_ops\"", "\"new\": {\"a\": [1, {}]}, \"total_ops\"");
  EXPECT_EQ(from_json(more), from_json(text));
  EXPECT_EQ(from_json("\xEF\xBB\xBF" + text), from_json(text)) << "a byte order mark";
}

TEST(JsonTest, NewerFileIsToldFromADamagedOne) {
  const std::string text = to_json(examples::finite(), 0);
  EXPECT_EQ(
      refusal(replaced(replaced(text, "\"version\": 1", "\"version\": 2"), "\"note\"", "\"remark\"")),
      "This diagnosis was written by a newer sherlorch (format version 2, this one reads up to 1): upgrade sherlorch "
      "to read it.");
}

TEST(JsonTest, DamageIsSaidInOneSentence) {
  const std::string text = to_json(examples::backward_sqrt(), 0);
  EXPECT_EQ(refusal(""), "This is not a sherlorch diagnosis: it is empty.");
  EXPECT_EQ(refusal("hello"),
            "This is not a sherlorch diagnosis, or it is damaged: expected an object (line 1, column 1).");
  EXPECT_EQ(
      refusal("{}"),
      "This is not a sherlorch diagnosis, or it is damaged: there is no \"schema\": \"sherlorch-diagnosis\" in it "
      "(line 1, column 3).");
  EXPECT_NE(refusal(text.substr(0, text.size() / 2)).find("the text ends"), std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"total_ops\"", "\"total\"")).find("\"total_ops\" is missing"), std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"note\": \"\"", "\"note\": \"\", \"note\": \"\"")).find("comes twice"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"backward\"", "\"sideways\"")).find("unknown word \"sideways\""),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"numel\": 9", "\"numel\": -9")).find("impossible number"), std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"line\": 70", "\"line\": 70000000000")).find("out of range"), std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"version\": 1", "\"version\": 0")).find("valid \"version\""), std::string::npos);
  EXPECT_NE(refusal(text + "x"), "");
}

// What a fuzzer would do first: cut, flip, splice. Nothing but ReportError may come out, and what is accepted must
// survive every report (the sanitizers watch).
TEST(JsonTest, MutatedTextNeverCrashes) {
  const std::string text = to_json(examples::backward_sqrt(), 0);
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const char* const splices[] = {"\"", "{",  "}",       "[",    "]",    ",", "-",    "9",
                                 "e9", "\\", "\\ud800", "null", "\xFF", "0", "1e999"};
  for (int round = 0; round < 3000; ++round) {
    std::string mutated = text;
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
      const std::size_t at = below(mutated.size());
      switch (below(4)) {
        case 0:
          mutated[at] = static_cast<char>(below(256));
          break;
        case 1:
          mutated.erase(at, 1 + below(20));
          break;
        case 2:
          mutated.insert(at, splices[below(std::size(splices))]);
          break;
        default:
          mutated.resize(at + 1);
      }
    }
    try {
      const Diagnosis d = from_json(mutated);
      EXPECT_EQ(to_json(from_json(to_json(d))), to_json(d));
    } catch (const ReportError&) {
    }
  }
}

TEST(JsonTest, LongPathRoundTrips) {
  const Diagnosis d = examples::long_path(10'000);
  EXPECT_EQ(from_json(to_json(d, 0)), d);
}

TEST(JsonTest, ExampleOfTheDocumentationIsWhatIsWritten) {
  const auto page = std::filesystem::path(__FILE__).parent_path() / "../../docs/json.md";
  std::ifstream in(page);
  if (!in) GTEST_SKIP() << "not run from the source tree";
  std::ostringstream whole;
  whole << in.rdbuf();
  const std::string text = whole.str();
  const std::size_t begin = text.find("```json\n") + 8;
  ASSERT_GT(begin, 8u);
  EXPECT_EQ(text.substr(begin, text.find("\n```", begin) - begin), to_json(examples::parameter_origin(), 2));
}

TEST(JsonWriterTest, NestsAndEscapes) {
  JsonWriter json(1);
  json.begin_object();
  json.key("a\"");
  json.begin_array(true);
  json.integer(-1);
  json.begin_object();
  json.end_object();
  json.end_array();
  json.key("b");
  json.begin_array();
  json.end_array();
  json.key("c");
  json.null();
  json.end_object();
  EXPECT_EQ(json.take(), "{\n \"a\\\"\": [-1, {}],\n \"b\": [],\n \"c\": null\n}");
  EXPECT_EQ(json_string("\x01\n"), "\"\\u0001\\n\"");
  json.number(0.1F);
  EXPECT_EQ(json.take(), "0.1") << "a float is written as a float";
}

}  // namespace
}  // namespace sherlorch
