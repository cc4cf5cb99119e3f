// Operators that move elements about by position: views, slices, flips and rolls.
#include <algorithm>
#include <array>
#include <utility>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

Relation map_reshape(const Call& call) {
  return numel(call.in) == numel(call.out) ? Relation::identity() : call.unmapped();
}

Relation map_expand(const Call& call) { return call.is("self") ? broadcast(call.in, call.out) : Relation::nothing(); }

// `order[d]`: the input dimension that is output dimension d.
Relation permuted(const Call& call, const std::vector<int>& order) {
  if (order.size() != call.in.size() || order.size() != call.out.size()) return call.unmapped();
  std::vector<int> source(order.size(), Relation::kAny);
  for (std::size_t d = 0; d < order.size(); ++d) source[order[d]] = static_cast<int>(d);
  return Relation::box(std::move(source));
}

std::vector<int> identity_order(std::size_t rank) {
  std::vector<int> order(rank);
  for (std::size_t d = 0; d < rank; ++d) order[d] = static_cast<int>(d);
  return order;
}

Relation map_transpose(const Call& call) {
  const std::size_t rank = call.in.size();
  if (rank == 0) return Relation::identity();
  const char* first = call.name.find("axes") != std::string_view::npos ? "axis0" : "dim0";
  const char* second = call.name.find("axes") != std::string_view::npos ? "axis1" : "dim1";
  const auto a = call.integer(first);
  const auto b = call.integer(second);
  if (!a || !b || wrap(*a, rank) < 0 || wrap(*b, rank) < 0) return by_memory(call);
  std::vector<int> order = identity_order(rank);
  std::swap(order[wrap(*a, rank)], order[wrap(*b, rank)]);
  return permuted(call, order);
}

Relation map_matrix_transpose(const Call& call) {
  std::vector<int> order = identity_order(call.in.size());
  if (order.size() < 2) return Relation::identity();
  if (call.name == "numpy_T") {
    std::reverse(order.begin(), order.end());
  } else {
    std::swap(order[order.size() - 1], order[order.size() - 2]);
  }
  return permuted(call, order);
}

Relation map_permute(const Call& call) {
  const auto dims = call.ints("dims");
  const std::size_t rank = call.in.size();
  if (!dims || dims->size() != rank) return by_memory(call);
  std::vector<int> order;
  for (std::int64_t dim : *dims) {
    order.push_back(wrap(dim, rank));
    if (order.back() < 0) return call.unmapped();
  }
  return permuted(call, order);
}

Relation map_movedim(const Call& call) {
  const auto from = call.ints("source");
  const auto to = call.ints("destination");
  const std::size_t rank = call.in.size();
  if (!from || !to || from->size() != to->size()) return by_memory(call);
  std::vector<int> order(rank, -1);
  std::vector<bool> used(rank, false);
  for (std::size_t k = 0; k < from->size(); ++k) {
    const int source = wrap((*from)[k], rank);
    const int destination = wrap((*to)[k], rank);
    if (source < 0 || destination < 0) return call.unmapped();
    order[destination] = source;
    used[source] = true;
  }
  std::size_t next = 0;
  for (int& dim : order) {
    if (dim >= 0) continue;
    while (used[next]) ++next;
    dim = static_cast<int>(next++);
  }
  return permuted(call, order);
}

Sizes without(const Sizes& sizes, int dim, std::int64_t instead) {
  Sizes result = sizes;
  if (dim >= 0 && dim < static_cast<int>(sizes.size())) result[dim] = instead;
  return result;
}

// Both views have dimension `dim` (size 1 on the side that lacks it).
Relation along_views(const Call& call, const Sizes& out, const Sizes& in, int dim, Link link) {
  if (dim < 0 || numel(out) != numel(call.out) || numel(in) != numel(call.in)) return call.unmapped();
  return along(in, out, dim, std::move(link));
}

// The output lacks the dimension.
Relation map_select(const Call& call) {
  const int dim = wrap(call.integer("dim", 0), call.in.size());
  const auto index = call.integer("index");
  if (dim < 0 || !index) return by_memory(call);
  const std::int64_t at = *index < 0 ? *index + call.in[dim] : *index;
  return along_views(call, without(call.in, dim, 1), call.in, dim, points(0, 0, {at}));
}

Relation map_unbind(const Call& call) {
  const int dim = wrap(call.integer("dim", 0), call.in.size());
  if (dim < 0) return by_memory(call);
  return along_views(call, without(call.in, dim, 1), call.in, dim, points(0, 0, {call.output.facts.list_index}));
}

struct Slice {
  std::int64_t start, step, count;
};

Slice slice_of(const Call& call, std::int64_t size) {
  const std::int64_t step = std::max<std::int64_t>(call.integer("step", 1), 1);
  std::int64_t start = call.integer("start", 0);
  std::int64_t end = call.integer("end", size);
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = std::clamp<std::int64_t>(start, 0, size);
  end = std::clamp<std::int64_t>(end, start, size);
  return {start, step, (end - start + step - 1) / step};
}

Sizes slice_points(const Slice& slice) {
  Sizes result(slice.count);
  for (std::int64_t k = 0; k < slice.count; ++k) result[k] = slice.start + k * slice.step;
  return result;
}

Relation map_slice(const Call& call) {
  const int dim = wrap(call.integer("dim", 0), call.in.size());
  if (dim < 0 || call.out.size() != call.in.size()) return by_memory(call);
  return along(call.in, call.out, dim, points(0, 0, slice_points(slice_of(call, call.in[dim]))));
}

Relation map_narrow(const Call& call) {
  const int dim = wrap(call.integer("dim", 0), call.in.size());
  const auto start = call.integer("start");
  if (dim < 0 || !start || call.out.size() != call.in.size()) return by_memory(call);
  const std::int64_t first = *start < 0 ? *start + call.in[dim] : *start;
  return along(call.in, call.out, dim, points(0, 0, slice_points({first, 1, call.out[dim]})));
}

// The parts before this one tell where it starts.
Relation map_split(const Call& call) {
  const int dim = wrap(call.integer("dim", 0), call.in.size());
  if (dim < 0 || call.out.size() != call.in.size()) return by_memory(call);
  std::int64_t start = 0;
  std::int64_t total = 0;
  for (const OutputRecord& part : call.record.outputs) {
    const DimArray& sizes = part.facts.geometry.sizes;
    if (sizes.size() != call.in.size()) return by_memory(call);
    total += sizes[dim];
    if (part.facts.list_index < call.output.facts.list_index) start += sizes[dim];
  }
  if (total != call.in[dim]) return by_memory(call);
  return along(call.in, call.out, dim, points(0, 0, slice_points({start, 1, call.out[dim]})));
}

Sizes inserted_points(std::int64_t size, std::int64_t at) {
  Sizes result(size, Link::kNone);
  if (at >= 0 && at < size) result[at] = 0;
  return result;
}

// select_backward, select_scatter: the output has the dimension, the gradient lacks it.
Relation map_into_select(const Call& call) {
  const int dim = wrap(call.integer("dim", 0), call.out.size());
  if (dim < 0) return call.unmapped();
  std::int64_t at = call.integer("index", 0);
  if (at < 0) at += call.out[dim];
  if (call.is("self")) {
    ElementSet kept;
    const std::int64_t block = [&] {
      std::int64_t product = 1;
      for (std::size_t d = dim + 1; d < call.out.size(); ++d) product *= call.out[d];
      return product;
    }();
    const std::int64_t total = numel(call.out);
    const std::int64_t outer = block * call.out[dim];
    for (std::int64_t base = 0; base < total; base += outer) {
      if (at > 0) kept.append(base, base + at * block);
      if ((at + 1) * block < outer) kept.append(base + (at + 1) * block, base + outer);
    }
    return Relation::identity().restrict_outputs(std::move(kept));
  }
  return along_views(call, call.out, without(call.out, dim, 1), dim, points(0, 0, inserted_points(call.out[dim], at)));
}

Sizes inverse_points(const Sizes& forward, std::int64_t size) {
  Sizes result(size, Link::kNone);
  for (std::size_t k = 0; k < forward.size(); ++k) {
    if (forward[k] >= 0 && forward[k] < size) result[forward[k]] = static_cast<std::int64_t>(k);
  }
  return result;
}

Relation map_into_slice(const Call& call) {
  const int dim = wrap(call.integer("dim", 0), call.out.size());
  if (dim < 0 || call.in.size() != call.out.size()) return call.unmapped();
  const Sizes from = inverse_points(slice_points(slice_of(call, call.out[dim])), call.out[dim]);
  if (!call.is("self")) return along(call.in, call.out, dim, points(0, 0, from));
  Sizes kept(from.size());
  for (std::size_t k = 0; k < kept.size(); ++k) kept[k] = from[k] < 0 ? static_cast<std::int64_t>(k) : Link::kNone;
  return along(call.in, call.out, dim, points(0, 0, std::move(kept)));
}

Sizes reversed_points(std::int64_t size) {
  Sizes result(size);
  for (std::int64_t c = 0; c < size; ++c) result[c] = size - 1 - c;
  return result;
}

Relation map_flip(const Call& call) {
  const std::size_t rank = call.in.size();
  std::vector<bool> flipped(rank, false);
  if (call.name == "fliplr") {
    if (rank > 1) flipped[1] = true;
  } else if (call.name == "flipud") {
    if (rank > 0) flipped[0] = true;
  } else {
    const auto dims = call.ints("dims");
    if (!dims) return call.unmapped();
    for (std::int64_t dim : *dims) {
      if (wrap(dim, rank) >= 0) flipped[wrap(dim, rank)] = true;
    }
  }
  std::vector<Link> links;
  for (int d = 0; d < static_cast<int>(rank); ++d) {
    links.push_back(flipped[d] ? points(d, d, reversed_points(call.in[d])) : same(d, d));
  }
  return Relation::product(std::move(links), call.out, call.in);
}

Sizes rolled_points(std::int64_t size, std::int64_t shift) {
  Sizes result(size);
  for (std::int64_t c = 0; c < size; ++c) result[c] = ((c - shift) % size + size) % size;
  return result;
}

Relation map_roll(const Call& call) {
  const auto shifts = call.ints("shifts");
  const auto dims = call.ints("dims");
  if (!shifts) return call.unmapped();
  if (!dims || dims->empty()) {
    if (shifts->size() != 1 || numel(call.in) > kMaxListed) return call.unmapped();
    return Relation::function(rolled_points(numel(call.in), (*shifts)[0]));
  }
  if (dims->size() != shifts->size()) return call.unmapped();
  const std::size_t rank = call.in.size();
  Sizes total(rank, 0);
  for (std::size_t k = 0; k < dims->size(); ++k) {
    const int dim = wrap((*dims)[k], rank);
    if (dim < 0) return call.unmapped();
    total[dim] += (*shifts)[k];
  }
  std::vector<Link> links;
  for (int d = 0; d < static_cast<int>(rank); ++d) {
    links.push_back(total[d] == 0 ? same(d, d) : points(d, d, rolled_points(call.in[d], total[d])));
  }
  return Relation::product(std::move(links), call.out, call.in);
}

Relation map_rot90(const Call& call) {
  const auto dims = call.ints("dims");
  const std::size_t rank = call.in.size();
  if (!dims || dims->size() != 2) return call.unmapped();
  const int a = wrap((*dims)[0], rank);
  const int b = wrap((*dims)[1], rank);
  const int turns = static_cast<int>(((call.integer("k", 1) % 4) + 4) % 4);
  if (a < 0 || b < 0) return call.unmapped();
  std::vector<Link> links;
  for (int d = 0; d < static_cast<int>(rank); ++d) {
    if (d != a && d != b) links.push_back(same(d, d));
  }
  const bool crossed = turns % 2 == 1;
  const int out_of_a = crossed ? b : a;
  const int out_of_b = crossed ? a : b;
  const bool flip_a = turns == 2 || turns == 3;
  const bool flip_b = turns == 1 || turns == 2;
  links.push_back(flip_a ? points(out_of_a, a, reversed_points(call.in[a])) : same(out_of_a, a));
  links.push_back(flip_b ? points(out_of_b, b, reversed_points(call.in[b])) : same(out_of_b, b));
  return Relation::product(std::move(links), call.out, call.in);
}

}  // namespace

std::span<const Family> shape_families() {
  static constexpr std::array kTable{
      Family{"reshape reshape_as view view_as view_copy _unsafe_view _reshape_alias _reshape_copy "
             "_reshape_alias_copy _reshape_from_tensor flatten unflatten ravel "
             "squeeze squeeze_copy unsqueeze unsqueeze_copy atleast_1d atleast_2d atleast_3d",
             map_reshape},
      Family{"expand expand_as expand_copy broadcast_to", map_expand},
      Family{"transpose transpose_copy swapaxes swapdims", map_transpose},
      Family{"t t_copy mT mH adjoint matrix_H numpy_T", map_matrix_transpose},
      Family{"permute permute_copy", map_permute},
      Family{"movedim moveaxis", map_movedim},
      Family{"select select_copy", map_select},
      Family{"unbind unbind_copy", map_unbind},
      Family{"slice slice_copy", map_slice},
      Family{"narrow narrow_copy", map_narrow},
      Family{"split split_copy split_with_sizes split_with_sizes_copy chunk tensor_split unsafe_split unsafe_chunk "
             "unsafe_split_with_sizes",
             map_split},
      Family{"as_strided hsplit vsplit dsplit", by_memory},
      Family{"select_backward select_scatter", map_into_select},
      Family{"slice_backward slice_scatter", map_into_slice},
      Family{"flip fliplr flipud", map_flip},
      Family{"roll", map_roll},
      Family{"rot90", map_rot90},
  };
  return kTable;
}

}  // namespace sherlorch::maps
