// The torch tensor inside a Python object. Apart from module.cpp, because torch's header for it is slow to compile.
#pragma once

#include <ATen/core/TensorBase.h>
#include <Python.h>

#include "core/base/dtype.h"

namespace sherlorch {

// Borrowed: good while the object lives. Null if the object is no torch.Tensor.
const at::TensorBase* tensor_in(PyObject* object);

// The core's name for a torch.dtype; kOther for anything else.
DType dtype_in(PyObject* object);

}  // namespace sherlorch
