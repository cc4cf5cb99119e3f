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

// Bytes of a storage, counted from its start; half-open. No storage: none.
struct ByteRange {
  StorageKey storage = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Logical number of a thread, given out by the adapter in order of first sight; 0 is never used.
using ThreadId = std::uint32_t;

}  // namespace sherlorch
