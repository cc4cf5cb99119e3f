// A diagnosis as JSON, for machines and for `sherlorch show`. docs/json.md describes it, docs/report-schema.json is its
// schema (JSON Schema 2020-12).
#pragma once

#include <string>
#include <string_view>

#include "core/diagnose/diagnosis.h"
#include "core/report/report_error.h"

namespace sherlorch {

// Raised when a key is removed or means something else. New keys do not raise it: readers skip what they do not know.
inline constexpr int kJsonVersion = 1;

// Valid UTF-8, no final newline. indent: spaces a level, 0 for one line. Non-finite numbers are the strings "nan",
// "inf" and "-inf". Not escaped for a <script> element: "</" appears as it is.
std::string to_json(const Diagnosis& diagnosis, int indent = 2);

// What to_json wrote: from_json(to_json(d)) == d wherever d's strings are valid UTF-8 (and no number is NaN, which
// compares unequal). Throws ReportError, one sentence, where the text is damaged, is something else or was written by a
// newer sherlorch. Safe on any bytes.
Diagnosis from_json(std::string_view text);

// "none", "finite_to_inf", "finite_to_nan", "inf_to_nan", "nan_to_inf", "inf_to_inf"
const char* transition_name(Transition transition) noexcept;

}  // namespace sherlorch
