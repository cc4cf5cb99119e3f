// Operators that join a list of tensors: cat, stack and their relatives.
#include <algorithm>
#include <array>
#include <utility>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

// Where this list entry starts along `dim`, if the entries together give the output's size.
std::optional<std::int64_t> entry_start(const Call& call, std::size_t rank, int dim, std::int64_t total) {
  std::int64_t start = 0;
  std::int64_t sum = 0;
  for (const InputRecord& entry : call.record.inputs) {
    if (entry.facts.arg != call.input.facts.arg) continue;
    const DimArray& sizes = entry.facts.geometry.sizes;
    if (sizes.size() == 1 && sizes[0] == 0) continue;                 // cat takes empty 1-d tensors for nothing
    const std::int64_t size = sizes.size() == rank ? sizes[dim] : 1;  // vstack and the like add dimensions of 1
    sum += size;
    if (entry.facts.list_index < call.input.facts.list_index) start += size;
  }
  return sum == total ? std::optional(start) : std::nullopt;
}

Relation joined(const Call& call, const Sizes& in, int dim) {
  if (dim < 0 || in.size() != call.out.size() || numel(in) != numel(call.in)) return call.unmapped();
  auto start = entry_start(call, in.size(), dim, call.out[dim]);
  if (!start) return lines(in, call.out, {dim});
  Sizes low(call.out[dim]), high(call.out[dim]);
  for (std::int64_t c = 0; c < call.out[dim]; ++c) {
    low[c] = std::clamp<std::int64_t>(c - *start, 0, in[dim]);
    high[c] = std::clamp<std::int64_t>(c - *start + 1, 0, in[dim]);
  }
  return along(in, call.out, dim, window(0, 0, std::move(low), std::move(high)));
}

Relation map_cat(const Call& call) {
  if (numel(call.in) == 0) return Relation::nothing();
  return joined(call, call.in, wrap(call.integer("dim", 0), call.out.size()));
}

Relation map_stack(const Call& call) {
  const int dim = wrap(call.integer("dim", 0), call.out.size());
  if (dim < 0 || call.in.size() + 1 != call.out.size()) return call.unmapped();
  Sizes in = call.in;
  in.insert(in.begin() + dim, 1);
  if (numel(in) != numel(call.in)) return call.unmapped();
  Sizes from(call.out[dim], Link::kNone);
  if (call.input.facts.list_index < from.size()) from[call.input.facts.list_index] = 0;
  return along(in, call.out, dim, points(0, 0, std::move(from)));
}

Relation map_hstack(const Call& call) {
  Sizes in = call.in.empty() ? Sizes{1} : call.in;
  return joined(call, in, in.size() == 1 ? 0 : 1);
}

Relation map_vstack(const Call& call) {
  Sizes in = call.in;
  while (in.size() < 2) in.insert(in.begin(), 1);
  return joined(call, in, 0);
}

Relation map_column_stack(const Call& call) {
  Sizes in = call.in;
  while (in.size() < 2) in.push_back(1);
  return joined(call, in, 1);
}

Relation map_dstack(const Call& call) {
  Sizes in = call.in;
  while (in.size() < 2) in.insert(in.begin(), 1);
  if (in.size() == 2) in.push_back(1);
  return joined(call, in, 2);
}

Relation map_block_diag(const Call& call) {
  Sizes in = call.in;
  while (in.size() < 2) in.insert(in.begin(), 1);
  std::int64_t row = 0;
  std::int64_t column = 0;
  for (const InputRecord& entry : call.record.inputs) {
    if (entry.facts.list_index >= call.input.facts.list_index) continue;
    const DimArray& sizes = entry.facts.geometry.sizes;
    row += sizes.size() < 2 ? 1 : sizes[0];
    column += sizes.empty() ? 1 : sizes.back();
  }
  if (call.out.size() != 2) return call.unmapped();
  Sizes rows(in[0]), columns(in[1]);
  for (std::int64_t k = 0; k < in[0]; ++k) rows[k] = row + k;
  for (std::int64_t k = 0; k < in[1]; ++k) columns[k] = column + k;
  return Relation::product({scatter(0, 0, std::move(rows)), scatter(1, 1, std::move(columns))}, call.out, in);
}

}  // namespace

std::span<const Family> join_families() {
  static constexpr std::array kTable{
      Family{"cat concat concatenate", map_cat}, Family{"stack _stack", map_stack},        Family{"hstack", map_hstack},
      Family{"vstack row_stack", map_vstack},    Family{"column_stack", map_column_stack}, Family{"dstack", map_dstack},
      Family{"block_diag", map_block_diag},
  };
  return kTable;
}

}  // namespace sherlorch::maps
