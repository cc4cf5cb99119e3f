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

// How the engine names its own record around a node.
inline constexpr char kEvaluate[] = "autograd::engine::evaluate_function: ";
inline constexpr std::size_t kEvaluateLength = sizeof(kEvaluate) - 1;

enum class OpenKind : std::uint8_t {
  kOp,           // an operator whose tensors have bytes: it will be recorded, what is nested in it belongs to it
  kTransparent,  // an operator on wrappers (vmap, wrapper subclasses): an operator inside it has the bytes
  kContainer,    // no operator: a custom Function, a compiled region
  kNode,         // an autograd node of the backward pass
  kEngine,       // the engine around a node: hooks, fan-out additions, undone broadcasts
};

// An input. It is alive until the op's end callback because its caller holds it, unless only the argument stack of a
// boxed call does: then the kernel lets it go, and what is to be known of it is taken at the start.
struct OpenTensor {
  const c10::TensorImpl* impl = nullptr;  // null: see `early`
  std::uint32_t early = 0;                // index into ThreadState::early
  std::uint16_t arg = 0;
  std::uint16_t list_index = 0;
  const void* kept = nullptr;  // element 0 of a copy of it from before the op
};

struct Open {
  const at::RecordFunction* record = nullptr;  // identity, to pair start and end
  OpenKind kind = OpenKind::kOp;
  const CachedOperator* op = nullptr;
  SiteCapture site;
  std::uint64_t sequence = 0;  // kOp: autograd's next number before the op. kNode, kEngine: the node's number
  ThreadId node_thread = 0;    // kNode, kEngine: thread of the forward op
  int container = -1;          // index of the innermost enclosing kNode or kEngine; -1: none
  // Where this op's part of the arenas begins.
  std::uint32_t inputs = 0;
  std::uint32_t scalars = 0;
  std::uint32_t hidden = 0;
  std::uint32_t early = 0;
  std::uint32_t written = 0;
  std::uint32_t kept = 0;
  bool nonfinite_scalar = false;
  bool recompute = false;
  bool silenced = false;     // records are off on this thread until it ends
  std::uint32_t nested = 0;  // records that began inside it
  bool autocast = false;     // began with autocast on: casts inside it are kept for later ops
};

// Tensors with copies of their sizes and strides, as a stack that keeps its memory.
class ShapedTensors {
 public:
  std::size_t size() const noexcept { return tensors_.size(); }
  CallTensor& operator[](std::size_t i) noexcept { return tensors_[i]; }
  const CallTensor& operator[](std::size_t i) const noexcept { return tensors_[i]; }
  std::span<CallTensor> from(std::size_t begin) noexcept { return std::span(tensors_).subspan(begin); }
  void push(const CallTensor& tensor) {
    const std::size_t slot = tensors_.size();
    if (shapes_.size() <= slot) shapes_.resize(slot + 1);
    std::vector<std::int64_t>& shape = shapes_[slot];
    shape.assign(tensor.sizes, tensor.sizes + tensor.dims);
    shape.insert(shape.end(), tensor.strides, tensor.strides + tensor.dims);
    tensors_.push_back(tensor);
    tensors_.back().sizes = shape.data();
    tensors_.back().strides = shape.data() + tensor.dims;
  }
  void cut(std::size_t size) { tensors_.resize(size); }

 private:
  std::vector<CallTensor> tensors_;
  std::deque<std::vector<std::int64_t>> shapes_;  // a deque: growing moves no shape
};

// Scratch space grows to what the program's deepest nesting needs, and then no op allocates.
struct ThreadState {
  explicit ThreadState(Tables* tables);

  OperatorCache operators;
  ThreadId thread = 0;
  int optimizer_depth = 0;  // open Optimizer.step() scopes
  bool busy = false;        // inside a callback of ours
  std::vector<Open> open;

  // Takes the innermost open record off, with its part of the arenas.
  void close() {
    const Open& done = open.back();
    inputs.resize(done.inputs);
    scalars.resize(done.scalars);
    hidden.cut(done.hidden);
    early.cut(done.early);
    kept_used = done.kept;
    open.pop_back();
    if (!open.empty()) return;
    written.clear();
    if (!kept.empty()) kept.clear();  // they can be as large as the tensors
  }
  // Puts one on, of which only the kind is set.
  Open& push(const at::RecordFunction& record, OpenKind kind) {
    const int container = open.empty() ? -1 : open.back().container;
    Open& next = open.emplace_back();  // filled in where it is: a copy would wait for what was just written
    next.record = &record;
    next.kind = kind;
    next.container = container;
    next.inputs = static_cast<std::uint32_t>(inputs.size());
    next.scalars = static_cast<std::uint32_t>(scalars.size());
    next.hidden = static_cast<std::uint32_t>(hidden.size());
    next.early = static_cast<std::uint32_t>(early.size());
    next.written = static_cast<std::uint32_t>(written.size());
    next.kept = static_cast<std::uint32_t>(kept_used);
    return next;
  }

  // Arenas, used as stacks in step with `open`.
  std::vector<OpenTensor> inputs;
  std::vector<CallScalar> scalars;
  ShapedTensors early;                 // inputs that may not live until the end of their op
  ShapedTensors hidden;                // what nested ops read that has a shadow; they may die early, too
  std::vector<StorageKey> written;     // storages that recorded ops inside this one wrote
  std::deque<std::vector<char>> kept;  // copies of operands that open ops overwrite (keep_operands)
  std::size_t kept_used = 0;
  // For the call that is handed to the recorder.
  std::vector<CallTensor> call_inputs;
  std::vector<CallTensor> call_outputs;
  std::deque<FlatShape> flat = std::deque<FlatShape>(1);  // a deque: pointers into it stay good
  std::size_t flat_used = 0;
  FlatShape* free_flat = &flat[0];

  // fill() for a tensor of the call: one that needs a shape of its own gets it from `flat`.
  TensorKind fill_for_call(const c10::TensorImpl* impl, CallTensor* tensor) {
    const TensorKind kind = fill(impl, free_flat, tensor);
    if (kind == TensorKind::kBytes && tensor->sizes == &free_flat->size) [[unlikely]] {
      if (++flat_used == flat.size()) flat.emplace_back();
      free_flat = &flat[flat_used];
    }
    return kind;
  }
  void free_flats() noexcept {
    if (flat_used == 0) return;
    flat_used = 0;
    free_flat = &flat[0];
  }
};

// The calling thread's state; made on first use.
ThreadState& thread_state();

}  // namespace sherlorch
