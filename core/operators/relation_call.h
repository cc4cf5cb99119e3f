// What a map gets to see of one op call, and the building blocks that maps share. Internal to core/diagnose.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/operators/relation.h"

namespace sherlorch::maps {

using Sizes = std::vector<std::int64_t>;

// Chosen: an explicit list of elements longer than this is given up for a coarser map.
constexpr std::int64_t kMaxListed = std::int64_t{1} << 21;

std::int64_t numel(std::span<const std::int64_t> sizes);
// Python's rule for negative dimensions; -1 if there is no such dimension.
int wrap(std::int64_t dim, std::size_t rank);

class Call {
 public:
  Call(const OperatorInfo& op, const OpRecord& record, std::size_t output, std::size_t input);

  const OperatorInfo& op;
  const OpRecord& record;
  const OutputRecord& output;
  const InputRecord& input;
  const Sizes out;        // shape of the output
  const Sizes in;         // shape of the input
  std::string_view name;  // short name, "add_"

  // The argument that the output is, when the op writes its arguments; empty for a fresh return value.
  std::string_view written() const noexcept { return written_; }
  // Which fresh return value the output is; -1 for a written argument.
  int returned() const noexcept { return returned_; }
  // Name of the input's argument.
  std::string_view arg() const noexcept { return arg_; }
  bool is(std::string_view argument) const noexcept { return arg_ == argument; }
  // The output shows the input's memory; nothing was written.
  bool is_view() const noexcept;

  const InputRecord* tensor(std::string_view argument, std::size_t list_index = 0) const noexcept;
  // Shape of a tensor argument; empty where it was not given.
  std::optional<Sizes> shape(std::string_view argument) const noexcept;
  // Values of an integer or bool tensor argument; null where they were not kept.
  const Sizes* values(std::string_view argument) const noexcept;

  const ScalarArg* scalar(std::string_view argument) const noexcept;
  std::optional<std::int64_t> integer(std::string_view argument) const noexcept;
  std::int64_t integer(std::string_view argument, std::int64_t otherwise) const noexcept;
  double number(std::string_view argument, double otherwise) const noexcept;
  bool flag(std::string_view argument, bool otherwise) const noexcept { return integer(argument, otherwise) != 0; }
  // A list of ints; a single int counts as a list of one. Empty optional: absent or None.
  std::optional<Sizes> ints(std::string_view argument) const;

  // For a call that the map does not understand: says everything, and that it is for want of a map.
  Relation unmapped() const {
    mapped = false;
    return Relation::everything();
  }
  mutable bool mapped = true;

 private:
  int find(std::string_view argument) const noexcept;

  std::string_view written_;
  std::string_view arg_;
  int returned_ = -1;
};

using Handler = Relation (*)(const Call&);
// One table a file. `names` are space-separated short names.
struct Family {
  std::string_view names;
  Handler handler;
  std::string_view values = {};
};
std::span<const Family> pointwise_families();
std::span<const Family> shape_families();
std::span<const Family> join_families();
std::span<const Family> pattern_families();
std::span<const Family> index_families();
std::span<const Family> scatter_families();
std::span<const Family> reduce_families();
std::span<const Family> norm_families();
std::span<const Family> linear_families();
std::span<const Family> window_families();
std::span<const Family> loss_families();
std::span<const Family> optimizer_families();

// --- building blocks ---

Link same(int out_dim, int in_dim);
Link points(int out_dim, int in_dim, Sizes input_of_output);
Link scatter(int out_dim, int in_dim, Sizes output_of_input);
Link window(int out_dim, int in_dim, Sizes low, Sizes high);
Link pairs(int out_dim, int in_dim, Sizes outputs, Sizes inputs);

// Right-aligned broadcasting of the input to the output.
Relation broadcast(const Sizes& in, const Sizes& out);
// Input and output have the same dimensions, and each line along `dims` is one unit.
Relation lines(const Sizes& in, const Sizes& out, const Sizes& dims);
// The output is the input without `dims` (or with ones in their place). Empty dims: all of them.
Relation reduction(const Sizes& in, const Sizes& out, const Sizes& dims);
// The reverse: each element of the input belongs to a whole line of the output along `dims`.
Relation expansion(const Sizes& in, const Sizes& out, const Sizes& dims);
// Only dimension `dim` changes its coordinates; `link` says how (its dimensions are filled in). All others are the
// same.
Relation along(const Sizes& in, const Sizes& out, int dim, Link link);
// The leading `count` dimensions go together, the others are free.
Relation leading(const Sizes& in, const Sizes& out, int count);
// A single dimension goes together.
Relation one_dim(int out_dim, int in_dim);
// Elements of a tensor of shape `out` where the argument `mask`, 0 or 1 and broadcast to that shape, is `wanted`. Empty
// optional: unknown.
std::optional<ElementSet> where_mask(const Call& call, std::string_view mask, const Sizes& out, bool wanted);
ElementSet complement(const ElementSet& set, std::int64_t count);
// The input's memory seen through the output's geometry (views).
Relation by_memory(const Call& call);

// Handlers that several tables use.
Relation pointwise(const Call& call);
Relation map_nothing(const Call& call);
Relation map_everything(const Call& call);

}  // namespace sherlorch::maps
