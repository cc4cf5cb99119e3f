// Everything that the recorder writes and the diagnosis reads.
#pragma once

#include <mutex>

#include "core/graph/flight_recorder.h"
#include "core/graph/op_store.h"
#include "core/graph/shadow.h"
#include "core/graph/tables.h"

namespace sherlorch {

struct Graph {
  explicit Graph(const StorageGuardOps& guards, std::size_t flight_slots = FlightRecorder::kDefaultCapacity)
      : flight(flight_slots), shadow(&store, guards) {}

  FlightRecorder flight;  // its own synchronization
  Tables tables;          // their own locks
  std::mutex mutex;       // guards what follows; taken before the tables' locks, never after, and never while scanning
  OpStore store;
  Shadow shadow;
};

}  // namespace sherlorch
