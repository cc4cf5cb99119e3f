#include "adapter/storage_names.h"

#include <unordered_map>
#include <utility>

#include "adapter/tensor_facts.h"

namespace sherlorch {

namespace {

void* handle_of(StorageKey key) noexcept { return reinterpret_cast<void*>(key); }

// Where the elements lie side by side.
struct Place {
  StorageKey storage = 0;  // 0: they have gaps, or cannot be read
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Place&) const = default;
};

Place place_of(const at::TensorBase& tensor) {
  LoneTensor lone;
  if (tensor.defined()) look_at(tensor, &lone);
  if (lone.kind != TensorKind::kBytes || !tensor.is_non_overlapping_and_dense()) return {};
  const CallTensor& seen = lone.tensor;
  return {seen.storage, seen.offset, seen.offset + seen.numel * static_cast<std::int64_t>(seen.item_size)};
}

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
  const Place place = place_of(tensor);
  if (place.storage == 0) return;
  label.begin = place.begin;
  label.end = place.end;
  label.tensor = tensor.unsafeGetTensorImpl();
  label.since = Session::get().recorder().graph().flight.end();
  const auto [entry, added] = labels_.try_emplace(place.storage);
  if (added) acquire_storage_guard(handle_of(place.storage));
  for (StorageLabel& known : entry->second) {
    if (known.tensor != label.tensor || known.begin != label.begin || known.end != label.end) continue;
    if (label.gradient) return;  // what it was called before says more
    if (known.model != label.model) continue;
    if (known.name == label.name) label.since = known.since;
    known = std::move(label);
    return;
  }
  entry->second.push_back(std::move(label));
}

void StorageNames::name(const NamedTensor& named) {
  StorageLabel label;
  label.name = named.name;
  label.buffer = named.buffer;
  put(named.tensor, std::move(label));
}

void StorageNames::name_model(int model, const std::vector<NamedTensor>& tensors) {
  std::unordered_map<const void*, const NamedTensor*> now;
  for (const NamedTensor& named : tensors) {
    if (named.tensor.defined()) now.emplace(named.tensor.unsafeGetTensorImpl(), &named);
  }
  for (const auto& [tensor, named] : now) {
    StorageLabel label;
    label.name = named->name;
    label.buffer = named->buffer;
    label.model = model;
    put(named->tensor, std::move(label));
  }
  erase([&](StorageKey storage, const StorageLabel& label) {
    if (label.model != model || label.gradient) return false;
    const auto found = now.find(label.tensor);
    if (found == now.end() || found->second->name != label.name) return true;
    return place_of(found->second->tensor) != Place{storage, label.begin, label.end};
  });
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

}  // namespace sherlorch
