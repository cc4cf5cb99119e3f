#include "core/operators/traits.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace sherlorch {

namespace {

using Names = std::unordered_set<std::string_view>;

// Memory as it was: scanning it would invent values. The deterministic mode fills it with NaN on purpose.
const Names kUninitialized = {"empty",      "empty_like",        "empty_strided",   "empty_permuted",
                              "new_empty",  "new_empty_strided", "empty_quantized", "resize_",
                              "resize_as_", "_resize_output_",   "resize",          "resize_as"};

// Annotated as writing self, but what they write is sizes, strides or the storage pointer.
const Names kMetadataOnly = {"set_",     "t_",          "transpose_",  "swapaxes_",      "swapdims_",
                             "squeeze_", "unsqueeze_",  "detach_",     "as_strided_",    "requires_grad_",
                             "set_data", "retain_grad", "_coalesced_", "sparse_resize_", "sparse_resize_and_clear_"};

// The value is one of their Python numbers. (clamp is not here: a bound that is infinite bounds nothing.)
const Names kFills = {"full",         "full_like",       "new_full",    "fill",       "fill_",      "masked_fill",
                      "masked_fill_", "index_fill",      "index_fill_", "scatter",    "scatter_",   "scalar_tensor",
                      "where",        "constant_pad_nd", "pad",         "nan_to_num", "nan_to_num_"};

// Write self without reading it: what self held before is none of their business. (out= arguments are told by name.)
const Names kOverwrites = {"copy_",      "fill_",   "zero_",      "normal_",      "uniform_",    "random_",
                           "bernoulli_", "cauchy_", "geometric_", "exponential_", "log_normal_", "copy"};

const Names kItems = {"item", "_local_scalar_dense"};

const Names kCasts = {"to", "_to_copy", "_autocast_to_reduced_precision"};

}  // namespace

OperatorTraits operator_traits(const OperatorInfo& op) {
  OperatorTraits traits;
  const std::string_view name = op.short_name();
  if (op.name.starts_with("profiler::")) traits.ignore = true;  // marks of record_function
  if (!op.name.starts_with("aten::")) return traits;
  traits.uninitialized = kUninitialized.contains(name);
  traits.metadata_only = kMetadataOnly.contains(name);
  traits.literal = name == "lift_fresh";
  traits.fills = kFills.contains(name);
  traits.overwrites = kOverwrites.contains(name);
  traits.only_out = std::all_of(op.arguments.begin(), op.arguments.end(), [](const ArgumentInfo& argument) {
    return !argument.is_written || argument.name.starts_with("out");
  });
  traits.takes_number = traits.fills || traits.overwrites || name == "index_put_" || name == "_index_put_impl_";
  traits.item = kItems.contains(name);
  traits.cast = kCasts.contains(name);
  // These update running_mean and running_var (arguments 3 and 4) in training; the older schemas do not say so.
  if (name == "batch_norm" || name == "native_batch_norm" || name == "_batch_norm_impl_index" ||
      name == "miopen_batch_norm" || name == "instance_norm") {
    traits.hidden_writes = 1u << 3 | 1u << 4;
    traits.hidden_writes_if = 5;
  } else if (name == "cudnn_batch_norm") {
    traits.hidden_writes = 1u << 3 | 1u << 4;
    traits.hidden_writes_if = 5;
  } else if (name == "rrelu_with_noise") {
    traits.hidden_writes = 1u << 1;  // the noise tensor
  }
  return traits;
}

}  // namespace sherlorch
