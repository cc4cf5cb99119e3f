// What autograd keeps beside a tensor. Apart from the rest because this header takes half a minute to compile.
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/variable.h>

#include "adapter/tensor_facts.h"

namespace sherlorch {

namespace {

const torch::autograd::AutogradMeta* meta_of(const c10::TensorImpl* impl) noexcept {
  return static_cast<const torch::autograd::AutogradMeta*>(impl->autograd_meta());
}

}  // namespace

const c10::TensorImpl* tangent_of(const c10::TensorImpl* impl) noexcept {
  const auto* meta = meta_of(impl);
  if (meta == nullptr || meta->fw_grad_ == nullptr) return nullptr;
  // value(0) does not look at the tensor it is asked for.
  const at::Tensor& tangent = meta->fw_grad_->value(0);
  return tangent.defined() ? tangent.unsafeGetTensorImpl() : nullptr;
}

bool is_leaf_that_requires_grad(const c10::TensorImpl* impl) noexcept {
  const auto* meta = meta_of(impl);
  return meta != nullptr && meta->requires_grad_ && meta->grad_fn_ == nullptr;
}

TensorKey accumulated_parameter() noexcept {
  const auto node = torch::autograd::get_current_node();
  const auto* accumulate = dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get());
  if (accumulate == nullptr || !accumulate->variable.defined()) return {};
  return tensor_key(accumulate->variable);
}

}  // namespace sherlorch
