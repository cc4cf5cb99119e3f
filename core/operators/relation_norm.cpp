// Normalizations, forward and backward.
#include <algorithm>
#include <array>
#include <utility>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

// The last `count` dimensions of the normalized tensor.
Sizes last_dims(std::size_t count) {
  Sizes dims(count);
  for (std::size_t k = 0; k < count; ++k) dims[k] = -1 - static_cast<std::int64_t>(k);
  return dims;
}

std::size_t normalized_rank(const Call& call) {
  const ScalarArg* shape = call.scalar("normalized_shape");
  if (shape == nullptr) return 0;
  return shape->kind == ScalarArg::Kind::kIntList ? shape->list.size() : 1;
}

// Statistics (mean, rstd) of the rows have ones, or nothing, in place of the normalized dimensions.
Relation map_layer_norm(const Call& call) {
  const std::size_t count = normalized_rank(call);
  const bool affine = call.is("weight") || call.is("bias");
  if (count == 0) return call.unmapped();
  if (call.returned() > 0) return affine ? Relation::nothing() : reduction(call.in, call.out, last_dims(count));
  return affine ? broadcast(call.in, call.out) : lines(call.in, call.out, last_dims(count));
}

// Returned: gradients of input, weight and bias.
Relation map_layer_norm_backward(const Call& call) {
  const std::size_t count = normalized_rank(call);
  const auto whole = call.shape("input");
  if (count == 0 || !whole || whole->size() < count) return call.unmapped();
  const int rows = static_cast<int>(whole->size() - count);
  const bool parameter = call.is("weight") || call.is("bias");
  if (call.returned() == 0) {
    if (call.is("bias")) return Relation::nothing();
    // A row's sums take in every weight.
    return parameter ? Relation::everything() : leading(call.in, call.out, rows);
  }
  if (parameter) return Relation::nothing();
  if (call.returned() == 2 && !call.is("grad_out")) return Relation::nothing();
  if (call.in.size() != whole->size() || call.out.size() != count) return Relation::everything();
  std::vector<int> source(call.in.size(), Relation::kAny);
  for (std::size_t d = 0; d < count; ++d) {
    if (call.in[rows + d] != 1) source[rows + d] = static_cast<int>(d);
  }
  return Relation::box(std::move(source));
}

bool trains(const Call& call) {
  for (const char* name : {"training", "train", "use_input_stats"}) {
    if (const auto value = call.integer(name)) return *value != 0;
  }
  return true;  // operators without the flag always use the batch's statistics
}

// A channel is dimension 1 of a whole tensor and the only dimension of a parameter or statistic.
int channel_dim(const Sizes& sizes) { return sizes.size() == 1 ? 0 : 1; }

Relation same_channel(const Call& call) {
  const int in = channel_dim(call.in);
  const int out = channel_dim(call.out);
  if (static_cast<int>(call.in.size()) <= in || static_cast<int>(call.out.size()) <= out) return Relation::everything();
  if (call.in[in] != call.out[out]) return Relation::everything();
  return one_dim(out, in);
}

bool is_input(const Call& call) { return call.is("input") || call.is("self"); }
bool is_running(const Call& call) { return call.is("running_mean") || call.is("running_var"); }

Relation map_batch_norm(const Call& call) {
  const bool training = trains(call);
  if (!call.written().empty()) {  // running_mean, running_var
    if (is_running(call)) return call.is(call.written()) ? Relation::identity() : Relation::nothing();
    return is_input(call) && training ? same_channel(call) : Relation::nothing();
  }
  if (call.returned() > 0) {  // saved statistics
    return is_input(call) || is_running(call) ? same_channel(call) : Relation::nothing();
  }
  if (is_input(call)) return training ? same_channel(call) : broadcast(call.in, call.out);
  if (is_running(call) && training && call.name.find("cudnn") == std::string_view::npos) return Relation::nothing();
  return same_channel(call);
}

Relation map_batch_norm_backward(const Call& call) { return same_channel(call); }

// Every sample and channel on its own.
Relation map_instance_norm(const Call& call) {
  if (!is_input(call)) return is_running(call) && trains(call) ? Relation::nothing() : same_channel(call);
  return trains(call) ? leading(call.in, call.out, 2) : broadcast(call.in, call.out);
}

// [N, C, ..] as [N, G, C / G * ..].
std::optional<Sizes> grouped_view(const Sizes& sizes, std::int64_t groups) {
  if (sizes.size() < 2 || groups < 1 || sizes[1] % groups != 0) return std::nullopt;
  const std::int64_t outer = sizes[0] * groups;
  return Sizes{sizes[0], groups, outer == 0 ? 0 : numel(sizes) / outer};
}

std::int64_t groups_of(const Call& call) { return call.integer("num_groups", call.integer("group", 0)); }

Relation map_group_norm(const Call& call) {
  if (call.is("weight") || call.is("bias")) return call.returned() > 0 ? Relation::nothing() : same_channel(call);
  auto in = grouped_view(call.in, groups_of(call));
  if (!in) return call.unmapped();
  Sizes out = call.returned() > 0 ? Sizes{(*in)[0], (*in)[1], 1} : *in;
  if (numel(out) != numel(call.out)) return call.unmapped();
  return Relation::product({same(0, 0), same(1, 1)}, std::move(out), *std::move(in));
}

Relation map_group_norm_backward(const Call& call) {
  const std::int64_t groups = groups_of(call);
  const bool statistic = call.is("mean") || call.is("rstd");
  if (call.returned() == 0) {
    auto out = grouped_view(call.out, groups);
    if (!out) return call.unmapped();
    if (call.is("weight")) {  // the channels of a group
      if (numel(call.in) % groups != 0) return call.unmapped();
      return Relation::product({same(1, 0)}, *std::move(out), {groups, numel(call.in) / groups});
    }
    Sizes in = statistic ? Sizes{(*out)[0], groups, 1} : *out;
    if (numel(in) != numel(call.in)) return call.unmapped();
    return Relation::product({same(0, 0), same(1, 1)}, *std::move(out), std::move(in));
  }
  if (call.is("weight")) return Relation::nothing();
  if (statistic) return call.returned() == 2 ? Relation::nothing() : Relation::everything();
  if (call.returned() == 2 && !call.is("grad_out")) return Relation::nothing();
  return same_channel(call);
}

// g times v over v's norm: along all dimensions but one.
Relation map_weight_norm(const Call& call) {
  const auto dim = call.integer("dim", 0);
  const int kept = wrap(dim, std::max(call.in.size(), call.out.size()));
  if (kept < 0 || call.in.size() != call.out.size()) return Relation::everything();
  return call.in[kept] == call.out[kept] ? one_dim(kept, kept) : Relation::everything();
}

}  // namespace

std::span<const Family> norm_families() {
  static constexpr std::array kTable{
      Family{"layer_norm native_layer_norm rms_norm _fused_rms_norm", map_layer_norm},
      Family{"native_layer_norm_backward _fused_rms_norm_backward", map_layer_norm_backward},
      Family{"batch_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training "
             "_batch_norm_with_update _batch_norm_no_update _batch_norm_impl_index cudnn_batch_norm miopen_batch_norm",
             map_batch_norm},
      Family{"native_batch_norm_backward batch_norm_backward cudnn_batch_norm_backward miopen_batch_norm_backward "
             "_batch_norm_impl_index_backward",
             map_batch_norm_backward},
      Family{"instance_norm", map_instance_norm},
      Family{"group_norm native_group_norm", map_group_norm},
      Family{"native_group_norm_backward", map_group_norm_backward},
      Family{"_weight_norm _weight_norm_interface", map_weight_norm},
  };
  return kTable;
}

}  // namespace sherlorch::maps
