// What is open on the calling thread: ops, autograd nodes and other containers, innermost last.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "adapter/frontend.h"
#include "adapter/operator_cache.h"
#include "adapter/tensor_facts.h"
#include "core/record/op_call.h"

namespace sherlorch {

enum class OpenKind : std::uint8_t {
  kOp,           // an operator whose tensors have bytes: it will be recorded, what is nested in it belongs to it
  kTransparent,  // an operator on wrappers (vmap, wrapper subclasses): an operator inside it has the bytes
  kContainer,    // no operator: a custom Function, a compiled region
  kNode,         // an autograd node of the backward pass
  kEngine,       // the engine around a node: hooks, fan-out additions, undone broadcasts
};

struct OpenTensor {
  const c10::TensorImpl* impl = nullptr;  // alive until the op's end callback, by torch's own contract
  std::uint16_t arg = 0;
  std::uint16_t list_index = 0;
};

struct Open {
  const at::RecordFunction* record = nullptr;  // identity, to pair start and end
  OpenKind kind = OpenKind::kOp;
  const CachedOperator* op = nullptr;
  SiteCapture site;
  std::uint64_t sequence = 0;   // kOp: autograd's next number before the op. kNode, kEngine: the node's number
  ThreadId node_thread = 0;     // kNode, kEngine: thread of the forward op
  int container = -1;           // index of the innermost enclosing kNode or kEngine; -1: none
  // Where this op's part of the arenas begins.
  std::uint32_t inputs = 0;
  std::uint32_t scalars = 0;
  std::uint32_t hidden = 0;
  std::uint32_t written = 0;
  bool nonfinite_scalar = false;
  bool recompute = false;
};

// Scratch space grows to what the program's deepest nesting needs, and then no op allocates.
struct ThreadState {
  explicit ThreadState(Tables* tables);

  OperatorCache operators;
  ThreadId thread = 0;
  int optimizer_depth = 0;  // open Optimizer.step() scopes
  bool busy = false;        // inside a callback of ours
  std::vector<Open> open;
  // Arenas, used as stacks in step with `open`.
  std::vector<OpenTensor> inputs;
  std::vector<CallScalar> scalars;
  std::vector<CallTensor> hidden;           // what nested ops read that has a shadow
  std::vector<std::vector<std::int64_t>> hidden_shapes;  // sizes and strides of these: their tensors may die early
  std::vector<StorageKey> written;          // storages that recorded ops inside this one wrote
  // For the call that is handed to the recorder.
  std::vector<CallTensor> call_inputs;
  std::vector<CallTensor> call_outputs;
  std::deque<FlatShape> flat;               // a deque: pointers into it stay good
  std::size_t flat_used = 0;

  FlatShape* next_flat() {
    if (flat_used == flat.size()) flat.emplace_back();
    return &flat[flat_used++];
  }
};

// The calling thread's state; made on first use.
ThreadState& thread_state();

}  // namespace sherlorch
