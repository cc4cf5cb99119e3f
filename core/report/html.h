// The page of a diagnosis (to_html in sherlorch/report.h) with what else can be shown on it: the timeline of the flight
// recorder and heat maps of the bad elements. What the page shows is in docs/page.md.
//
// Everything that came from the user's program (op, module, file and thread names, source lines) goes in as JSON and
// reaches the document through text nodes alone, so that markup in a name is shown as text. A content security policy
// with the hashes of the page's own script and style lets nothing else run and nothing out.
//
// Threads: pure apart from reading source files. Cost: linear in what is passed in, about 25 bytes an op of the
// timeline and 500 a step; of very long paths the middle is left out.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/element_set.h"
#include "core/report/chrome_trace.h"
#include "sherlorch/diagnosis.h"
#include "sherlorch/report.h"

namespace sherlorch {

// Which elements of one op's output are bad, as a grid of at most kMaxSide by kMaxSide cells.
//
//            columns: the last dimension
//          +-----------------------------+
//   rows:  |  values[row * cols + col]   |   0: all finite ... 1: all bad
//   the    |                             |
//   others +-----------------------------+
struct HeatMap {
  static constexpr std::int64_t kMaxSide = 64;  // chosen: a cell is still a few pixels wide on a phone

  OpSeq seq = 0;  // the step whose output this is
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_extent = 0;  // elements along each side before downsampling
  std::int64_t col_extent = 0;
  std::int64_t row_groups = 1;  // equal bands of rows to be told apart: the samples of the batch
  std::string row_label;        // "dimensions 0 to 2: 4 x 4 x 16"
  std::string col_label;
  std::vector<float> values;  // rows * cols fractions in [0, 1]
};

// The map of a tensor of this shape whose bad elements are these: sorted, disjoint runs of row-major linear indices,
// such as ElementSet::runs() gives. A long vector is folded into rows. A shape without elements gives an empty map.
// Runs that do not lie in the tensor are cut.
HeatMap make_heat_map(OpSeq seq, std::span<const std::int64_t> shape, std::span<const Run> bad);

// One module of the model, for the tree.
struct PageModule {
  std::string path;  // qualified name: "encoder.layers.3.norm"
  std::string type;  // class name; may be empty
};

// What the page can show beyond the diagnosis. All of it is optional.
struct PageExtras {
  std::vector<HeatMap> heat_maps;                  // of the culprits' outputs, by seq; empty ones are ignored
  std::vector<PageModule> modules;                 // the whole model; modules that ops name are in the tree in any case
  std::map<std::string, std::string> file_labels;  // what to call files whose names say nothing: "In[3]" (a cell)
  bool show_source = true;                         // the user's source lines around each step
  SourceReader source;  // where they come from; empty: the file system, files named *.py alone
};

// The whole file, UTF-8, deterministic. The timeline is in the order in which it is to be drawn (oldest first).
std::string to_html(const Diagnosis& diagnosis, std::span<const TimelineOp> timeline, const PageExtras& extras = {});

}  // namespace sherlorch
