// One op call as the adapter hands it to the recorder: plain values on the calling thread's scratch space, valid only
// during Recorder::record(). Nothing in it owns anything.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "core/base/ids.h"
#include "core/graph/flight_recorder.h"
#include "core/operators/traits.h"

namespace sherlorch {

struct CallTensor {
  StorageKey storage = 0;
  void* handle = nullptr;        // the adapter's: from which it makes a storage guard
  const void* data = nullptr;    // element 0; null if there are no bytes to read here
  const void* before = nullptr;  // element 0 of a copy from before the op, laid out alike; null: none was kept
  std::int64_t offset = 0;       // bytes from the start of the storage to element 0
  const std::int64_t* sizes = nullptr;
  const std::int64_t* strides = nullptr;  // elements
  std::int64_t numel = 0;
  std::uint32_t item_size = 0;
  std::uint16_t arg = 0;  // schema argument (written arguments too), or index of the return value
  std::uint16_t list_index = 0;
  std::uint8_t dims = 0;
  DType dtype = DType::kOther;
  std::uint8_t scalar_type = 0;
  TensorRole role = TensorRole::kRead;
  bool contiguous = false;     // row-major without gaps
  bool whole_storage = false;  // its elements are all of the storage's bytes
  bool is_parameter = false;
  bool fresh_return = false;  // an output that is a return value, not a written argument
  bool foreign = false;       // memory that torch has not allocated (from_numpy); set for the outputs of literals only

  // Where its content as an operand can be read.
  const void* readable() const noexcept { return before != nullptr ? before : data; }

  // Filled in by the recorder.
  bool nonfinite = false;
  float largest = 0;
};

struct CallScalar {
  enum class Kind : std::uint8_t { kNone, kInt, kDouble, kBool, kIntList };
  std::uint16_t arg = 0;
  Kind kind = Kind::kNone;
  std::uint8_t count = 0;  // kIntList: how many of ints are set (longer lists are cut to kMaxInts)
  double number = 0;       // kDouble
  static constexpr int kMaxInts = 6;
  std::int64_t ints[kMaxInts] = {};  // kInt and kBool: ints[0]
};

struct OpCall {
  OperatorId op = 0;
  const OperatorTraits* traits = nullptr;
  SiteId site = 0;
  ModuleId module = 0;
  ThreadId thread = 0;
  Phase phase = Phase::kForward;
  std::uint64_t sequence = 0;        // autograd's next sequence number on this thread, before the op
  std::uint64_t sequence_after = 0;  // and after it
  bool in_node = false;              // runs inside an autograd node of the backward pass, and is that node's own work
  bool engine_work = false;          // runs in the engine between nodes
  std::uint64_t node_sequence = 0;   // in_node or engine_work
  ThreadId node_thread = 0;          // thread of the node's forward op; 0 unknown
  const char* node_name = nullptr;   // "SqrtBackward0"
  TensorKey gradient_of;             // the parameter into whose gradient it puts its output
  bool has_nonfinite_scalar = false;
  bool nested = false;  // inside another op that will be recorded
  std::span<CallTensor> inputs;
  std::span<CallTensor> outputs;  // written arguments, then return values (fresh ones and views), then hidden writes
  std::span<CallTensor> hidden_inputs;  // read by ops nested inside it, and not among its inputs
  std::span<const CallScalar> scalars;
};

}  // namespace sherlorch
