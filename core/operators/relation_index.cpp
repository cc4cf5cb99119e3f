// Operators whose integer operands say where elements go or come from. Without these values on record the maps fall
// back to whole lines along the indexed dimensions.
#include <algorithm>
#include <array>
#include <utility>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

constexpr std::uint8_t kByte = 0;   // c10::ScalarType::Byte, which indexes as a mask
constexpr std::uint8_t kBool = 11;  // c10::ScalarType::Bool

Sizes wrapped(const Sizes& values, std::int64_t size) {
  Sizes result = values;
  for (std::int64_t& value : result) value = value < 0 ? value + size : value;
  return result;
}

std::int64_t block_after(const Sizes& sizes, int dim) {
  std::int64_t product = 1;
  for (std::size_t d = dim + 1; d < sizes.size(); ++d) product *= sizes[d];
  return product;
}

// Advanced indexing, x[a, :, b]: the tensors' common shape stands where they stand, or in front if a slice parts them.
struct Advanced {
  Sizes shape;            // that common shape
  std::vector<int> dims;  // indexed dimensions of x
  std::vector<Sizes>
      at;             // for each of them the coordinate at each position of `shape`, row-major; empty: not on record
  bool known = true;  // `at` is there
  bool adjacent = true;
};

struct Slot {
  int dim;
  Sizes shape;
  Sizes values;
  bool known;
};

// The slots' own shapes, masks turned into the coordinates of their ones. Empty optional: not understood.
std::optional<std::vector<Slot>> index_slots(const Call& call, const Sizes& indexed, std::size_t argument) {
  std::vector<Slot> slots;
  std::size_t entries = 0;
  for (const InputRecord& input : call.record.inputs) {
    if (input.facts.arg == argument) entries = std::max<std::size_t>(entries, input.facts.list_index + 1);
  }
  int dim = 0;
  for (std::size_t entry = 0; entry < entries; ++entry) {
    const TensorFacts* facts = nullptr;
    for (const InputRecord& input : call.record.inputs) {
      if (input.facts.arg == argument && input.facts.list_index == entry) facts = &input.facts;
    }
    if (facts == nullptr) {  // a slice
      ++dim;
      continue;
    }
    const Sizes shape(facts->geometry.sizes.begin(), facts->geometry.sizes.end());
    const Sizes& values = facts->integer_values;
    const bool known = static_cast<std::int64_t>(values.size()) == numel(shape);
    const bool mask = facts->scalar_type == kBool || facts->scalar_type == kByte;
    const std::size_t width = mask ? shape.size() : 1;
    if (width == 0 || dim + width > indexed.size()) return std::nullopt;
    if (!mask) {
      slots.push_back({dim, shape, known ? wrapped(values, indexed[dim]) : Sizes{}, known});
    } else {
      Sizes ones;
      for (std::size_t k = 0; k < values.size(); ++k) {
        if (values[k] != 0) ones.push_back(static_cast<std::int64_t>(k));
      }
      for (std::size_t w = 0; w < width; ++w) {
        const std::int64_t block = block_after(shape, static_cast<int>(w));
        Sizes coordinates(ones.size());
        for (std::size_t k = 0; k < ones.size(); ++k) coordinates[k] = ones[k] / block % shape[w];
        slots.push_back(
            {dim + static_cast<int>(w), {static_cast<std::int64_t>(ones.size())}, std::move(coordinates), known});
      }
    }
    dim += static_cast<int>(width);
  }
  if (slots.empty()) return std::nullopt;
  return slots;
}

std::optional<Advanced> advanced_index(const Call& call, const Sizes& indexed, std::size_t argument) {
  auto slots = index_slots(call, indexed, argument);
  if (!slots) return std::nullopt;
  Advanced result;
  std::size_t rank = 0;
  for (const Slot& slot : *slots) {
    rank = std::max(rank, slot.shape.size());
    result.known = result.known && slot.known;
    result.adjacent = result.adjacent && (result.dims.empty() || slot.dim == result.dims.back() + 1);
    result.dims.push_back(slot.dim);
  }
  result.shape.assign(rank, 1);
  for (const Slot& slot : *slots) {
    for (std::size_t d = 0; d < slot.shape.size(); ++d) {
      std::int64_t& size = result.shape[rank - slot.shape.size() + d];
      if (size == 1) size = slot.shape[d];
    }
  }
  const std::int64_t count = numel(result.shape);
  if (!result.known || count > kMaxListed) {
    result.known = false;
    return result;
  }
  for (const Slot& slot : *slots) {
    Sizes at(count);
    for (std::int64_t k = 0; k < count; ++k) {
      std::int64_t rest = k;
      std::int64_t linear = 0;
      std::int64_t weight = 1;
      for (std::size_t d = rank; d-- > 0;) {
        const std::int64_t c = rest % result.shape[d];
        rest /= result.shape[d];
        if (d + slot.shape.size() < rank) continue;
        const std::int64_t size = slot.shape[d - (rank - slot.shape.size())];
        if (size != 1) linear += c * weight;
        weight *= size;
      }
      at[k] = slot.values[linear];
    }
    result.at.push_back(std::move(at));
  }
  return result;
}

// `picked` (shape of x[...]) against `x`, as views in which the common shape is one dimension.
struct IndexViews {
  Sizes picked;
  int at = 0;  // that dimension
  std::vector<int>
      free;  // the dimension of `picked` for each dimension of x that is not indexed; -1 for an indexed one
};

std::optional<IndexViews> index_views(const Advanced& index, const Sizes& indexed, std::int64_t picked_count) {
  IndexViews views;
  views.free.assign(indexed.size(), -1);
  std::vector<bool> taken(indexed.size(), false);
  for (int dim : index.dims) taken[dim] = true;
  const int front = index.adjacent ? index.dims.front() : 0;
  std::int64_t rest = 1;
  for (std::size_t d = 0; d < indexed.size(); ++d) rest *= taken[d] ? 1 : indexed[d];
  if (rest == 0) return std::nullopt;
  const std::int64_t count = index.known ? numel(index.shape) : picked_count / rest;
  if (count * rest != picked_count) return std::nullopt;
  for (std::size_t d = 0; d < indexed.size(); ++d) {
    if (static_cast<int>(views.picked.size()) == front) {
      views.at = front;
      views.picked.push_back(count);
    }
    if (taken[d]) continue;
    views.free[d] = static_cast<int>(views.picked.size());
    views.picked.push_back(indexed[d]);
  }
  return views;
}

// x[indices]: each position of the output reads one place of x.
Relation map_index(const Call& call) {
  if (!call.is("self")) return Relation::everything();
  auto index = advanced_index(call, call.in, 1);
  if (!index) return call.unmapped();
  auto views = index_views(*index, call.in, numel(call.out));
  if (!views) return call.unmapped();
  std::vector<Link> links;
  for (std::size_t d = 0; d < call.in.size(); ++d) {
    if (views->free[d] >= 0) links.push_back(same(views->free[d], static_cast<int>(d)));
  }
  if (index->known) {
    for (std::size_t k = 0; k < index->dims.size(); ++k)
      links.push_back(points(views->at, index->dims[k], index->at[k]));
  }
  return Relation::product(std::move(links), views->picked, call.in);
}

// For each position of x[indices], in order, the linear index in x. Empty optional: too many or unknown.
std::optional<Sizes> listed_positions(const Advanced& index, const Sizes& indexed) {
  if (!index.known) return std::nullopt;
  std::int64_t picked = numel(index.shape);
  for (std::size_t d = 0; d < indexed.size(); ++d) {
    if (std::find(index.dims.begin(), index.dims.end(), static_cast<int>(d)) == index.dims.end()) picked *= indexed[d];
  }
  if (picked > kMaxListed) return std::nullopt;
  auto views = index_views(index, indexed, picked);
  if (!views) return std::nullopt;
  Sizes result(picked);
  Sizes coordinates(views->picked.size());
  for (std::int64_t k = 0; k < picked; ++k) {
    std::int64_t rest = k;
    for (std::size_t d = views->picked.size(); d-- > 0;) {
      coordinates[d] = rest % views->picked[d];
      rest /= views->picked[d];
    }
    std::int64_t linear = 0;
    for (std::size_t d = 0; d < indexed.size(); ++d) {
      std::int64_t c = 0;
      if (views->free[d] >= 0) {
        c = coordinates[views->free[d]];
      } else {
        const auto slot = std::find(index.dims.begin(), index.dims.end(), static_cast<int>(d)) - index.dims.begin();
        c = index.at[slot][coordinates[views->at]];
      }
      linear = linear * indexed[d] + c;
    }
    result[k] = linear;
  }
  return result;
}

// The shape that values broadcast to when they are put at these positions.
Sizes picked_shape(const Advanced& index, const Sizes& indexed) {
  Sizes result;
  const int front = index.adjacent ? index.dims.front() : 0;
  for (int d = 0; d < static_cast<int>(indexed.size()); ++d) {
    if (d == front) result.insert(result.end(), index.shape.begin(), index.shape.end());
    if (std::find(index.dims.begin(), index.dims.end(), d) == index.dims.end()) result.push_back(indexed[d]);
  }
  return result;
}

Relation map_index_put(const Call& call) {
  const std::size_t argument = 1;
  if (call.input.facts.arg == argument) return Relation::everything();
  const bool accumulate = call.flag("accumulate", false);
  if (call.is("self") && accumulate) return Relation::identity();
  auto index = advanced_index(call, call.out, argument);
  auto positions = index ? listed_positions(*index, call.out) : std::nullopt;
  if (!positions) return call.is("self") ? Relation::identity() : Relation::everything();
  ElementSet written = ElementSet::of(*positions);
  if (call.is("self")) {
    return Relation::identity().restrict_outputs(complement(written, numel(call.out)));
  }
  const Sizes target = picked_shape(*index, call.out);
  if (numel(call.in) == 1) return Relation::everything().restrict_outputs(std::move(written));
  if (numel(call.in) == static_cast<std::int64_t>(positions->size())) {
    return Relation::product({scatter(0, 0, *std::move(positions))}, {}, {});
  }
  // Broadcast values: value v goes to every position that it is spread over.
  Sizes value_of(positions->size());
  for (std::size_t k = 0; k < value_of.size(); ++k) {
    std::int64_t rest = static_cast<std::int64_t>(k);
    std::int64_t linear = 0;
    std::int64_t weight = 1;
    for (std::size_t d = target.size(); d-- > 0;) {
      const std::int64_t c = rest % target[d];
      rest /= target[d];
      const auto lead = static_cast<std::int64_t>(target.size()) - static_cast<std::int64_t>(call.in.size());
      const std::int64_t own = static_cast<std::int64_t>(d) - lead;
      if (own < 0) continue;
      if (call.in[own] != 1) linear += c * weight;
      weight *= call.in[own];
    }
    value_of[k] = linear;
  }
  return Relation::product({pairs(0, 0, *std::move(positions), std::move(value_of))}, {}, {});
}

Relation map_index_select(const Call& call) {
  if (!call.is("self")) return Relation::everything();
  const int dim = wrap(call.integer("dim", 0), std::max<std::size_t>(call.in.size(), 1));
  const Sizes* values = call.values("index");
  if (call.in.empty()) return Relation::everything();
  if (dim < 0) return call.unmapped();
  if (values == nullptr) return lines(call.in, call.out, {dim});
  return along(call.in, call.out, dim, points(0, 0, wrapped(*values, call.in[dim])));
}

// The index has the output's shape (gather) and names the coordinate along dim.
Relation gathered(const Call& call, const char* index_name, const Sizes& in) {
  const int dim = wrap(call.integer("dim", 0), std::max<std::size_t>(in.size(), 1));
  const Sizes* values = call.values(index_name);
  if (dim < 0 || in.size() != call.out.size() || in.empty()) return Relation::everything();
  if (values != nullptr && static_cast<std::int64_t>(values->size()) == numel(call.out)) {
    Sizes indices(values->size());
    for (std::size_t k = 0; k < indices.size(); ++k) {
      std::int64_t rest = static_cast<std::int64_t>(k);
      std::int64_t linear = 0;
      std::int64_t weight = 1;
      for (std::size_t d = in.size(); d-- > 0;) {
        std::int64_t c = rest % call.out[d];
        rest /= call.out[d];
        if (static_cast<int>(d) == dim) c = (*values)[k] < 0 ? (*values)[k] + in[d] : (*values)[k];
        linear += (in[d] == 1 ? 0 : c) * weight;
        weight *= in[d];
      }
      indices[k] = linear;
    }
    return Relation::function(std::move(indices));
  }
  std::vector<Link> links;  // gather may leave out the end of the other dimensions
  for (int d = 0; d < static_cast<int>(in.size()); ++d) {
    if (d != dim && in[d] != 1) links.push_back(same(d, d));
  }
  return Relation::product(std::move(links), call.out, in);
}

Relation map_gather(const Call& call) {
  return call.is("self") ? gathered(call, "index", call.in) : Relation::everything();
}

Relation map_take_along_dim(const Call& call) {
  if (!call.is("self")) return Relation::everything();
  const auto index = call.shape("indices");
  if (call.scalar("dim") == nullptr) {  // both flattened
    const Sizes* values = call.values("indices");
    if (values == nullptr) return Relation::everything();
    return Relation::function(wrapped(*values, numel(call.in)));
  }
  // An index that is itself broadcast does not name the output's elements one by one.
  if (!index || *index != call.out) {
    std::vector<Link> links;
    const int dim = wrap(call.integer("dim", 0), call.in.size());
    for (int d = 0; d < static_cast<int>(call.in.size()); ++d) {
      if (d != dim && call.in[d] != 1) links.push_back(same(d, d));
    }
    return call.in.size() == call.out.size() ? Relation::product(std::move(links), call.out, call.in) : call.unmapped();
  }
  return gathered(call, "indices", call.in);
}

Relation map_take(const Call& call) {
  const Sizes* values = call.values("index");
  if (!call.is("self") || values == nullptr) return Relation::everything();
  return Relation::function(wrapped(*values, numel(call.in)));
}

// The rows of weight named by the indices, in the indices' order.
Relation map_embedding(const Call& call) {
  const auto index = call.shape("indices");
  if (!index || call.out.empty()) return call.unmapped();
  const std::int64_t width = call.out.back();
  const std::int64_t count = numel(*index);
  if (count * width != numel(call.out)) return call.unmapped();
  if (call.is("indices")) return leading(call.in, call.out, static_cast<int>(call.in.size()));
  std::vector<Link> links{same(1, 1)};
  if (const Sizes* values = call.values("indices")) links.push_back(points(0, 0, *values));
  return Relation::product(std::move(links), {count, width}, call.in);
}

// Every bag may hold any row, but columns stay apart.
Relation map_embedding_bag(const Call& call) {
  if (call.returned() > 0) return Relation::everything();
  if (call.is("weight") && call.in.size() == 2 && call.out.size() == 2 && call.in[1] == call.out[1])
    return one_dim(1, 1);
  return Relation::everything();
}

// The elements under the mask, one after the other.
Relation map_masked_select(const Call& call) {
  const auto mask = call.shape("mask");
  if (!call.is("self") || !mask) return Relation::everything();
  // self and mask broadcast together.
  Sizes common = call.in;
  while (common.size() < mask->size()) common.insert(common.begin(), 1);
  for (std::size_t d = 0; d < mask->size(); ++d) {
    std::int64_t& size = common[common.size() - mask->size() + d];
    if (size == 1) size = (*mask)[d];
  }
  auto chosen = where_mask(call, "mask", common, true);
  if (!chosen || chosen->coarse() || chosen->count() != numel(call.out) || chosen->count() > kMaxListed) {
    return Relation::everything();
  }
  Sizes indices;
  indices.reserve(chosen->count());
  chosen->for_each([&](std::int64_t k) {
    std::int64_t rest = k;
    std::int64_t linear = 0;
    std::int64_t weight = 1;
    for (std::size_t d = common.size(); d-- > 0;) {
      const std::int64_t c = rest % common[d];
      rest /= common[d];
      if (d + call.in.size() < common.size()) continue;
      const std::int64_t size = call.in[d - (common.size() - call.in.size())];
      if (size != 1) linear += c * weight;
      weight *= size;
    }
    indices.push_back(linear);
    return true;
  });
  return Relation::function(std::move(indices));
}

}  // namespace

std::span<const Family> index_families() {
  static constexpr std::array kTable{
      Family{"index _unsafe_index", map_index, "indices"},
      Family{"index_put _index_put_impl_ _unsafe_index_put", map_index_put, "indices"},
      Family{"index_select", map_index_select, "index"},
      Family{"gather", map_gather, "index"},
      Family{"take_along_dim", map_take_along_dim, "indices"},
      Family{"take", map_take, "index"},
      Family{"embedding", map_embedding, "indices"},
      Family{"embedding_bag _embedding_bag _embedding_bag_forward_only", map_embedding_bag},
      Family{"masked_select", map_masked_select, "mask"},
  };
  return kTable;
}

}  // namespace sherlorch::maps
