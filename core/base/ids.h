// Names for the things that the recorder keeps: small integers, never pointers, between layers.
#pragma once

#include <cstdint>

namespace sherlorch {

// The ticket of one op. Tickets grow with time across all threads of the process; they may skip values (an op with
// many tensors takes several). 0 means "no op".
using OpSeq = std::uint64_t;

// Index into OperatorTable: one overload of one operator, e.g. aten::add.Tensor. 0 means "unknown operator".
using OperatorId = std::uint32_t;

// Index into SiteTable: one place in the user's source. 0 means "no site".
using SiteId = std::uint32_t;

// Index into ModuleTable: one running nn.Module. 0 means "no module".
using ModuleId = std::uint32_t;

// The identity of a storage: the address of its StorageImpl (not of its bytes, which may move). 0 means "none".
using StorageKey = std::uint64_t;

// Logical number of a thread, given out by the adapter in order of first sight; 0 is never used.
using ThreadId = std::uint32_t;

enum class Phase : std::uint8_t { kForward = 0, kBackward = 1, kRecompute = 2, kOptimizer = 3 };

// "forward", "backward", "recompute" or "optimizer".
const char* phase_name(Phase phase) noexcept;

}  // namespace sherlorch
