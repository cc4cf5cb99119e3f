// What a diagnosis looks like: text for people, JSON for machines, DOT for Graphviz, one HTML page to look at and mail.
//
//   sherlorch::Diagnosis diagnosis = tracker.diagnose(loss);
//   std::cout << sherlorch::to_text(diagnosis) << '\n';
//   sherlorch::write_file("loss.html", sherlorch::to_html(diagnosis));
//
// Everything that came from the user's program (op, module, file and thread names, source lines) is escaped for the
// format that it goes into: no name can move the cursor, close a string or become markup.
//
// Threads: every function may be called on any thread; they share nothing. Cost: linear in the size of the diagnosis,
// and text and page read the source files that it names. Errors: std::bad_alloc, and what is said below.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "sherlorch/diagnosis.h"
#include "sherlorch/errors.h"
#include "sherlorch/export.h"

namespace sherlorch {

// Puts line `line` (1-based) of `file` into `text`, without its line end; false if there is no such line.
using SourceReader = std::function<bool(const std::string& file, int line, std::string* text)>;

// --- Text

struct TextOptions {
  bool color = false;               // ANSI escapes
  std::size_t width = 100;          // columns to which prose is wrapped; a line that names an op is never cut
  bool show_source = true;          // the culprit's source line and its neighbours
  std::size_t max_path_steps = 12;  // a longer path is folded in the middle, transitions kept; 0: no limit
  std::size_t max_culprits = 10;    // the rest is counted; 0: no limit
  std::size_t max_frames = 5;       // innermost frames of the user's own code under "Called:"; 0: none
  // Where source lines come from; empty: the file system. (Python's linecache also knows notebook cells.)
  SourceReader source;
};

// The whole report, without a final newline: the verdict first, then for each culprit the source line, the witness, the
// cause, what helps and the path; then what was innocent, what was not seen, and how certain it all is.
SHERLORCH_API std::string to_text(const Diagnosis& diagnosis, const TextOptions& options = {});

// One sentence without a full stop: "log made -Inf at model.py:12 in model.layer1; layer_norm turned it into NaN".
// For a finite target: "No non-finite values found in target tensor (node [7] sum). 8 ops were traced."
SHERLORCH_API std::string verdict(const Diagnosis& diagnosis);

// --- JSON

// Raised when a key is removed or means something else. New keys do not raise it: readers skip what they do not know.
inline constexpr int kJsonVersion = 1;

// Valid UTF-8, no final newline. indent: spaces a level, 0 for one line. Non-finite numbers are the strings "nan",
// "inf" and "-inf". Not escaped for a <script> element: "</" appears as it is. docs/json.md describes the keys,
// docs/report-schema.json is the schema.
SHERLORCH_API std::string to_json(const Diagnosis& diagnosis, int indent = 2);

// What to_json wrote: from_json(to_json(d)) == d wherever d's strings are valid UTF-8 (and no number is NaN, which
// compares unequal). Throws ReportError where the text is damaged, is something else or was written by a newer
// sherlorch. Safe on any bytes.
SHERLORCH_API Diagnosis from_json(std::string_view text);

// --- DOT

// The culprits' paths as a Graphviz digraph. One node an op, however many paths lead through it: name, shape, module,
// line, and how many elements are bad. Culprits are filled red, the target has a double border, an origin that is no op
// is a note in front of its first reader. An edge carries the classes that flowed along it, red where the op at its
// head made something else of them. Long paths are folded as in the text, so that Graphviz can lay them out. Ends with
// a newline.
SHERLORCH_API std::string to_dot(const Diagnosis& diagnosis);

// --- PROV-JSON

// The culprits' paths in W3C PROV-JSON, for tools that read provenance: tensors are entities, ops are activities, with
// used and wasGeneratedBy between them; wasDerivedFrom where ops were folded. docs/json.md has the attributes. The
// document has five sections, each of which may be empty. Ends with a newline.
SHERLORCH_API std::string to_prov_json(const Diagnosis& diagnosis);

// --- Page

struct PageOptions {
  bool show_source = true;  // the user's source lines around each step
  SourceReader source;      // where they come from; empty: the file system, files named *.py alone
};

// One self-contained HTML file, UTF-8, that loads nothing and works offline; docs/page.md says what it shows.
SHERLORCH_API std::string to_html(const Diagnosis& diagnosis, const PageOptions& options = {});

// --- Files

// Puts a report into a file, whole or not at all.
//
// Writes beside `path` under another name, flushes to the disk, then renames: a reader sees the old file or the whole
// new one, and a crash or a full disk leaves `path` as it was. An existing file keeps its permissions, a symbolic link
// its place (what it points to is replaced). Where `path` is a pipe or a device (/dev/stdout), the content is written
// to it as it comes. Without `overwrite` an existing `path` is an error, also when it appears while the content is
// being written. Throws ReportError with the path, the reason and what to do.
SHERLORCH_API void write_file(const std::string& path, std::string_view content, bool overwrite = false);

}  // namespace sherlorch
