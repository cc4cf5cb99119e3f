// What the page's script reads: the diagnosis as to_json() writes it, and the extras in a compact form of their own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/report/html.h"

namespace sherlorch {

// {"diagnosis": {...}, "page": {"sources": ..., "heat_maps": ..., "modules": ..., "timeline": ...}}, safe to stand
// inside a script element. REQUIRES: the paths have been shortened.
std::string page_data(const Diagnosis& diagnosis, std::span<const TimelineOp> timeline, const PageExtras& extras);

// JSON that may stand inside a script element: no '<' (so neither "</script" nor "<!--"), no U+2028 and U+2029.
// All of these can occur in JSON inside strings only, where an escape means the same.
std::string escape_for_script(std::string_view json);

// The text as HTML content.
std::string escape_html(std::string_view text);

}  // namespace sherlorch
