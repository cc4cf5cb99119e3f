// From the elements of a tensor that was read to the elements of the output that wrote them.
#pragma once

#include "core/graph/op_record.h"

namespace sherlorch {

// The elements of edge.writer's output that `subset`, elements of the input with this geometry, are the bytes of.
// REQUIRES: subset is part of edge.elements. A folded edge answers with all bad elements of the output.
ElementSet writer_elements(const ReadEdge& edge, const Geometry& input, const ElementSet& subset);

// True if writer_elements() is sure to answer with `subset` itself: the input is the output, not another view of it.
inline bool same_elements(const ReadEdge& edge, const Geometry& input) noexcept {
  return edge.folded == 0 && edge.delta == 0 && input == edge.writer->outputs[edge.output].facts.geometry;
}

// The part of edge.elements that lies in `wanted`, elements of the writer's output.
ElementSet elements_from(const ReadEdge& edge, const Geometry& input, const ElementSet& wanted);

}  // namespace sherlorch
