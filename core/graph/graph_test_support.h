// For tests: storages that are plain numbers, and records with one output.
#pragma once

#include <memory>
#include <set>
#include <utility>

#include "core/graph/op_store.h"
#include "core/graph/shadow.h"

namespace sherlorch::test {

// Guards are pointers to these; a test kills a storage by clearing `alive`.
struct FakeStorage {
  bool alive = true;
  const void* data = nullptr;
  std::int64_t bytes = 0;
  int guards = 0;
};

inline StorageGuardOps fake_guards() {
  StorageGuardOps ops;
  ops.alive = [](void* guard) noexcept { return static_cast<FakeStorage*>(guard)->alive; };
  ops.release = [](void* guard) noexcept { --static_cast<FakeStorage*>(guard)->guards; };
  ops.data = [](void* guard) noexcept { return static_cast<FakeStorage*>(guard)->data; };
  ops.bytes = [](void* guard) noexcept { return static_cast<FakeStorage*>(guard)->bytes; };
  return ops;
}

// A float32 tensor of this shape, `first` elements into its storage.
inline Geometry floats(std::vector<std::int64_t> sizes, std::int64_t first = 0) {
  return contiguous_geometry(sizes, 4, 4 * first);
}

// A record that wrote this geometry, `bad` elements of it NaN, all introduced here. One reference is the caller's.
inline OpRecord* add_record(OpStore& store, OpSeq seq, Geometry geometry, ElementSet bad) {
  auto record = std::make_unique<OpRecord>();
  record->seq = seq;
  OutputRecord output;
  output.facts.geometry = std::move(geometry);
  output.facts.dtype = DType::kFloat32;
  output.bad.nan = bad;
  output.introduced = std::move(bad);
  record->outputs.push_back(std::move(output));
  return store.add(std::move(record));
}

}  // namespace sherlorch::test
