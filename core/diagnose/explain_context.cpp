// What an op is called, and what is known of its operands.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

// Other names of the same mathematics, so that each family is written once. Private and native forms say what the
// public name says.
struct Alias {
  std::string_view name;
  std::string_view base;
};
constexpr Alias kAliases[] = {
    {"true_divide", "div"},
    {"divide", "div"},
    {"truediv", "div"},
    {"multiply", "mul"},
    {"subtract", "sub"},
    {"rsub", "sub"},
    {"arccos", "acos"},
    {"arcsin", "asin"},
    {"arctanh", "atanh"},
    {"arccosh", "acosh"},
    {"float_power", "pow"},
    {"linalg_norm", "norm"},
    {"native_norm", "norm"},
    {"linalg_vector_norm", "norm"},
    {"linalg_matrix_norm", "norm"},
    {"inverse", "linalg_inv"},
    {"linalg_inv_ex", "linalg_inv"},
    {"cholesky", "linalg_cholesky"},
    {"linalg_cholesky_ex", "linalg_cholesky"},
    {"det", "linalg_det"},
    {"linalg_slogdet", "slogdet"},
    {"linalg_solve_ex", "linalg_solve"},
    {"linalg_lu_factor_ex", "linalg_lu_factor"},
    {"triangular_solve", "linalg_solve_triangular"},
    {"psi", "digamma"},
    {"gammaln", "lgamma"},
    {"native_layer_norm", "layer_norm"},
    {"native_group_norm", "group_norm"},
    {"native_batch_norm", "batch_norm"},
    {"native_batch_norm_legit", "batch_norm"},
    {"native_batch_norm_legit_no_training", "batch_norm"},
    {"batch_norm_impl_index", "batch_norm"},
    {"batch_norm_with_update", "batch_norm"},
    {"cudnn_batch_norm", "batch_norm"},
    {"miopen_batch_norm", "batch_norm"},
    {"fused_rms_norm", "rms_norm"},
    {"native_dropout", "dropout"},
    {"alpha_dropout", "dropout"},
    {"feature_dropout", "dropout"},
    {"nll_loss_nd", "nll_loss"},
    {"nll_loss_forward", "nll_loss"},
    {"nll_loss2d", "nll_loss"},
    {"nll_loss2d_forward", "nll_loss"},
    {"cdist_forward", "cdist"},
    {"euclidean_dist", "cdist"},
    {"weight_norm_interface", "weight_norm"},
    {"vdot", "dot"},
    {"inner", "matmul"},
    {"linalg_matmul", "matmul"},
    {"linalg_vecdot", "dot"},
    {"linalg_multi_dot", "matmul"},
    {"index_put_impl", "index_put"},
    {"unsafe_index_put", "index_put"},
    {"native_multi_head_attention", "attention"},
    {"scaled_dot_product_attention", "attention"},
    {"scaled_dot_product_attention_math", "attention"},
    {"scaled_dot_product_flash_attention", "attention"},
    {"scaled_dot_product_flash_attention_for_cpu", "attention"},
    {"scaled_dot_product_efficient_attention", "attention"},
    {"scaled_dot_product_cudnn_attention", "attention"},
    {"transformer_encoder_layer_fwd", "attention"},
    {"swish", "silu"},
    {"floor_div", "floor_divide"},
};

bool has_no_elements(const Operand& operand) {
  return std::find(operand.shape.begin(), operand.shape.end(), 0) != operand.shape.end();
}

// "grads[2]" is one of "grads".
bool names_argument(std::string_view full, std::string_view name) {
  return full.starts_with(name) && (full.size() == name.size() || full[name.size()] == '[');
}

// The operand of this name; the tensors of a list are taken together.
std::optional<Operand> merged_operand(const OpFacts& facts, std::string_view name) {
  std::optional<Operand> merged;
  for (const Operand& operand : facts.operands) {
    if (!names_argument(operand.name, name)) continue;
    if (!merged) {
      merged = operand;
      continue;
    }
    merged->overwritten |= operand.overwritten;
    merged->counts.numel += operand.counts.numel;
    merged->counts.nan += operand.counts.nan;
    merged->counts.pos_inf += operand.counts.pos_inf;
    merged->counts.neg_inf += operand.counts.neg_inf;
    merged->has_range = merged->has_range && operand.has_range;
    merged->min = std::min(merged->min, operand.min);
    merged->max = std::max(merged->max, operand.max);
  }
  return merged;
}

void take_operand(Known& known) {
  if (!known.operand) return;
  const Operand& operand = *known.operand;
  known.overwritten = operand.overwritten;
  known.form = Known::Form::kUnread;
  known.count = operand.counts.numel;
  known.bad = operand.counts.bad();
  if (operand.is_scalar) {
    known.form = Known::Form::kPoint;
    known.value = operand.value;
  } else if (operand.has_range && !operand.overwritten) {
    known.form = Known::Form::kRange;
    known.min = operand.min;
    known.max = operand.max;
    if (known.count <= known.bad) known.count = known.bad + 1;  // it has a range, so a finite element
  } else if (known.bad > 0 || has_no_elements(operand)) {
    known.form = Known::Form::kRange;  // nothing finite in it, or nothing at all
  }
}

void take_reading(const OperandReading& reading, Known& known) {
  if (!reading.available) {
    known.form = Known::Form::kUnread;
    known.overwritten = true;
  } else if (reading.is_slice) {
    known.form = Known::Form::kSlice;
    known.min = reading.min;
    known.max = reading.max;
    known.sum = reading.sum;
    known.count = std::max(reading.count, reading.bad);
    known.bad = reading.bad;
    known.complete = reading.complete;
    known.diagonal = reading.diagonal;
  } else {
    known.form = Known::Form::kPoint;
    known.value = reading.value;
  }
}

bool strip_prefix(std::string& text, std::string_view prefix) {
  if (text.size() <= prefix.size() || !text.starts_with(prefix)) return false;
  text.erase(0, prefix.size());
  return true;
}

bool strip_suffix(std::string& text, std::string_view suffix) {
  if (text.size() <= suffix.size() || !text.ends_with(suffix)) return false;
  text.resize(text.size() - suffix.size());
  return true;
}

}  // namespace

std::string base_name(std::string_view op_name) {
  std::string name(op_name);
  if (const auto colon = name.rfind(':'); colon != std::string::npos) name.erase(0, colon + 1);
  if (const auto dot = name.find('.'); dot != std::string::npos) name.resize(dot);
  while (name.size() > 1 && name.front() == '_' && name.ends_with("__")) {  // __rsub__, __imul__
    name = name.substr(2, name.size() - 4);
  }
  strip_suffix(name, "_out");
  strip_suffix(name, "_");
  strip_prefix(name, "_foreach_");
  strip_prefix(name, "_fused_");
  strip_prefix(name, "special_");
  strip_prefix(name, "_");
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return std::string(alias.base);
  }
  return name;
}

Context make_context(const OpFacts& facts, const ElementReading* element) {
  Context context{facts, base_name(facts.op_name), false, {}, element, false, 0};
  context.listed = facts.op_name.starts_with("_foreach_") || facts.op_name.starts_with("_fused_");
  std::string dtype = facts.output.dtype;
  for (const Operand& operand : facts.operands) {
    if (dtype.empty()) dtype = operand.dtype;
  }
  context.out = limits_of(dtype);
  const FinitenessCounts& counts = facts.output.counts;
  if (element != nullptr) {
    context.has_result = true;
    context.result = element->value;
  } else if (counts.bad() > 0) {
    context.has_result = true;
    context.result = counts.nan > 0       ? std::numeric_limits<double>::quiet_NaN()
                     : counts.pos_inf > 0 ? HUGE_VAL
                                          : -HUGE_VAL;
  }
  return context;
}

bool Context::result_nan() const { return !has_result || std::isnan(result); }
bool Context::result_inf() const { return !has_result || std::isinf(result); }

Known Context::get(std::initializer_list<std::string_view> names) const {
  for (std::string_view name : names) {
    const OperandReading* reading = nullptr;
    if (element != nullptr) {
      for (const OperandReading& candidate : element->operands) {
        if (reading == nullptr && names_argument(candidate.name, name)) reading = &candidate;
      }
    }
    Known known;
    known.operand = merged_operand(facts, reading != nullptr ? std::string_view(reading->name) : name);
    if (known.operand) take_operand(known);
    if (reading != nullptr) take_reading(*reading, known);
    if (!known.absent()) return known;
  }
  return {};
}

double Context::number(std::string_view name, double otherwise) const {
  const Known known = get({name});
  return known.point() ? known.value : otherwise;
}

}  // namespace sherlorch::explaining
