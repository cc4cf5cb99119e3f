#include "sherlorch/report.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "core/report/json_fields.h"
#include "core/report/json_reader.h"
#include "core/report/json_writer.h"
#include "core/report/text_util.h"

namespace sherlorch {
namespace {

constexpr std::string_view kSchema = "sherlorch-diagnosis";

const char* enum_text(Phase x) { return phase_name(x); }
const char* enum_text(Origin x) { return origin_name(x); }
const char* enum_text(Cause x) { return cause_name(x); }
const char* enum_text(Transition x) { return transition_name(x); }
constexpr Phase last_of(Phase) { return Phase::kOptimizer; }
constexpr Origin last_of(Origin) { return Origin::kUninitialized; }
constexpr Cause last_of(Cause) { return Cause::kBadOrigin; }
constexpr Transition last_of(Transition) { return Transition::kInfToInf; }

class Writer {
 public:
  explicit Writer(JsonWriter& json) : json_(json) {}

  template <typename T>
  void operator()(std::string_view key, const T& value) {
    json_.key(key);
    write(value);
  }

 private:
  template <typename T>
  void write(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      json_.string(value);
    } else if constexpr (std::is_same_v<T, bool>) {
      json_.boolean(value);
    } else if constexpr (std::is_same_v<T, double>) {
      json_.number(value);
    } else if constexpr (std::is_unsigned_v<T>) {
      json_.unsigned_integer(value);
    } else if constexpr (std::is_integral_v<T>) {
      json_.integer(value);
    } else if constexpr (std::is_enum_v<T>) {
      json_.string(enum_text(value));
    } else {
      json_.begin_object(std::is_same_v<T, FinitenessCounts>);
      json::visit(*this, value);
      json_.end_object();
    }
  }

  template <typename T>
  void write(const std::vector<T>& values) {
    json_.begin_array(std::is_arithmetic_v<T>);
    for (const T& value : values) write(value);
    json_.end_array();
  }

  void write(const SourceLocation& location) {
    if (location == SourceLocation{}) return json_.null();
    json_.begin_object(true);
    json::visit(*this, location);
    json_.end_object();
  }

  JsonWriter& json_;
};

class DiagnosisReader {
 public:
  explicit DiagnosisReader(JsonReader& json) : json_(json) {}

  // Every member of `x` must be there, once; unknown keys are skipped.
  template <typename T>
  void object(T& x) {
    std::uint32_t seen = 0;
    json_.object([&](std::string_view key) {
      Match match{*this, key, &seen};
      json::visit(match, x);
      if (!match.found) json_.skip();
    });
    Missing missing{*this, seen};
    json::visit(missing, x);
  }

 private:
  // Reads the member whose key has just been read.
  struct Match {
    DiagnosisReader& reader;
    std::string_view key;
    std::uint32_t* seen;
    int field = 0;
    bool found = false;

    template <typename T>
    void operator()(std::string_view name, T& value) {
      const std::uint32_t bit = std::uint32_t{1} << field++;
      if (found || name != key) return;
      if ((*seen & bit) != 0) reader.json_.fail("the key \"" + std::string(name) + "\" comes twice");
      *seen |= bit;
      found = true;
      reader.read(value);
    }
  };

  struct Missing {
    DiagnosisReader& reader;
    std::uint32_t seen;
    int field = 0;

    template <typename T>
    void operator()(std::string_view name, T&) {
      if ((seen & (std::uint32_t{1} << field++)) == 0) {
        reader.json_.fail("the key \"" + std::string(name) + "\" is missing from the object that ends here");
      }
    }
  };

  template <typename T>
  void read(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      value = json_.string();
    } else if constexpr (std::is_same_v<T, bool>) {
      value = json_.boolean();
    } else if constexpr (std::is_same_v<T, double>) {
      value = json_.number();
    } else if constexpr (std::is_unsigned_v<T>) {
      value = json_.unsigned_integer();
    } else if constexpr (std::is_integral_v<T>) {
      const std::int64_t number = json_.integer();
      if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
        json_.fail("a number out of range");
      }
      value = static_cast<T>(number);
    } else if constexpr (std::is_enum_v<T>) {
      read_enum(value);
    } else {
      object(value);
    }
  }

  template <typename T>
  void read(std::vector<T>& values) {
    values.clear();
    json_.array([&] { read(values.emplace_back()); });
  }

  void read(SourceLocation& location) {
    if (!json_.null_if_next()) object(location);
  }

  void read(FinitenessCounts& counts) {
    object(counts);
    // Sums of these must not overflow, whatever a file says.
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    for (const std::int64_t count : {counts.numel, counts.nan, counts.pos_inf, counts.neg_inf}) {
      if (count < 0 || count > kMost) json_.fail("an impossible number of elements");
    }
  }

  template <typename T>
  void read_enum(T& value) {
    const std::string word = json_.string();
    for (int i = 0; i <= static_cast<int>(last_of(T{})); ++i) {
      if (word == enum_text(static_cast<T>(i))) {
        value = static_cast<T>(i);
        return;
      }
    }
    json_.fail("the unknown word \"" + printable(word.substr(0, 40)) + "\"");
  }

  JsonReader& json_;
};

// Looks at schema and version before anything else is read, so that a newer file is told from a damaged one.
void check_header(std::string_view text) {
  JsonReader json(text);
  std::string schema;
  std::int64_t version = 0;
  bool has_version = false;
  json.object([&](std::string_view key) {
    if (key == "schema") {
      schema = json.string();
    } else if (key == "version") {
      version = json.integer();
      has_version = true;
    } else {
      json.skip();
    }
  });
  json.end();
  if (schema != kSchema) json.fail("there is no \"schema\": \"" + std::string(kSchema) + "\" in it");
  if (!has_version || version < 1) json.fail("it has no valid \"version\"");
  if (version > kJsonVersion) {
    throw ReportError("This diagnosis was written by a newer sherlorch (format version " + std::to_string(version) +
                      ", this one reads up to " + std::to_string(kJsonVersion) + "): upgrade sherlorch to read it.");
  }
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

}  // namespace

std::string to_json(const Diagnosis& diagnosis, int indent) {
  JsonWriter json(indent);
  Writer writer(json);
  json.begin_object();
  writer("schema", std::string(kSchema));
  writer("version", kJsonVersion);
  writer("ok", diagnosis.ok());
  writer("verdict", verdict(diagnosis));
  json::visit(writer, diagnosis);
  json.end_object();
  return json.take();
}

Diagnosis from_json(std::string_view text) {
  if (is_blank(text)) throw ReportError("This is not a sherlorch diagnosis: it is empty.");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark, as some editors add
  Diagnosis diagnosis;
  try {
    check_header(text);
  } catch (const ReportError& error) {
    if (std::string_view(error.what()).starts_with("This ")) throw;
    throw ReportError(std::string("This is not a sherlorch diagnosis, or it is damaged: ") + error.what() + ".");
  }
  JsonReader json(text);
  try {
    DiagnosisReader(json).object(diagnosis);
  } catch (const ReportError& error) {
    throw ReportError(std::string("This sherlorch diagnosis is damaged: ") + error.what() + ".");
  }
  return diagnosis;
}

}  // namespace sherlorch
