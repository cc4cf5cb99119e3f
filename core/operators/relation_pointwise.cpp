// Operators whose output element k depends on the elements that broadcasting puts at k, and on nothing else.
#include <array>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

// The operand that a condition did not choose is not read. cond, self and other broadcast together.
Relation map_where(const Call& call) {
  if (call.is("condition")) return broadcast(call.in, call.out);
  Relation relation = broadcast(call.in, call.out);
  auto chosen = where_mask(call, "condition", call.out, call.is("self"));
  return chosen ? std::move(relation).restrict_outputs(*std::move(chosen)) : relation;
}

// self stays where the mask is 0, value comes where it is 1.
Relation map_masked_fill(const Call& call) {
  Relation relation = broadcast(call.in, call.out);
  if (call.is("mask")) return relation;
  auto chosen = where_mask(call, "mask", call.out, call.is("value"));
  return chosen ? std::move(relation).restrict_outputs(*std::move(chosen)) : relation;
}

// What self held is gone; the other operands come broadcast.
Relation map_overwrite(const Call& call) {
  return call.is("self") ? Relation::nothing() : broadcast(call.in, call.out);
}

// A scalar weight, or one a channel (dimension 1).
Relation map_prelu(const Call& call) {
  if (!call.is("weight")) return broadcast(call.in, call.out);
  if (numel(call.in) == 1 || call.out.size() < 2) return Relation::everything();
  return one_dim(1, 0);
}

// Mask and noise are drawn, not computed from the values.
Relation map_dropout(const Call& call) {
  if (call.returned() > 0 || call.written() == "noise") return Relation::nothing();
  return broadcast(call.in, call.out);
}

}  // namespace

std::span<const Family> pointwise_families() {
  static constexpr std::array kTable{
      // Unary.
      Family{
          "abs absolute neg negative positive conj conj_physical _conj _conj_physical _neg_view resolve_conj "
          "resolve_neg "
          "real imag angle sgn sign signbit exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal "
          "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh arcsin arccos arctan arcsinh arccosh arctanh "
          "sinc deg2rad rad2deg ceil floor round trunc fix frac erf erfc erfinv lgamma digamma polygamma mvlgamma i0 "
          "logit nan_to_num isnan isinf isfinite isposinf isneginf isreal frexp",
          pointwise},
      Family{
          "special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_digamma "
          "special_entr special_erf special_erfc special_erfcx special_erfinv special_exp2 special_expit special_expm1 "
          "special_gammaln special_i0 special_i0e special_i1 special_i1e special_log1p special_log_ndtr special_logit "
          "special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 "
          "special_modified_bessel_k1 special_multigammaln special_ndtr special_ndtri special_polygamma special_psi "
          "special_round special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_sinc "
          "special_spherical_bessel_j0",
          pointwise},
      Family{"special_gammainc special_gammaincc special_xlog1py special_xlogy special_zeta "
             "special_chebyshev_polynomial_t "
             "special_chebyshev_polynomial_u special_chebyshev_polynomial_v special_chebyshev_polynomial_w "
             "special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l "
             "special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t "
             "special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v "
             "special_shifted_chebyshev_polynomial_w",
             pointwise},
      // Activations.
      Family{"relu relu6 _add_relu leaky_relu elu selu celu gelu silu mish sigmoid log_sigmoid log_sigmoid_forward "
             "softplus softshrink hardshrink hardtanh hardsigmoid hardswish threshold rrelu _prelu_kernel",
             pointwise},
      Family{"prelu", map_prelu},
      Family{
          "dropout alpha_dropout feature_dropout feature_alpha_dropout native_dropout _fused_dropout rrelu_with_noise "
          "rrelu_with_noise_functional",
          map_dropout},
      // Casts and copies; the layout in memory may change, the logical index does not.
      Family{"to _to_copy type_as clone contiguous alias alias_copy detach detach_copy lift lift_fresh lift_fresh_copy "
             "cpu cuda pin_memory _pin_memory _cast_Float _cast_Double _cast_Half _cast_Int _cast_Long "
             "_autocast_to_full_precision _autocast_to_reduced_precision _shape_as_tensor chalf data _fw_primal "
             "_lazy_clone",
             pointwise},
      // Binary and ternary.
      Family{
          "add sub subtract rsub mul multiply div divide true_divide floor_divide pow float_power fmod remainder "
          "atan2 arctan2 maximum minimum fmax fmin hypot copysign nextafter ldexp logaddexp logaddexp2 xlogy heaviside "
          "lerp addcmul addcdiv clamp clamp_min clamp_max clip gcd lcm igamma igammac polar complex",
          pointwise},
      Family{
          "eq ne lt le gt ge not_equal less less_equal greater greater_equal isclose logical_and logical_or "
          "logical_xor "
          "logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift __and__ "
          "__or__ __xor__ __lshift__ __rshift__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__",
          pointwise},
      Family{"where", map_where, "condition"},
      Family{"masked_fill", map_masked_fill, "mask"},
      // Derivatives.
      Family{"threshold_backward sigmoid_backward tanh_backward gelu_backward silu_backward mish_backward elu_backward "
             "leaky_relu_backward hardtanh_backward hardsigmoid_backward hardswish_backward hardshrink_backward "
             "softplus_backward softshrink_backward logit_backward rrelu_with_noise_backward _prelu_kernel_backward "
             "infinitely_differentiable_gelu_backward native_dropout_backward _masked_scale log_sigmoid_backward",
             pointwise},
      // Content that is replaced, or only its shape used.
      Family{"copy_ copy _copy_from fill_ fill bernoulli_", map_overwrite},
      Family{
          "zero_ zero normal_ uniform_ random_ exponential_ cauchy_ log_normal_ geometric_ uniform log_normal cauchy "
          "exponential geometric random normal_functional zeros_like ones_like full_like empty_like rand_like "
          "randn_like randint_like new_zeros new_ones new_full new_empty new_empty_strided eye",
          map_nothing},
      Family{"bernoulli poisson normal binomial _standard_gamma", pointwise},
  };
  return kTable;
}

}  // namespace sherlorch::maps
