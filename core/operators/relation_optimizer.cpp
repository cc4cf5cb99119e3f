// Operators over lists of tensors (foreach), fused optimizer steps and gradient scaling. Entry k of a list meets entry
// k of the others.
#include <array>
#include <utility>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

bool in_list(const Call& call) {
  return call.input.facts.arg < call.op.arguments.size() && call.op.arguments[call.input.facts.arg].is_list;
}

bool other_entry(const Call& call) {
  return in_list(call) && call.input.facts.list_index != call.output.facts.list_index;
}

// One number for each list entry in a tensor.
Relation own_scalar(const Call& call) {
  if (call.in.size() != 1) return Relation::everything();
  const std::int64_t k = call.output.facts.list_index;
  return Relation::everything().restrict_inputs(ElementSet::range(k, k + 1));
}

Relation map_foreach(const Call& call) {
  if (other_entry(call)) return Relation::nothing();
  if (call.is("scalars")) return own_scalar(call);
  return broadcast(call.in, call.out);
}

Relation map_foreach_reduce(const Call& call) {
  return other_entry(call) ? Relation::nothing() : Relation::everything();
}

Relation map_foreach_copy(const Call& call) {
  if (other_entry(call) || call.is("self")) return Relation::nothing();
  return broadcast(call.in, call.out);
}

Relation map_foreach_matmul(const Call& call) {
  if (other_entry(call)) return Relation::nothing();
  if (call.in.size() != 2 || call.out.size() != 2) return Relation::everything();
  return call.is("self") ? Relation::box({0, Relation::kAny}) : Relation::box({Relation::kAny, 1});
}

// What each written list is made of. self takes in everything; the moments take in the gradient, themselves, and self
// only where weight decay is added to the gradient (not in adamw).
Relation map_fused_step(const Call& call) {
  if (other_entry(call)) return Relation::nothing();
  const std::string_view to = call.written();
  Relation own = broadcast(call.in, call.out);
  if (to.empty() || to == "self") return own;
  if (call.is(to) || call.is("grad_scale")) return own;
  if (to == "grads") return Relation::nothing();
  if (call.is("grads")) return own;
  const bool decays_gradient = !call.name.starts_with("_fused_adamw") && call.number("weight_decay", 1) != 0;
  if (call.is("self") && decays_gradient) return own;
  if (to == "max_exp_avg_sqs" && call.is("exp_avg_sqs")) return own;
  return Relation::nothing();
}

// self is divided by the scale; found_inf hears of every element.
Relation map_unscale(const Call& call) {
  if (call.written() == "found_inf" || call.returned() == 1) {
    return call.is("inv_scale") ? Relation::nothing() : Relation::everything();
  }
  if (call.is("found_inf") || other_entry(call)) return Relation::nothing();
  return broadcast(call.in, call.out);
}

}  // namespace

std::span<const Family> optimizer_families() {
  static constexpr std::array kTable{
      Family{
          "_foreach_abs _foreach_acos _foreach_add _foreach_addcdiv _foreach_addcmul _foreach_asin _foreach_atan "
          "_foreach_ceil _foreach_clamp_max _foreach_clamp_min _foreach_clone _foreach_cos _foreach_cosh _foreach_div "
          "_foreach_erf _foreach_erfc _foreach_exp _foreach_expm1 _foreach_floor _foreach_frac _foreach_lerp "
          "_foreach_lgamma _foreach_log _foreach_log10 _foreach_log1p _foreach_log2 _foreach_maximum _foreach_minimum "
          "_foreach_mul _foreach_neg _foreach_pow _foreach_reciprocal _foreach_round _foreach_rsqrt _foreach_sigmoid "
          "_foreach_sign _foreach_sin _foreach_sinh _foreach_sqrt _foreach_sub _foreach_tan _foreach_tanh "
          "_foreach_trunc broadcast_tensors",
          map_foreach},
      Family{"_foreach_norm _foreach_max _foreach_powsum", map_foreach_reduce},
      Family{"_foreach_copy", map_foreach_copy},
      Family{"_foreach_zero", map_nothing},
      Family{"_foreach_mm", map_foreach_matmul},
      Family{"_fused_adam _fused_adamw _fused_sgd _fused_adagrad", map_fused_step},
      Family{"_amp_foreach_non_finite_check_and_unscale", map_unscale},
      Family{"_amp_update_scale", map_everything},
  };
  return kTable;
}

}  // namespace sherlorch::maps
