// The names of parameters, buffers and gradients, by the memory that holds them.
#pragma once

#include <ATen/core/TensorBase.h>

#include <string>
#include <vector>

#include "adapter/session.h"
#include "core/diagnose/diagnose.h"
#include "sherlorch/tracker.h"

namespace sherlorch {

// Each storage that holds a name has a guard: as long as the name is known, no other storage can have its address.
// Holds no tensor alive. Tensors without memory, and those with gaps between their elements, are passed over. Not
// thread-safe.
class SHERLORCH_API StorageNames {
 public:
  StorageNames() = default;
  ~StorageNames();
  StorageNames(const StorageNames&) = delete;
  StorageNames& operator=(const StorageNames&) = delete;

  // Names the tensor's memory from now on; the last name of a tensor counts.
  void name(const NamedTensor& named);
  // All that this model has now; of a tensor that has several names the first. What had the same name and memory before
  // has had it ever since; what else the model had is forgotten.
  void name_model(int model, const std::vector<NamedTensor>& tensors);
  // Gradients are named for one question: `forget_gradients` drops them.
  void name_gradient(const at::TensorBase& tensor, std::string name);
  void forget_gradients();

  const StorageLabels& labels() const noexcept { return labels_; }

 private:
  void put(const at::TensorBase& tensor, StorageLabel label);
  template <typename Gone>
  void erase(Gone gone);

  StorageLabels labels_;
};

}  // namespace sherlorch
