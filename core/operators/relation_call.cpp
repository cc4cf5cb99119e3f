#include "core/operators/relation_call.h"

#include <algorithm>
#include <utility>

namespace sherlorch::maps {

std::int64_t numel(std::span<const std::int64_t> sizes) {
  std::int64_t count = 1;
  for (std::int64_t size : sizes) count *= size;
  return count;
}

namespace {
Sizes sizes_of(const TensorFacts& facts) { return {facts.geometry.sizes.begin(), facts.geometry.sizes.end()}; }
}  // namespace

int wrap(std::int64_t dim, std::size_t rank) {
  const auto dims = static_cast<std::int64_t>(rank);
  if (dim < 0) dim += dims;
  return dim >= 0 && dim < dims ? static_cast<int>(dim) : -1;
}

Call::Call(const OperatorInfo& op_info, const OpRecord& op_record, std::size_t output_index, std::size_t input_index)
    : op(op_info),
      record(op_record),
      output(op_record.outputs[output_index]),
      input(op_record.inputs[input_index]),
      out(sizes_of(output.facts)),
      in(sizes_of(input.facts)),
      name(op_info.short_name()) {
  if (input.facts.arg < op.arguments.size()) arg_ = op.arguments[input.facts.arg].name;
  // Where no output says so itself: written arguments come first, in schema order; what follows them are fresh return
  // values, counted from 0 again.
  const bool told = std::any_of(record.outputs.begin(), record.outputs.end(),
                                [](const OutputRecord& each) { return each.facts.written_arg; });
  bool is_written = !told || output.facts.written_arg;
  for (std::size_t k = 0; k <= output_index && is_written && !told; ++k) {
    const TensorFacts& facts = record.outputs[k].facts;
    is_written = facts.arg < op.arguments.size() && op.arguments[facts.arg].is_written;
    if (is_written && k > 0) {
      const TensorFacts& before = record.outputs[k - 1].facts;
      is_written = std::pair(before.arg, before.list_index) < std::pair(facts.arg, facts.list_index);
    }
  }
  if (is_written && output.facts.arg < op.arguments.size()) {
    written_ = op.arguments[output.facts.arg].name;
  } else {
    returned_ = output.facts.arg;
  }
}

bool Call::is_view() const noexcept {
  return written_.empty() && output.facts.storage != 0 && output.facts.storage == input.facts.storage;
}

int Call::find(std::string_view argument) const noexcept {
  for (std::size_t k = 0; k < op.arguments.size(); ++k) {
    if (op.arguments[k].name == argument) return static_cast<int>(k);
  }
  return -1;
}

const InputRecord* Call::tensor(std::string_view argument, std::size_t list_index) const noexcept {
  const int index = find(argument);
  for (const InputRecord& candidate : record.inputs) {
    if (!candidate.scalar && candidate.facts.arg == index && candidate.facts.list_index == list_index)
      return &candidate;
  }
  return nullptr;
}

std::optional<Sizes> Call::shape(std::string_view argument) const noexcept {
  const InputRecord* found = tensor(argument);
  if (found == nullptr) return std::nullopt;
  return sizes_of(found->facts);
}

const Sizes* Call::values(std::string_view argument) const noexcept {
  const InputRecord* found = tensor(argument);
  if (found == nullptr) return nullptr;
  const Sizes& kept = found->facts.integer_values;
  return static_cast<std::int64_t>(kept.size()) == numel(found->facts.geometry.sizes) ? &kept : nullptr;
}

const ScalarArg* Call::scalar(std::string_view argument) const noexcept {
  const int index = find(argument);
  for (const ScalarArg& candidate : record.args) {
    if (candidate.arg == index && candidate.kind != ScalarArg::Kind::kNone) return &candidate;
  }
  return nullptr;
}

std::optional<std::int64_t> Call::integer(std::string_view argument) const noexcept {
  const ScalarArg* found = scalar(argument);
  if (found == nullptr) return std::nullopt;
  if (found->kind == ScalarArg::Kind::kInt || found->kind == ScalarArg::Kind::kBool) return found->i;
  if (found->kind == ScalarArg::Kind::kIntList && found->list.size() == 1) return found->list[0];
  return std::nullopt;
}

std::int64_t Call::integer(std::string_view argument, std::int64_t otherwise) const noexcept {
  return integer(argument).value_or(otherwise);
}

double Call::number(std::string_view argument, double otherwise) const noexcept {
  const ScalarArg* found = scalar(argument);
  if (found == nullptr) return otherwise;
  return found->kind == ScalarArg::Kind::kDouble ? found->d : static_cast<double>(integer(argument, 1));
}

std::optional<Sizes> Call::ints(std::string_view argument) const {
  const ScalarArg* found = scalar(argument);
  if (found == nullptr) return std::nullopt;
  if (found->kind == ScalarArg::Kind::kIntList) return found->list;
  if (found->kind == ScalarArg::Kind::kInt) return Sizes{found->i};
  return std::nullopt;
}

namespace {
Link make_link(Link::Kind kind, int out_dim, int in_dim, Sizes a, Sizes b) {
  Link link;
  link.out_dim = out_dim;
  link.in_dim = in_dim;
  link.kind = kind;
  link.a = std::move(a);
  link.b = std::move(b);
  return link;
}
}  // namespace

Link same(int out_dim, int in_dim) { return make_link(Link::Kind::kSame, out_dim, in_dim, {}, {}); }
Link points(int out_dim, int in_dim, Sizes input_of_output) {
  return make_link(Link::Kind::kPoints, out_dim, in_dim, std::move(input_of_output), {});
}
Link scatter(int out_dim, int in_dim, Sizes output_of_input) {
  return make_link(Link::Kind::kScatter, out_dim, in_dim, std::move(output_of_input), {});
}
Link window(int out_dim, int in_dim, Sizes low, Sizes high) {
  return make_link(Link::Kind::kWindow, out_dim, in_dim, std::move(low), std::move(high));
}
Link pairs(int out_dim, int in_dim, Sizes outputs, Sizes inputs) {
  return make_link(Link::Kind::kPairs, out_dim, in_dim, std::move(outputs), std::move(inputs));
}

Relation broadcast(const Sizes& in, const Sizes& out) {
  if (in == out) return Relation::identity();
  const auto in_rank = static_cast<int>(in.size());
  const auto out_rank = static_cast<int>(out.size());
  std::vector<int> source(in.size(), Relation::kAny);
  bool free = true;
  for (int d = 0; d < in_rank; ++d) {
    if (in[d] == 1) continue;
    const int to = d + out_rank - in_rank;
    if (to < 0 || out[to] != in[d]) return Relation::everything();
    source[d] = to;
    free = false;
  }
  if (free) return numel(out) == 1 ? Relation::identity() : Relation::everything();
  return numel(in) == numel(out) ? Relation::identity() : Relation::box(std::move(source));
}

namespace {
std::vector<bool> dim_mask(const Sizes& dims, std::size_t rank) {
  std::vector<bool> mask(rank, dims.empty());
  for (std::int64_t dim : dims) {
    const int d = wrap(dim, rank);
    if (d >= 0) mask[d] = true;
  }
  return mask;
}
}  // namespace

Relation lines(const Sizes& in, const Sizes& out, const Sizes& dims) {
  if (in.size() != out.size()) return Relation::everything();
  const std::vector<bool> free = dim_mask(dims, in.size());
  std::vector<int> source(in.size(), Relation::kAny);
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (free[d]) continue;
    if (in[d] != out[d]) return Relation::everything();
    source[d] = static_cast<int>(d);
  }
  return Relation::box(std::move(source));
}

Relation reduction(const Sizes& in, const Sizes& out, const Sizes& dims) {
  const std::vector<bool> reduced = dim_mask(dims, in.size());
  const bool keep = out.size() == in.size();
  std::vector<int> source(in.size(), Relation::kAny);
  int next = 0;
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (reduced[d]) {
      next += keep ? 1 : 0;
      continue;
    }
    if (next >= static_cast<int>(out.size()) || out[next] != in[d]) return Relation::everything();
    source[d] = next++;
  }
  if (next != static_cast<int>(out.size())) return Relation::everything();
  return Relation::box(std::move(source));
}

Relation expansion(const Sizes& in, const Sizes& out, const Sizes& dims) {
  const std::vector<bool> reduced = dim_mask(dims, out.size());
  const bool keep = out.size() == in.size();
  std::vector<int> source(in.size(), Relation::kAny);
  std::size_t next = 0;
  for (std::size_t d = 0; d < out.size(); ++d) {
    if (reduced[d]) {
      next += keep ? 1 : 0;
      continue;
    }
    if (next >= in.size() || in[next] != out[d]) return Relation::everything();
    source[next++] = static_cast<int>(d);
  }
  if (next != in.size()) return Relation::everything();
  return Relation::box(std::move(source));
}

Relation along(const Sizes& in, const Sizes& out, int dim, Link link) {
  if (in.size() != out.size() || dim < 0 || dim >= static_cast<int>(in.size())) return Relation::everything();
  std::vector<Link> links;
  for (int d = 0; d < static_cast<int>(in.size()); ++d) {
    if (d != dim && in[d] != out[d]) return Relation::everything();
    links.push_back(same(d, d));
  }
  link.out_dim = link.in_dim = dim;
  links[dim] = std::move(link);
  return Relation::product(std::move(links), out, in);
}

Relation leading(const Sizes& in, const Sizes& out, int count) {
  std::vector<int> source(in.size(), Relation::kAny);
  for (int d = 0; d < count; ++d) {
    if (d >= static_cast<int>(in.size()) || d >= static_cast<int>(out.size())) break;
    if (in[d] != out[d]) return Relation::everything();
    source[d] = d;
  }
  return Relation::box(std::move(source));
}

Relation one_dim(int out_dim, int in_dim) {
  if (out_dim < 0 || in_dim < 0) return Relation::everything();
  std::vector<int> source(in_dim + 1, Relation::kAny);
  source[in_dim] = out_dim;
  return Relation::box(std::move(source));
}

std::optional<ElementSet> where_mask(const Call& call, std::string_view mask, const Sizes& out, bool wanted) {
  const Sizes* values = call.values(mask);
  const auto shape = call.shape(mask);
  if (values == nullptr || !shape) return std::nullopt;
  const Sizes& in = *shape;
  ElementSet set;
  for (std::size_t k = 0; k < values->size(); ++k) {
    if (((*values)[k] != 0) == wanted) set.append(static_cast<std::int64_t>(k), static_cast<std::int64_t>(k) + 1);
  }
  if (in == out) return set;
  const Relation spread = broadcast(in, out);
  if (spread.is_everything() && numel(in) != 1) return std::nullopt;
  return spread.reached(ElementSet::range(0, numel(out)), set, out, in);
}

ElementSet complement(const ElementSet& set, std::int64_t count) {
  // A coarse set holds more than was put in: its complement would hold too little.
  if (set.coarse()) return ElementSet::range(0, count);
  return set_difference(ElementSet::range(0, count), set);
}

Relation by_memory(const Call& call) {
  const Geometry& out = call.output.facts.geometry;
  const Geometry& in = call.input.facts.geometry;
  if (call.output.facts.storage != call.input.facts.storage || out.item_size != in.item_size) return call.unmapped();
  if (out == in ||
      (numel(out.sizes) == numel(in.sizes) && out.contiguous() && in.contiguous() && out.offset == in.offset)) {
    return Relation::identity();
  }
  if (numel(out.sizes) > kMaxListed) return call.unmapped();
  for (std::size_t d = 0; d < in.sizes.size(); ++d) {
    if (in.strides[d] == 0 && in.sizes[d] > 1) return call.unmapped();  // several elements on the same bytes
  }
  Sizes indices(numel(out.sizes));
  for (std::size_t k = 0; k < indices.size(); ++k) {
    indices[k] = in.linear_of_byte(out.byte_of(static_cast<std::int64_t>(k)));
    if (indices[k] < 0) return call.unmapped();
  }
  return Relation::function(std::move(indices));
}

Relation pointwise(const Call& call) { return broadcast(call.in, call.out); }
Relation map_nothing(const Call&) { return Relation::nothing(); }
Relation map_everything(const Call&) { return Relation::everything(); }

}  // namespace sherlorch::maps
