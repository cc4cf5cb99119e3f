// Which elements of one view of a storage lie on the bytes of elements of another one.
#pragma once

#include "core/base/element_set.h"
#include "core/base/geometry.h"

namespace sherlorch {

// The elements of `to` that have a byte in common with a run of elements of `from`; empty (begin >= end) if none has.
// Both are contiguous. O(1).
Run run_sharing_bytes(const Geometry& from, const Run& run, const Geometry& to);

// Those of `candidates`, elements of `to`, that have a byte in common with one of `elements`, elements of `from`. Both
// geometries count from the start of the same storage. Where elements of `from` share a byte themselves (expand), the
// first of them counts.
//
// Rows of memory take the time of their runs. Other layouts are looked at element by element; where more than
// kMostSharedLooked would have to be, the answer is all of the candidates and coarse, unless `exact`.
inline constexpr std::int64_t kMostSharedLooked = std::int64_t{1} << 22;
ElementSet sharing_bytes(const Geometry& from, const ElementSet& elements, const Geometry& to,
                         const ElementSet& candidates, bool exact = false);

}  // namespace sherlorch
