// Operators that write a source to places named by an index, and the derivatives of those that read from such places.
#include <algorithm>
#include <array>
#include <utility>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

// For each element of the index the linear place in `into` that it names along `dim`, and the linear place in `from`
// with the same coordinates as the index element.
struct Places {
  Sizes into, from;
};

std::optional<Places> named_places(const Call& call, const Sizes& into, const Sizes& from) {
  const auto shape = call.shape("index");
  const Sizes* values = call.values("index");
  if (!shape || values == nullptr || shape->empty() || shape->size() != into.size()) return std::nullopt;
  const int dim = wrap(call.integer("dim", 0), into.size());
  if (dim < 0) return std::nullopt;
  Places places;
  places.into.resize(values->size());
  places.from.resize(from.size() == into.size() ? values->size() : 0);
  for (std::size_t k = 0; k < values->size(); ++k) {
    std::int64_t rest = static_cast<std::int64_t>(k);
    std::int64_t target = 0, target_weight = 1;
    std::int64_t source = 0, source_weight = 1;
    for (std::size_t d = into.size(); d-- > 0;) {
      const std::int64_t c = rest % (*shape)[d];
      rest /= (*shape)[d];
      const std::int64_t named = (*values)[k] < 0 ? (*values)[k] + into[d] : (*values)[k];
      target += (static_cast<int>(d) == dim ? named : c) * target_weight;
      target_weight *= into[d];
      if (places.from.empty()) continue;
      source += c * source_weight;
      source_weight *= from[d];
    }
    places.into[k] = target;
    if (!places.from.empty()) places.from[k] = source;
  }
  return places;
}

// scatter, scatter_add, scatter_reduce. `keeps_self`: what self held takes part even where something is written.
Relation scattered(const Call& call, bool keeps_self) {
  if (call.is("index")) return Relation::everything();
  if (call.is("self")) {
    if (keeps_self) return Relation::identity();
    auto places = named_places(call, call.out, {});
    if (!places) return Relation::identity();
    return Relation::identity().restrict_outputs(complement(ElementSet::of(std::move(places->into)), numel(call.out)));
  }
  auto places = named_places(call, call.out, call.in);
  if (!places || places->from.size() != places->into.size()) return Relation::everything();
  return Relation::product({pairs(0, 0, std::move(places->into), std::move(places->from))}, {}, {});
}

Relation map_scatter(const Call& call) { return scattered(call, call.op.overload.find("reduce") != std::string::npos); }
Relation map_scatter_add(const Call& call) { return scattered(call, true); }

// index_add, index_copy, index_fill, index_reduce: whole slices along dim.
Relation indexed_slices(const Call& call, const char* source_name, bool keeps_self) {
  if (call.is("index")) return Relation::everything();
  if (call.out.empty()) return Relation::everything();
  const int dim = wrap(call.integer("dim", 0), call.out.size());
  const Sizes* values = call.values("index");
  if (dim < 0) return call.unmapped();
  if (call.is("self")) {
    if (keeps_self || values == nullptr) return Relation::identity();
    Sizes from(call.out[dim]);
    for (std::size_t c = 0; c < from.size(); ++c) from[c] = static_cast<std::int64_t>(c);
    for (std::int64_t value : *values) {
      const std::int64_t c = value < 0 ? value + call.out[dim] : value;
      if (c >= 0 && c < call.out[dim]) from[c] = Link::kNone;
    }
    return along(call.in, call.out, dim, points(0, 0, std::move(from)));
  }
  if (!call.is(source_name)) return Relation::everything();
  if (call.in.size() != call.out.size()) return Relation::everything();
  if (values == nullptr) return lines(call.in, call.out, {dim});
  Sizes to = *values;
  for (std::int64_t& c : to) c = c < 0 ? c + call.out[dim] : c;
  return along(call.in, call.out, dim, scatter(0, 0, std::move(to)));
}
Relation map_index_add(const Call& call) { return indexed_slices(call, "source", true); }
Relation map_index_copy(const Call& call) { return indexed_slices(call, "source", false); }
Relation map_index_fill(const Call& call) { return indexed_slices(call, "", false); }
Relation map_index_select_backward(const Call& call) { return indexed_slices(call, "grad", true); }

Relation map_put(const Call& call) {
  const Sizes* values = call.values("index");
  if (call.is("index")) return Relation::everything();
  if (values == nullptr) return call.is("self") ? Relation::identity() : Relation::everything();
  Sizes to = *values;
  for (std::int64_t& c : to) c = c < 0 ? c + numel(call.out) : c;
  if (!call.is("self")) return Relation::product({scatter(0, 0, std::move(to))}, {}, {});
  if (call.flag("accumulate", false)) return Relation::identity();
  return Relation::identity().restrict_outputs(complement(ElementSet::of(std::move(to)), numel(call.out)));
}

// The n-th place under the mask takes the n-th element of the source.
Relation map_masked_scatter(const Call& call) {
  if (call.is("mask")) return broadcast(call.in, call.out);
  const bool is_self = call.is("self");
  auto chosen = where_mask(call, "mask", call.out, !is_self);
  if (is_self) {
    Relation relation = broadcast(call.in, call.out);
    return chosen ? std::move(relation).restrict_outputs(*std::move(chosen)) : relation;
  }
  if (!chosen || chosen->coarse() || chosen->count() > kMaxListed) return Relation::everything();
  Sizes to(numel(call.in), Link::kNone);
  std::size_t next = 0;
  chosen->for_each([&](std::int64_t k) {
    if (next >= to.size()) return false;
    to[next++] = k;
    return true;
  });
  return Relation::product({scatter(0, 0, std::move(to))}, {}, {});
}

// The gradient's elements under the mask, packed at the front of the output.
Relation map_masked_scatter_backward(const Call& call) {
  if (!call.is("grad_output")) return Relation::everything();
  auto chosen = where_mask(call, "mask", call.in, true);
  if (!chosen || chosen->coarse() || chosen->count() > kMaxListed) return Relation::everything();
  Sizes from(numel(call.out), Link::kNone);
  std::size_t next = 0;
  chosen->for_each([&](std::int64_t k) {
    if (next >= from.size()) return false;
    from[next++] = k;
    return true;
  });
  return Relation::function(std::move(from));
}

// Each row of the gradient goes to the row of the weight that its index names.
Relation map_embedding_backward(const Call& call) {
  const auto index = call.shape("indices");
  if (!call.is("grad_output") && !call.is("grad")) return Relation::everything();
  if (!index || call.out.size() != 2) return call.unmapped();
  const std::int64_t count = numel(*index);
  if (count * call.out[1] != numel(call.in)) return call.unmapped();
  std::vector<Link> links{same(1, 1)};
  if (const Sizes* values = call.values("indices")) {
    Sizes to = *values;
    const std::int64_t padding = call.integer("padding_idx", -1);
    for (std::int64_t& row : to) row = row == padding ? Link::kNone : row;
    links.push_back(scatter(0, 0, std::move(to)));
  }
  return Relation::product(std::move(links), call.out, {count, call.out[1]});
}

Relation map_embedding_renorm(const Call& call) {
  return call.is("self") ? lines(call.in, call.out, {-1}) : Relation::everything();
}

// max, median, sort ...: the gradient's element goes back to the place along dim that was chosen.
Relation map_selected_backward(const Call& call) {
  if (!call.is("grad") || call.out.empty()) return call.out.empty() ? Relation::everything() : Relation::nothing();
  const int dim = wrap(call.integer("dim", 0), call.out.size());
  const Sizes* values = call.values("indices");
  if (dim < 0) return call.unmapped();
  if (values == nullptr) return expansion(call.in, call.out, {dim});
  Sizes into = call.in;  // the gradient's shape with the dimension in its place
  if (into.size() + 1 == call.out.size()) into.insert(into.begin() + dim, 1);
  if (into.size() != call.out.size() || static_cast<std::int64_t>(values->size()) != numel(into))
    return call.unmapped();
  Sizes to(values->size());
  for (std::size_t k = 0; k < to.size(); ++k) {
    std::int64_t rest = static_cast<std::int64_t>(k);
    std::int64_t linear = 0;
    std::int64_t weight = 1;
    for (std::size_t d = into.size(); d-- > 0;) {
      const std::int64_t c = rest % into[d];
      rest /= into[d];
      linear += (static_cast<int>(d) == dim ? (*values)[k] : c) * weight;
      weight *= call.out[d];
    }
    to[k] = linear;
  }
  return Relation::product({scatter(0, 0, std::move(to))}, {}, {});
}

Relation map_cumulative_backward(const Call& call) {
  if (call.is("input") && call.name.starts_with("cummaxmin")) return Relation::nothing();
  return lines(call.in, call.out, {call.integer("dim", 0)});
}

}  // namespace

std::span<const Family> scatter_families() {
  static constexpr std::array kTable{
      Family{"scatter", map_scatter, "index"},
      Family{"scatter_add scatter_reduce", map_scatter_add, "index"},
      Family{"index_add index_reduce", map_index_add, "index"},
      Family{"index_copy", map_index_copy, "index"},
      Family{"index_fill", map_index_fill, "index"},
      Family{"index_select_backward", map_index_select_backward, "index"},
      Family{"put", map_put, "index"},
      Family{"masked_scatter", map_masked_scatter, "mask"},
      Family{"masked_scatter_backward", map_masked_scatter_backward, "mask"},
      Family{"embedding_dense_backward embedding_backward", map_embedding_backward, "indices"},
      Family{"embedding_renorm embedding_renorm_", map_embedding_renorm},
      Family{"value_selecting_reduction_backward", map_selected_backward, "indices"},
      Family{"cummaxmin_backward cumprod_backward", map_cumulative_backward},
  };
  return kTable;
}

}  // namespace sherlorch::maps
