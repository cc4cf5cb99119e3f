#include "adapter/storage_names.h"

#include <mutex>
#include <utility>

#include "adapter/tensor_facts.h"

namespace sherlorch {

namespace {

void* handle_of(StorageKey key) noexcept { return reinterpret_cast<void*>(key); }

}  // namespace

StorageNames::~StorageNames() {
  erase([](StorageKey, const StorageLabel&) { return true; });
}

// Drops the labels of which gone(key, label) is true, and the guards of storages that have none left.
template <typename Gone>
void StorageNames::erase(Gone gone) {
  const StorageGuardOps guards = storage_guards();
  for (auto entry = labels_.begin(); entry != labels_.end();) {
    const StorageKey key = entry->first;
    std::erase_if(entry->second, [&](const StorageLabel& label) { return gone(key, label); });
    if (!entry->second.empty()) {
      ++entry;
      continue;
    }
    entry = labels_.erase(entry);
    guards.release(handle_of(key));
  }
}

void StorageNames::put(const at::TensorBase& tensor, StorageLabel label) {
  const ByteRange memory = memory_of(tensor);
  if (memory.storage == 0) return;
  label.begin = memory.begin;
  label.end = memory.end;
  label.since = Session::get().recorder().graph().flight.end();
  const auto [entry, added] = labels_.try_emplace(memory.storage);
  if (added) acquire_storage_guard(handle_of(memory.storage));
  for (StorageLabel& known : entry->second) {
    if (known.begin != label.begin || known.end != label.end) continue;
    if (label.gradient) return;  // what it was called before says more
    label.since = known.since;
    known = std::move(label);
    return;
  }
  entry->second.push_back(std::move(label));
}

void StorageNames::name(const at::TensorBase& tensor, std::string name, bool buffer, bool automatic) {
  StorageLabel label;
  label.name = std::move(name);
  label.buffer = buffer;
  label.automatic = automatic;
  put(tensor, std::move(label));
}

void StorageNames::name_gradient(const at::TensorBase& tensor, std::string name) {
  StorageLabel label;
  label.name = std::move(name);
  label.gradient = true;
  put(tensor, std::move(label));
}

void StorageNames::forget_gradients() {
  erase([](StorageKey, const StorageLabel& label) { return label.gradient; });
}

void StorageNames::forget_the_dead() {
  const StorageGuardOps guards = storage_guards();
  erase([&](StorageKey key, const StorageLabel&) { return !guards.alive(handle_of(key)); });
}

namespace {

// Never destroyed: see Session::get().
struct Unwatched {
  std::mutex mutex;
  StorageNames names;
};
Unwatched& unwatched() {
  static auto* kept = new Unwatched();
  return *kept;
}

}  // namespace

void name_unwatched(const std::vector<NamedTensor>& tensors) {
  std::lock_guard lock(unwatched().mutex);
  StorageNames& names = unwatched().names;
  names.forget_the_dead();
  // The first name of a tensor that has several is to stay.
  for (auto named = tensors.rbegin(); named != tensors.rend(); ++named)
    names.name(named->tensor, named->name, named->buffer, true);
}

StorageLabels unwatched_labels() {
  std::lock_guard lock(unwatched().mutex);
  return unwatched().names.labels();
}

}  // namespace sherlorch
