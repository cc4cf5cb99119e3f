#include "bindings/python_tensor.h"

#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>

#include "adapter/tensor_facts.h"

namespace sherlorch {

const at::TensorBase* tensor_in(PyObject* object) {
  return THPVariable_Check(object) ? &THPVariable_Unpack(object) : nullptr;
}

DType dtype_in(PyObject* object) {
  if (!THPDtype_Check(object)) return DType::kOther;
  return dtype_of(static_cast<std::uint8_t>(reinterpret_cast<THPDtype*>(object)->scalar_type));
}

}  // namespace sherlorch
