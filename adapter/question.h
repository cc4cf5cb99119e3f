// Questions about a tensor: is it bad, who made it so, which op made it.
#pragma once

#include <ATen/core/TensorBase.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "adapter/session.h"
#include "core/diagnose/diagnose.h"
#include "sherlorch/errors.h"
#include "sherlorch/export.h"

namespace sherlorch {

// True if the tensor holds a NaN or an infinity now. False for tensors that cannot be read.
SHERLORCH_API bool has_issue(const at::TensorBase& tensor);

// Why the tensor (or its one element at `index`, negative ones counted from the end) is non-finite, as far as the
// window's ops tell. Throws UntrackedTensorError; IndexError where the index is not in the tensor.
SHERLORCH_API Diagnosis diagnose(const Window& window, const at::TensorBase& tensor,
                                 const std::optional<std::vector<std::int64_t>>& index, StepElements* elements);

// Why the op with this ticket made something non-finite. Throws UntrackedTensorError if its output is gone.
SHERLORCH_API Diagnosis diagnose_op(const Window& window, OpSeq seq, StepElements* elements);

// Ops that made something non-finite which does not reach the tensor; at most `limit`.
SHERLORCH_API std::vector<Step> bystanders(const Window& window, const at::TensorBase& tensor, std::size_t limit);

// The last op that wrote the tensor or made this view of it.
SHERLORCH_API bool find_node(const Window& window, const at::TensorBase& tensor, Step* step);

}  // namespace sherlorch
