// What is known of an operator beyond its schema. Every row of the tables has a reason beside it and a test.
#pragma once

#include <cstdint>

#include "core/graph/operator_info.h"

namespace sherlorch {

struct OperatorTraits {
  // Hands out memory without writing it (empty, resize_): its content is nobody's value.
  bool uninitialized = false;
  // Changes what a tensor *is* (set_, t_, detach_), not what its memory holds, although the schema calls it written.
  bool metadata_only = false;
  // Brings a literal of the program or foreign memory into torch (lift_fresh of torch.tensor(...), from_numpy).
  bool literal = false;
  // Writes numbers that the program gave it (full, masked_fill, where): an infinity among them is deliberate.
  bool fills = false;
  // Writes its first argument without reading it (copy_, fill_, zero_, random fills).
  bool overwrites = false;
  // Writes out= arguments only, which it does not read.
  bool only_out = false;
  // Its source may be a Python number that torch turned into a 0-dim tensor without an op (x[mask] = inf).
  bool takes_number = false;
  // Takes a number out of a tensor into Python (item).
  bool item = false;
  // Converts the element type and may do so inside another op, where autocast keeps the result for later ops.
  bool cast = false;
  // Arguments that it writes although the schema does not say so, as a bit mask (batch_norm's running statistics).
  std::uint32_t hidden_writes = 0;
  // The hidden writes happen only if this bool argument is true; -1: always.
  int hidden_writes_if = -1;
  // Not an op of the program: profiler marks and the like.
  bool ignore = false;
};

OperatorTraits operator_traits(const OperatorInfo& op);

}  // namespace sherlorch
