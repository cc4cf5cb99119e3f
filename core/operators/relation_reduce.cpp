// Reductions, scans and whatever else treats a line along some dimensions as one: sum, softmax, cumsum, sort, fft.
#include <algorithm>
#include <array>
#include <utility>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

// The dims argument; empty for all dimensions.
Sizes reduced_dims(const Call& call) {
  auto dims = call.ints("dim");
  return dims ? *dims : Sizes{};
}

// max and min are three operators under one name: of a tensor, along a dimension, of two tensors.
Relation map_reduction(const Call& call) {
  if (call.tensor("other") != nullptr) return broadcast(call.in, call.out);
  if (!call.is("self") && !call.is("A")) return Relation::everything();  // quantile's q and the like
  if (call.in.empty()) return Relation::everything();
  return reduction(call.in, call.out, reduced_dims(call));
}

Relation map_matrix_norm(const Call& call) {
  auto dims = call.ints("dim");
  return reduction(call.in, call.out, dims ? *dims : Sizes{-2, -1});
}

// quantile puts the quantiles in front.
Relation map_quantile(const Call& call) {
  if (!call.is("self") || !call.scalar("dim") || call.in.empty()) return Relation::everything();
  const auto q = call.shape("q");
  if (!q || q->empty()) return reduction(call.in, call.out, reduced_dims(call));
  const int dim = wrap(call.integer("dim", 0), call.in.size());
  const bool keep = call.out.size() == call.in.size() + 1;
  if (dim < 0 || (!keep && call.out.size() != call.in.size())) return call.unmapped();
  std::vector<int> source(call.in.size(), Relation::kAny);
  int next = 1;
  for (int d = 0; d < static_cast<int>(call.in.size()); ++d) {
    if (d == dim) {
      next += keep ? 1 : 0;
    } else {
      source[d] = next++;
    }
  }
  return Relation::box(std::move(source));
}

// One unit along `dim`; all outputs (values, indices) have the input's other dimensions.
Relation map_line(const Call& call) {
  const ScalarArg* dim = call.scalar("dim");
  if (call.in.empty() || call.in.size() != call.out.size()) return Relation::everything();
  if (dim == nullptr) {
    if (call.name == "msort") return lines(call.in, call.out, {0});
    if (call.name == "sort" || call.name == "topk" || call.name == "argsort") return lines(call.in, call.out, {-1});
    return Relation::everything();
  }
  return lines(call.in, call.out, reduced_dims(call));
}

// kthvalue, median.dim and mode have a dim of their own default.
Relation map_line_reduction(const Call& call) {
  if (call.in.empty()) return Relation::everything();
  const ScalarArg* dim = call.scalar("dim");
  if (dim == nullptr) return reduction(call.in, call.out, call.out.empty() ? Sizes{} : Sizes{-1});
  return reduction(call.in, call.out, reduced_dims(call));
}

// grad - exp(output) * sum(grad): the output takes part element by element.
Relation map_log_softmax_backward(const Call& call) {
  if (call.is("output") || call.in.empty()) return Relation::identity();
  return lines(call.in, call.out, {call.integer("dim", -1)});
}

Relation map_masked_softmax(const Call& call) {
  const auto dim = call.integer("dim");
  if (call.is("mask") && call.in.size() != call.out.size()) return Relation::everything();
  return lines(call.in, call.out, {dim.value_or(-1)});
}

// Element c depends on those up to c.
Relation map_scan(const Call& call) {
  if (call.in.empty() || call.in != call.out) return Relation::everything();
  const int dim = wrap(call.integer("dim", 0), call.in.size());
  if (dim < 0) return call.unmapped();
  Sizes low(call.in[dim], 0), high(call.in[dim]);
  for (std::size_t c = 0; c < high.size(); ++c) high[c] = static_cast<std::int64_t>(c) + 1;
  return along(call.in, call.out, dim, window(0, 0, std::move(low), std::move(high)));
}

// (x1, x2) broadcast, then dim is summed away.
Relation map_similarity(const Call& call) {
  const bool last = call.name == "pairwise_distance" || call.name == "linalg_vecdot";
  std::size_t rank = 0;
  for (const InputRecord& input : call.record.inputs) rank = std::max(rank, input.facts.geometry.sizes.size());
  const int dim = wrap(call.integer("dim", last ? -1 : 1), rank);
  const bool keep = call.out.size() == rank;
  if (dim < 0 || (!keep && call.out.size() + 1 != rank)) return Relation::everything();
  const int lead = static_cast<int>(rank - call.in.size());
  std::vector<int> source(call.in.size(), Relation::kAny);
  for (int d = 0; d < static_cast<int>(call.in.size()); ++d) {
    const int at = d + lead;
    if (at == dim || call.in[d] == 1) continue;
    source[d] = at - (at > dim && !keep ? 1 : 0);
    if (call.out[source[d]] != call.in[d]) return Relation::everything();
  }
  return Relation::box(std::move(source));
}

Relation map_cross(const Call& call) {
  const auto dim = call.integer("dim");
  const std::size_t rank = call.out.size();
  if (!dim && call.name == "cross") return Relation::everything();
  const int free = wrap(dim.value_or(-1), rank);
  std::vector<int> source(call.in.size(), Relation::kAny);
  const int lead = static_cast<int>(rank) - static_cast<int>(call.in.size());
  for (int d = 0; d < static_cast<int>(call.in.size()); ++d) {
    if (d + lead < 0) return call.unmapped();
    if (d + lead != free && call.in[d] != 1) source[d] = d + lead;
  }
  return Relation::box(std::move(source));
}

Relation map_glu(const Call& call) {
  const int dim = wrap(call.integer("dim", -1), call.in.size());
  if (dim < 0 || call.in.size() != call.out.size()) return call.unmapped();
  const std::int64_t half = call.out[dim];
  if (half < 1) return call.unmapped();
  Sizes to(call.in[dim]);
  for (std::int64_t c = 0; c < call.in[dim]; ++c) to[c] = c % half;
  return along(call.in, call.out, dim, scatter(0, 0, std::move(to)));
}

// Both halves of the gradient come from both halves of self at the same place.
Relation map_glu_backward(const Call& call) {
  const int dim = wrap(call.integer("dim", -1), call.out.size());
  if (dim < 0 || call.in.size() != call.out.size()) return call.unmapped();
  const std::int64_t half = call.out[dim] / 2;
  if (half < 1) return call.unmapped();
  Sizes outputs, inputs;
  for (std::int64_t c = 0; c < call.out[dim]; ++c) {
    for (std::int64_t k = c % half; k < call.in[dim]; k += half) {
      outputs.push_back(c);
      inputs.push_back(k);
    }
  }
  return along(call.in, call.out, dim, pairs(0, 0, std::move(outputs), std::move(inputs)));
}

// The transformed dimensions are one unit and may change their size.
Relation map_fft(const Call& call) {
  if (call.in.size() != call.out.size()) return call.unmapped();
  const bool two = call.name.ends_with('2');
  const bool many = call.name.ends_with('n') || call.name.starts_with("_fft");
  auto dims = call.ints("dim");
  if (many && !dims) {
    auto sizes = call.ints("s");
    if (!sizes) return Relation::everything();
    dims = Sizes{};
    for (std::size_t k = 0; k < sizes->size(); ++k) dims->push_back(-1 - static_cast<std::int64_t>(k));
  }
  if (!dims) dims = two ? Sizes{-2, -1} : Sizes{-1};
  return dims->empty() ? Relation::everything() : lines(call.in, call.out, *dims);
}

Relation map_renorm(const Call& call) {
  const int dim = wrap(call.integer("dim", 0), call.in.size());
  if (dim < 0 || call.in.size() != call.out.size()) return call.unmapped();
  return one_dim(dim, dim);
}

Relation map_sum_to_size(const Call& call) {
  const int lead = static_cast<int>(call.in.size()) - static_cast<int>(call.out.size());
  if (lead < 0) return call.unmapped();
  std::vector<int> source(call.in.size(), Relation::kAny);
  for (int d = lead; d < static_cast<int>(call.in.size()); ++d) {
    if (call.out[d - lead] == 1) continue;
    if (call.out[d - lead] != call.in[d]) return call.unmapped();
    source[d] = d - lead;
  }
  return Relation::box(std::move(source));
}

Relation map_rows(const Call& call) { return leading(call.in, call.out, static_cast<int>(call.in.size()) - 1); }

}  // namespace

std::span<const Family> reduce_families() {
  static constexpr std::array kTable{
      Family{"sum nansum mean nanmean prod std var std_mean var_mean norm linalg_vector_norm linalg_norm native_norm "
             "frobenius_norm amax amin aminmax max min argmax argmin logsumexp special_logsumexp any all count_nonzero",
             map_reduction},
      Family{"median nanmedian kthvalue mode", map_line_reduction},
      Family{"quantile nanquantile", map_quantile},
      Family{"linalg_matrix_norm nuclear_norm", map_matrix_norm},
      Family{"softmax log_softmax _softmax _log_softmax _safe_softmax special_softmax special_log_softmax "
             "_softmax_backward_data sort topk argsort msort diff cumulative_trapezoid",
             map_line},
      Family{"_log_softmax_backward_data", map_log_softmax_backward},
      Family{"_masked_softmax _masked_softmax_backward", map_masked_softmax},
      Family{"cumsum cumprod cummax cummin logcumsumexp _logcumsumexp _cummax_helper _cummin_helper", map_scan},
      Family{"cosine_similarity pairwise_distance linalg_vecdot", map_similarity},
      Family{"cross linalg_cross", map_cross},
      Family{"glu", map_glu},
      Family{"glu_backward", map_glu_backward},
      Family{"fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn "
             "fft_ifftn fft_rfftn fft_irfftn fft_fftshift fft_ifftshift _fft_c2c _fft_r2c _fft_c2r",
             map_fft},
      Family{"renorm", map_renorm},
      Family{"sum_to_size", map_sum_to_size},
      Family{"multinomial", map_rows},
  };
  return kTable;
}

}  // namespace sherlorch::maps
