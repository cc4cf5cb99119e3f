#include "core/base/shared_bytes.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace sherlorch {

Run run_sharing_bytes(const Geometry& from, const Run& run, const Geometry& to) {
  const auto mine = static_cast<std::int64_t>(from.item_size);
  const auto theirs = static_cast<std::int64_t>(to.item_size);
  const std::int64_t begin = std::max<std::int64_t>(0, from.offset - to.offset + run.begin * mine);
  const std::int64_t end = from.offset - to.offset + run.end * mine;
  if (begin >= end) return {};
  return {begin / theirs, std::min(to.numel(), (end + theirs - 1) / theirs)};
}

namespace {

ElementSet of_rows(const Geometry& from, const ElementSet& elements, const Geometry& to) {
  ElementSet shared;
  for (const Run& run : elements.runs()) {
    const Run on = run_sharing_bytes(from, run, to);
    shared.append(on.begin, on.end);
  }
  if (elements.coarse()) shared.mark_coarse();
  return shared;
}

// Several elements may lie in one place: expanded, or as_strided with steps that meet.
bool several_in_a_place(const Geometry& geometry) {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // stride, size
  for (std::size_t d = 0; d < geometry.sizes.size(); ++d) {
    if (geometry.sizes[d] > 1) steps.emplace_back(std::abs(geometry.strides[d]), geometry.sizes[d]);
  }
  std::sort(steps.begin(), steps.end());
  std::int64_t reach = 0;  // of the inner dimensions, to the beginning of their last element
  for (const auto& [stride, size] : steps) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

bool on_bytes(const Geometry& from, const ElementSet& elements, const Geometry& to, std::int64_t candidate) {
  const auto step = static_cast<std::int64_t>(std::min(from.item_size, to.item_size));
  const std::int64_t begin = to.byte_of(candidate);
  for (std::int64_t byte = begin; byte < begin + static_cast<std::int64_t>(to.item_size); byte += step) {
    const std::int64_t at = from.linear_containing(byte);
    if (at >= 0 && elements.contains(at)) return true;
  }
  return false;
}

}  // namespace

ElementSet sharing_bytes(const Geometry& from, const ElementSet& elements, const Geometry& to,
                         const ElementSet& candidates, bool exact) {
  if (elements.empty() || candidates.empty()) return {};
  if (from == to) return set_intersection(candidates, elements);
  if (from.contiguous() && to.contiguous()) return set_intersection(candidates, of_rows(from, elements, to));
  const std::int64_t given = elements.count();
  const std::int64_t asked = candidates.count();
  if (several_in_a_place(to) || asked <= given) {
    if (asked > kMostSharedLooked && !exact) {
      ElementSet all = candidates;
      all.mark_coarse();
      return all;
    }
    ElementSet shared;
    candidates.for_each([&](std::int64_t i) {
      if (on_bytes(from, elements, to, i)) shared.append(i, i + 1);
      return true;
    });
    if (elements.coarse() || candidates.coarse()) shared.mark_coarse();
    return shared;
  }
  if (given > kMostSharedLooked && !exact) {
    ElementSet all = candidates;
    all.mark_coarse();
    return all;
  }
  const auto step = static_cast<std::int64_t>(std::min(from.item_size, to.item_size));
  std::vector<std::int64_t> found;
  elements.for_each([&](std::int64_t i) {
    const std::int64_t begin = from.byte_of(i);
    for (std::int64_t byte = begin; byte < begin + static_cast<std::int64_t>(from.item_size); byte += step) {
      const std::int64_t at = to.linear_containing(byte);
      if (at >= 0) found.push_back(at);
    }
    return true;
  });
  ElementSet shared = ElementSet::of(std::move(found));
  if (elements.coarse()) shared.mark_coarse();
  return set_intersection(candidates, shared);
}

}  // namespace sherlorch
