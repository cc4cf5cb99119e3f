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
// Holds no tensor alive. Not thread-safe.
class SHERLORCH_API StorageNames {
 public:
  StorageNames() = default;
  ~StorageNames();
  StorageNames(const StorageNames&) = delete;
  StorageNames& operator=(const StorageNames&) = delete;

  // Names the tensor's memory from now on; the last name counts. Tensors without memory are passed over.
  // `automatic`: of a model that nobody watches.
  void name(const at::TensorBase& tensor, std::string name, bool buffer, bool automatic = false);
  // The same for a gradient. These names are meant for one question: `forget_gradients` drops them.
  void name_gradient(const at::TensorBase& tensor, std::string name);
  void forget_gradients();
  // Drops the names of storages that nobody owns any more.
  void forget_the_dead();

  const StorageLabels& labels() const noexcept { return labels_; }

 private:
  void put(const at::TensorBase& tensor, StorageLabel label);
  template <typename Gone>
  void erase(Gone gone);

  StorageLabels labels_;
};

// The names of models that nobody watches, for all trackers. Thread-safe.
SHERLORCH_API void name_unwatched(const std::vector<NamedTensor>& tensors);
StorageLabels unwatched_labels();

}  // namespace sherlorch
