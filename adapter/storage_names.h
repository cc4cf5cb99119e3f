// The names of parameters, buffers and gradients, by the storage that holds them.
#pragma once

#include <ATen/core/TensorBase.h>

#include <string>
#include <unordered_map>

#include "adapter/session.h"
#include "core/diagnose/diagnose.h"

namespace sherlorch {

// Each name owns a guard on its storage: as long as the name is known, no other storage can have its address. Holds no
// tensor alive. Not thread-safe.
class SHERLORCH_API StorageNames {
 public:
  StorageNames() = default;
  ~StorageNames();
  StorageNames(const StorageNames&) = delete;
  StorageNames& operator=(const StorageNames&) = delete;

  // Names the tensor's memory from now on; the last name counts. Tensors without memory are passed over.
  void name(const at::TensorBase& tensor, std::string name, bool buffer);
  // The same for a gradient. These names are meant for one question: `forget_gradients` drops them.
  void name_gradient(const at::TensorBase& tensor, std::string name);
  void forget_gradients();

  void show_in(Window* window) const { window->name_storages(labels_); }

 private:
  void put(const at::TensorBase& tensor, StorageLabel label);

  std::unordered_map<StorageKey, StorageLabel> labels_;
};

}  // namespace sherlorch
