// Names for the things that the recorder keeps: small integers, never pointers, between layers.
#pragma once

#include <cstdint>

#include "sherlorch/types.h"

namespace sherlorch {

// Index into OperatorTable: one overload of one operator, e.g. aten::add.Tensor. 0 means "unknown operator".
using OperatorId = std::uint32_t;

// Index into SiteTable: one place in the user's source. 0 means "no site".
using SiteId = std::uint32_t;

// Index into ModuleTable: one running nn.Module. 0 means "no module".
using ModuleId = std::uint32_t;

// The identity of a storage: the address of its StorageImpl (not of its bytes, which may move). 0 means "none".
using StorageKey = std::uint64_t;

// A tensor that is alive: its storage, and itself by the address of its TensorImpl. No storage: none.
struct TensorKey {
  StorageKey storage = 0;
  const void* tensor = nullptr;
};

// Logical number of a thread, given out by the adapter in order of first sight; 0 is never used.
using ThreadId = std::uint32_t;

}  // namespace sherlorch
