// From torch's tensors to the core's plain values, by raw pointers: no reference is taken.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/TensorImpl.h>

#include <array>

#include "core/record/op_call.h"
#include "core/record/recorder.h"
#include "sherlorch/export.h"

namespace sherlorch {

enum class TensorKind : std::uint8_t {
  kBytes,     // dense memory of this process: filled in
  kNothing,   // undefined
  kNoValues,  // meta and fake tensors: a shape and no values
  kQuantized,
  kDevice,   // on a device that is not read
  kOpaque,   // sparse without values, mkldnn, ...: cannot be read
  kWrapper,  // a tensor around another one (vmap, grad, wrapper subclass): an inner op has the bytes
};

// Storage for sizes and strides of tensors that have none of their own (a nested tensor's buffer).
struct FlatShape {
  std::int64_t size = 0;
  std::int64_t stride = 1;
};

// True for wrappers around other tensors. Cheap: looks at the key set and the storage pointer only.
bool is_wrapper(const c10::TensorImpl* impl) noexcept;

// The tensor inside a sparse tensor whose bytes count: its values. The tensor itself otherwise.
const c10::TensorImpl* with_bytes(const c10::TensorImpl* impl) noexcept;

// Fills in everything but role, arg and list_index. `flat` must live as long as `tensor`.
TensorKind fill(const c10::TensorImpl* impl, FlatShape* flat, CallTensor* tensor) noexcept;

// Forward-mode AD: the tangent that the tensor carries; null if none.
const c10::TensorImpl* tangent_of(const c10::TensorImpl* impl) noexcept;

// A leaf that requires grad, as parameters are.
bool is_leaf_that_requires_grad(const c10::TensorImpl* impl) noexcept;

// The parameter whose gradient the running AccumulateGrad node takes; none if no such node runs.
TensorKey accumulated_parameter() noexcept;

// A tensor on its own, for has_issue and diagnose.
struct LoneTensor {
  CallTensor tensor;
  FlatShape flat;
  TensorKind kind = TensorKind::kNothing;
};
void look_at(const at::TensorBase& tensor, LoneTensor* lone) noexcept;

// No storage if it has no bytes that can be read. Allocates nothing.
TensorKey tensor_key(const at::TensorBase& tensor) noexcept;

StorageGuardOps storage_guards() noexcept;
void* acquire_storage_guard(void* handle) noexcept;

// Scans with several threads where torch may use them.
ScanResult scan_large(const CallTensor& tensor) noexcept;

// kOther for types that cannot be non-finite.
SHERLORCH_API DType dtype_of(std::uint8_t scalar_type) noexcept;

// "torch.float32"
std::string dtype_text(std::uint8_t scalar_type);

}  // namespace sherlorch
