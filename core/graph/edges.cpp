#include "core/graph/edges.h"

#include <vector>

namespace sherlorch {

namespace {

// How linear indices of the input become linear indices of the output.
class ElementMap {
 public:
  ElementMap(const ReadEdge& edge, const Geometry& input)
      : input_(input), output_(edge.writer->outputs[edge.output].facts.geometry), delta_(edge.delta) {
    if (delta_ == 0 && input_ == output_) {
      shift_known_ = true;
    } else if (input_.item_size == output_.item_size && input_.contiguous() && output_.contiguous()) {
      const std::int64_t bytes = input_.offset + delta_ - output_.offset;
      if (bytes % static_cast<std::int64_t>(input_.item_size) == 0) {
        shift_known_ = true;
        shift_ = bytes / static_cast<std::int64_t>(input_.item_size);
      }
    }
  }

  bool shift_known() const { return shift_known_; }
  std::int64_t shift() const { return shift_; }

  // -1 if the bytes of the element are not part of the output. A wider element answers with its first bad part.
  std::int64_t operator()(std::int64_t i, const ElementSet& bad) const {
    const std::int64_t byte = input_.byte_of(i) + delta_;
    std::int64_t first = -1;
    for (std::int64_t b = byte; b < byte + static_cast<std::int64_t>(input_.item_size); b += output_.item_size) {
      const std::int64_t at = output_.linear_containing(b);
      if (at < 0) continue;
      if (bad.contains(at)) return at;
      if (first < 0) first = at;
    }
    return first;
  }

 private:
  const Geometry& input_;
  const Geometry& output_;
  std::int64_t delta_;
  bool shift_known_ = false;
  std::int64_t shift_ = 0;
};

ElementSet moved(const ElementSet& set, std::int64_t shift) {
  if (shift == 0) return set;
  ElementSet result;
  for (const Run& run : set.runs()) result.append(run.begin + shift, run.end + shift);
  if (set.coarse()) result.mark_coarse();
  return result;
}

}  // namespace

ElementSet writer_elements(const ReadEdge& edge, const Geometry& input, const ElementSet& subset) {
  const BadElements& bad = edge.writer->outputs[edge.output].bad;
  if (edge.folded != 0) return bad.all();
  const ElementMap map(edge, input);
  if (map.shift_known()) return moved(subset, map.shift());
  const ElementSet all = bad.all();
  std::vector<std::int64_t> indices;
  subset.for_each([&](std::int64_t i) {
    const std::int64_t at = map(i, all);
    if (at >= 0) indices.push_back(at);
    return true;
  });
  return ElementSet::of(std::move(indices));
}

ElementSet elements_from(const ReadEdge& edge, const Geometry& input, const ElementSet& wanted) {
  if (wanted.empty()) return {};
  if (edge.folded != 0) return edge.elements;
  const ElementMap map(edge, input);
  if (map.shift_known()) return set_intersection(edge.elements, moved(wanted, -map.shift()));
  const ElementSet all = edge.writer->outputs[edge.output].bad.all();
  ElementSet result;
  edge.elements.for_each([&](std::int64_t i) {
    const std::int64_t at = map(i, all);
    if (at >= 0 && wanted.contains(at)) result.append(i, i + 1);
    return true;
  });
  return result;
}

}  // namespace sherlorch
