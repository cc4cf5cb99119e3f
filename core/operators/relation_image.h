// The engine under Relation: carries a set of elements across the links between two shapes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/element_set.h"
#include "core/operators/relation.h"

namespace sherlorch {

// Elements of `candidates` (in the row-major shape `to`) tied by all of `links` to at least one of `given` (in the
// shape `from`). to_input: `from` is the output's shape and `to` the input's; false: the other way about. REQUIRES:
// every link's dimensions exist in these shapes. Returns `candidates`, marked coarse, where the work would be
// excessive.
ElementSet relation_image(const std::vector<Link>& links, std::span<const std::int64_t> from,
                          std::span<const std::int64_t> to, bool to_input, const ElementSet& given,
                          const ElementSet& candidates);

}  // namespace sherlorch
