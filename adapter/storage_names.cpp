#include "adapter/storage_names.h"

#include <utility>

#include "adapter/question.h"
#include "adapter/tensor_facts.h"

namespace sherlorch {

namespace {

void* handle_of(StorageKey key) noexcept { return reinterpret_cast<void*>(key); }

}  // namespace

StorageNames::~StorageNames() {
  const StorageGuardOps guards = storage_guards();
  for (const auto& [key, label] : labels_) guards.release(handle_of(key));
}

void StorageNames::put(const at::TensorBase& tensor, StorageLabel label) {
  const StorageKey key = storage_key(tensor);
  if (key == 0) return;
  auto found = labels_.find(key);
  if (found != labels_.end()) {
    if (label.gradient) return;  // what it was called before says more
    label.since = found->second.since;
    found->second = std::move(label);
    return;
  }
  label.since = Session::get().recorder().graph().flight.end();
  acquire_storage_guard(handle_of(key));
  labels_.emplace(key, std::move(label));
}

void StorageNames::name(const at::TensorBase& tensor, std::string name, bool buffer) {
  StorageLabel label;
  label.name = std::move(name);
  label.buffer = buffer;
  put(tensor, std::move(label));
}

void StorageNames::name_gradient(const at::TensorBase& tensor, std::string name) {
  StorageLabel label;
  label.name = std::move(name);
  label.gradient = true;
  put(tensor, std::move(label));
}

void StorageNames::forget_gradients() {
  const StorageGuardOps guards = storage_guards();
  std::erase_if(labels_, [&](const auto& entry) {
    if (!entry.second.gradient) return false;
    guards.release(handle_of(entry.first));
    return true;
  });
}

}  // namespace sherlorch
