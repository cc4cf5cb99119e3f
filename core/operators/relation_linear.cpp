// Products: matmul and its relatives, attention, recurrent cells, factorizations.
#include <algorithm>
#include <array>
#include <utility>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

// One factor of a batched matrix product. `kept`: the dimension of the factor that the output keeps, counted from the
// end (2: rows of the left one, 1: columns of the right one); `at`: where the output has it, counted from the end
// likewise.
Relation factor(const Sizes& in, const Sizes& out, int kept, int at, int out_core) {
  std::vector<int> source(in.size(), Relation::kAny);
  if (in.size() < 2) return Relation::box(std::move(source));  // a vector is summed away
  const int in_rank = static_cast<int>(in.size());
  const int out_rank = static_cast<int>(out.size());
  const int lead = (out_rank - out_core) - (in_rank - 2);
  for (int d = 0; d < in_rank - 2; ++d) {
    if (d + lead < 0) return Relation::everything();
    if (in[d] == 1) continue;
    source[d] = d + lead;
    if (out[d + lead] != in[d]) return Relation::everything();
  }
  const int kept_dim = in_rank - kept;
  const int out_dim = out_rank - at;
  if (out_dim < 0 || out[out_dim] != in[kept_dim]) return Relation::everything();
  source[kept_dim] = out_dim;
  return Relation::box(std::move(source));
}

Relation product_of(const Call& call, const char* left_name, const char* right_name) {
  const auto left = call.shape(left_name);
  const auto right = call.shape(right_name);
  if (!left || !right) return call.unmapped();
  const int rows = left->size() > 1 ? 1 : 0;
  const int columns = right->size() > 1 ? 1 : 0;
  if (call.is(left_name)) return factor(call.in, call.out, 2, 1 + columns, rows + columns);
  if (call.is(right_name)) return factor(call.in, call.out, 1, 1, rows + columns);
  return call.unmapped();
}

Relation map_matmul(const Call& call) {
  const char* left = call.tensor("self") != nullptr ? "self" : "input";
  for (const char* right : {"other", "mat2", "vec", "tensor"}) {
    if (call.tensor(right) != nullptr) return product_of(call, left, right);
  }
  return call.unmapped();
}

// beta * self + alpha * a @ b. Nothing is read of self when beta is 0.
Relation map_add_product(const Call& call) {
  if (call.is("self")) {
    return call.number("beta", 1) == 0 ? Relation::nothing() : broadcast(call.in, call.out);
  }
  if (call.tensor("batch1") != nullptr) {
    if (call.name.starts_with("baddbmm")) return product_of(call, "batch1", "batch2");
    // addbmm sums over the batch.
    return call.is("batch1") ? Relation::box({Relation::kAny, 0, Relation::kAny})
                             : Relation::box({Relation::kAny, Relation::kAny, 1});
  }
  if (call.tensor("mat") != nullptr) return product_of(call, "mat", "vec");
  if (call.tensor("vec1") != nullptr) return one_dim(call.is("vec1") ? 0 : 1, 0);
  return product_of(call, "mat1", "mat2");
}

Relation map_outer(const Call& call) { return one_dim(call.is("self") ? 0 : 1, 0); }

// input [.., I], weight [O, I] or [I], bias [O].
Relation map_linear(const Call& call) {
  const auto weight = call.shape("weight");
  if (!weight || weight->empty() || call.out.empty()) return Relation::everything();
  const int last = static_cast<int>(call.out.size()) - 1;
  if (call.is("weight")) return weight->size() == 2 ? one_dim(last, 0) : Relation::everything();
  if (call.is("bias")) return broadcast(call.in, call.out);
  return leading(call.in, call.out, static_cast<int>(call.in.size()) - 1);
}

Relation map_bilinear(const Call& call) {
  const int last = static_cast<int>(call.out.size()) - 1;
  if (call.is("weight") || call.is("bias")) return one_dim(last, 0);
  return leading(call.in, call.out, static_cast<int>(call.in.size()) - 1);
}

// Returned: gradients of input, weight and bias. (self, grad_output, weight)
Relation map_linear_backward(const Call& call) {
  const int in_last = static_cast<int>(call.in.size()) - 1;
  const int out_last = static_cast<int>(call.out.size()) - 1;
  if (call.returned() == 0) {
    if (call.is("weight")) return call.in.size() == 2 ? one_dim(out_last, 1) : Relation::everything();
    return call.is("self") ? Relation::nothing() : leading(call.in, call.out, in_last);
  }
  if (call.is("weight")) return Relation::nothing();
  if (call.is("self")) return call.returned() == 2 ? Relation::nothing() : one_dim(out_last, in_last);
  return one_dim(0, in_last);
}

Relation map_inner(const Call& call) {
  if (call.in.empty()) return Relation::everything();
  std::vector<int> source(call.in.size(), Relation::kAny);
  const int free = static_cast<int>(call.in.size()) - 1;
  const int first = call.is("self") ? 0 : static_cast<int>(call.out.size()) - free;
  if (first < 0) return Relation::everything();
  for (int d = 0; d < free; ++d) {
    if (first + d >= static_cast<int>(call.out.size())) return Relation::everything();
    source[d] = first + d;
  }
  // Times a scalar: shapes stay as they are.
  for (const InputRecord& input : call.record.inputs) {
    if (!input.scalar && input.facts.geometry.sizes.empty()) return broadcast(call.in, call.out);
  }
  return Relation::box(std::move(source));
}

// Free dimensions of self, then those of other.
Relation map_tensordot(const Call& call) {
  const auto dims = call.ints(call.is("self") ? "dims_self" : "dims_other");
  if (!dims) return call.unmapped();
  std::vector<bool> summed(call.in.size(), false);
  for (std::int64_t dim : *dims) {
    if (wrap(dim, call.in.size()) < 0) return call.unmapped();
    summed[wrap(dim, call.in.size())] = true;
  }
  const int free = static_cast<int>(std::count(summed.begin(), summed.end(), false));
  int next = call.is("self") ? 0 : static_cast<int>(call.out.size()) - free;
  std::vector<int> source(call.in.size(), Relation::kAny);
  for (std::size_t d = 0; d < call.in.size(); ++d) {
    if (summed[d]) continue;
    if (next < 0 || next >= static_cast<int>(call.out.size()) || call.out[next] != call.in[d]) return call.unmapped();
    source[d] = next++;
  }
  return Relation::box(std::move(source));
}

// Output coordinate c is (c / m) of self and (c % m) of other, m other's size.
Relation map_kron(const Call& call) {
  const auto other = call.shape("other");
  if (!other) return call.unmapped();
  const std::size_t rank = call.out.size();
  Sizes in = call.in;
  Sizes right = *other;
  while (in.size() < rank) in.insert(in.begin(), 1);
  while (right.size() < rank) right.insert(right.begin(), 1);
  std::vector<Link> links;
  for (std::size_t d = 0; d < rank; ++d) {
    Sizes from(call.out[d]);
    for (std::int64_t c = 0; c < call.out[d]; ++c) from[c] = call.is("self") ? c / right[d] : c % right[d];
    links.push_back(points(static_cast<int>(d), static_cast<int>(d), std::move(from)));
  }
  return Relation::product(std::move(links), call.out, in);
}

Relation map_cdist(const Call& call) {
  if (call.is("x1")) return factor(call.in, call.out, 2, 2, 2);
  return factor(call.in, call.out, 2, 1, 2);
}

// Factorizations, inverses, determinants: matrices of a batch stay apart; the batch stands in front.
Relation map_batched(const Call& call) {
  const int count = static_cast<int>(call.in.size()) - 2;
  return leading(call.in, call.out, std::min(count, static_cast<int>(call.out.size())));
}

Relation map_solve(const Call& call) {
  const std::size_t rank = call.out.size();
  for (const InputRecord& input : call.record.inputs) {
    if (!input.scalar && input.facts.geometry.sizes.size() != rank) return Relation::everything();
  }
  if (rank < 2) return Relation::everything();
  std::vector<int> source(rank, Relation::kAny);
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    if (call.in[d] != 1) source[d] = static_cast<int>(d);
  }
  return Relation::box(std::move(source));
}

// query [.., Hq, L, E], key [.., H, S, E], value [.., H, S, Ev], output [.., Hq, L, Ev], mask broadcast to [.., Hq, L,
// S]. Grouped queries: each key head serves Hq / H query heads.
Relation map_attention(const Call& call) {
  const int rank = static_cast<int>(call.out.size());
  if (rank < 2) return call.unmapped();
  const bool mask = call.is("attn_mask") || call.is("attn_bias");
  const bool query = call.is("query");
  const bool value = call.is("value");
  if (call.returned() > 1 || (!mask && !query && !value && !call.is("key"))) return Relation::everything();
  if (call.returned() == 1) {  // logsumexp [.., H, L]
    return value ? Relation::nothing() : leading(call.in, call.out, query ? rank : std::min(rank - 1, 1));
  }
  const int in_rank = static_cast<int>(call.in.size());
  const int lead = rank - in_rank;
  std::vector<Link> links;
  for (int d = 0; d < in_rank; ++d) {
    const int at = d + lead;
    if (at < 0) return call.unmapped();
    if (call.in[d] == 1) continue;
    if (at < rank - 2) {
      if (call.in[d] == call.out[at]) {
        links.push_back(same(at, d));
      } else if (!mask && call.out[at] % call.in[d] == 0) {
        const std::int64_t group = call.out[at] / call.in[d];
        Sizes from(call.out[at]);
        for (std::int64_t c = 0; c < call.out[at]; ++c) from[c] = c / group;
        links.push_back(points(at, d, std::move(from)));
      }
    } else if (at == rank - 2 ? (query || mask) : value) {
      if (call.in[d] != call.out[at]) return call.unmapped();
      links.push_back(same(at, d));
    }
  }
  return Relation::product(std::move(links), call.out, call.in);
}

// Gradients of query, key, value: heads of a sample stay apart where all have as many.
Relation map_attention_backward(const Call& call) {
  const int rank = static_cast<int>(std::min(call.in.size(), call.out.size())) - 2;
  int count = 0;
  while (count < std::min(rank, 2) && call.in[count] == call.out[count]) ++count;
  return leading(call.in, call.out, count);
}

// Rows of a batch; weights reach everything.
Relation map_cell(const Call& call) {
  const bool parameter = call.arg().starts_with("w_") || call.arg().starts_with("b_") || call.arg().ends_with("_bias");
  if (parameter || call.in.size() != 2 || call.out.size() != 2 || call.in[0] != call.out[0]) {
    return Relation::everything();
  }
  return leading(call.in, call.out, 1);
}

}  // namespace

std::span<const Family> linear_families() {
  static constexpr std::array kTable{
      Family{"matmul linalg_matmul mm bmm mv dot vdot _int_mm", map_matmul},
      Family{"addmm _addmm_activation baddbmm addbmm addmv addr", map_add_product},
      Family{"outer ger", map_outer},
      Family{"linear mkldnn_linear", map_linear},
      Family{"bilinear", map_bilinear},
      Family{"linear_backward mkldnn_linear_backward", map_linear_backward},
      Family{"inner", map_inner},
      Family{"tensordot", map_tensordot},
      Family{"kron", map_kron},
      Family{"cdist _euclidean_dist _cdist_forward", map_cdist},
      Family{
          "linalg_inv linalg_inv_ex inverse linalg_pinv pinverse linalg_cholesky linalg_cholesky_ex cholesky "
          "cholesky_inverse linalg_det det _linalg_det linalg_slogdet slogdet _linalg_slogdet logdet linalg_svd svd "
          "_linalg_svd linalg_svdvals linalg_qr qr linalg_eig linalg_eigh _linalg_eigh linalg_eigvals _linalg_eigvals "
          "linalg_eigvalsh linalg_lu linalg_lu_factor linalg_lu_factor_ex matrix_exp linalg_matrix_exp matrix_power "
          "linalg_matrix_power linalg_cond linalg_matrix_rank",
          map_batched},
      Family{"linalg_solve linalg_solve_ex _linalg_solve_ex linalg_solve_triangular cholesky_solve triangular_solve "
             "linalg_lstsq linalg_lu_solve lu_solve",
             map_solve},
      Family{"scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention "
             "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention "
             "_scaled_dot_product_cudnn_attention _scaled_dot_product_attention_math_for_mps",
             map_attention},
      Family{"_scaled_dot_product_flash_attention_backward _scaled_dot_product_flash_attention_for_cpu_backward "
             "_scaled_dot_product_efficient_attention_backward _scaled_dot_product_cudnn_attention_backward",
             map_attention_backward},
      Family{"lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell", map_cell},
      // Every element may depend on every other; known, not merely unlisted.
      Family{
          "einsum lstm gru rnn_tanh rnn_relu mkldnn_rnn_layer _cudnn_rnn _cudnn_rnn_backward miopen_rnn "
          "_thnn_fused_lstm_cell _thnn_fused_gru_cell "
          "mkldnn_rnn_layer_backward _thnn_fused_lstm_cell_backward _thnn_fused_gru_cell_backward "
          "_thnn_fused_lstm_cell_backward_impl _thnn_differentiable_lstm_cell_backward "
          "_thnn_differentiable_gru_cell_backward chain_matmul linalg_multi_dot cov corrcoef dist pdist _pdist_forward "
          "_pdist_backward _cdist_backward histc histogram bincount stft istft unique_dim unique_consecutive _unique "
          "_unique2 "
          "nonzero nonzero_static argwhere searchsorted bucketize linalg_householder_product linalg_tensorsolve "
          "linalg_tensorinv _native_multi_head_attention "
          "_transformer_encoder_layer_fwd trapezoid trapz gradient combinations cartesian_prod vander linalg_vander",
          map_everything},
  };
  return kTable;
}

}  // namespace sherlorch::maps
