// Puts a report into a file, whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "core/report/report_error.h"

namespace sherlorch {

// Writes beside `path` under another name, flushes to the disk, then renames: a reader sees the old file or the whole
// new one, and a crash or a full disk leaves `path` as it was. An existing file keeps its permissions, a symbolic link
// its place (what it points to is replaced). Where `path` is a pipe or a device (/dev/stdout), the content is written
// to it as it comes. Without `overwrite` an existing `path` is an error, also when it appears while the content is
// being written. Throws ReportError: one sentence with the path, the reason and what to do.
void write_file(const std::string& path, std::string_view content, bool overwrite);

}  // namespace sherlorch
