// Who wrote a byte last, by the flight recorder.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "core/base/element_set.h"
#include "core/graph/flight_recorder.h"

namespace sherlorch {

struct LastWriter {
  OpSeq seq = 0;               // 0: the flight recorder holds none
  bool uninitialized = false;  // handed the byte out without writing it
  bool reinterpreted = false;  // wrote it as another dtype than is asked about
};

// A byte of a storage, and the type as which it is read.
struct ByteRead {
  StorageKey storage = 0;
  std::uint8_t tag = 0;  // see address_tag()
  DType dtype = DType::kOther;
  std::int64_t byte = 0;
};

// The newest op with begin <= seq < end that wrote the byte or handed it out, among those that `visible` (null: all)
// lets pass. A strided write of the same dtype is passed over, because it may have gone round the byte, and what it
// wrote was scanned. Cost: a walk back through the flight recorder to that op, milliseconds if there is none.
LastWriter find_last_writer(const FlightRecorder& flight, OpSeq begin, OpSeq end, const ByteRead& read,
                            const std::function<bool(OpSeq)>* visible = nullptr);

// Splits elements by who wrote them last, oldest writer first. `last_writer(i)` is asked about the first few elements
// only, and no further once nobody wrote one; the others count as the last one that was asked about.
std::vector<std::pair<LastWriter, ElementSet>> split_by_last_writer(
    const ElementSet& elements, const std::function<LastWriter(std::int64_t)>& last_writer);

}  // namespace sherlorch
