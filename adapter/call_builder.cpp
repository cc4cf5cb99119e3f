#include "adapter/call_builder.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/ivalue.h>
#include <c10/core/GradMode.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "adapter/session.h"
#include "core/record/bad_op.h"

namespace sherlorch {

namespace {

// Calls f(impl, list_index) for each defined tensor in the value.
template <typename F>
void for_tensors(const c10::IValue& value, F&& f) {
  if (value.isTensor()) {
    f(value.toTensor().unsafeGetTensorImpl(), 0);
  } else if (value.isList()) {
    std::uint16_t index = 0;
    for (const c10::IValue& element : value.toListRef()) {
      if (element.isTensor()) f(element.toTensor().unsafeGetTensorImpl(), index);
      ++index;
    }
  }
}

bool undefined(const c10::TensorImpl* impl) noexcept { return impl == c10::UndefinedTensorImpl::singleton(); }

// A Python number among the arguments, if it is one.
void add_scalar(ThreadState& state, Open& open, const c10::IValue& value, std::uint16_t arg) {
  const auto add = [&](CallScalar::Kind kind) -> CallScalar& {
    CallScalar& scalar = state.scalars.emplace_back();
    scalar.arg = arg;
    scalar.kind = kind;
    return scalar;
  };
  const auto add_double = [&](double number) {
    add(CallScalar::Kind::kDouble).number = number;
    open.nonfinite_scalar |= !std::isfinite(number);
  };
  if (value.isInt()) {
    add(CallScalar::Kind::kInt).ints[0] = value.toInt();
  } else if (value.isDouble()) {
    add_double(value.toDouble());
  } else if (value.isBool()) {
    add(CallScalar::Kind::kBool).ints[0] = value.toBool() ? 1 : 0;
  } else if (value.isIntList()) {
    CallScalar& scalar = add(CallScalar::Kind::kIntList);
    for (const c10::IValue& element : value.toListRef()) {
      if (scalar.count == CallScalar::kMaxInts) break;
      scalar.ints[scalar.count++] = element.toInt();
    }
  } else if (value.isDoubleList()) {  // _foreach_*.ScalarList: the first bad one stands for all
    for (const c10::IValue& element : value.toListRef()) {
      if (std::isfinite(element.toDouble())) continue;
      add_double(element.toDouble());
      break;
    }
  }
}

void note_kind(TensorKind kind) noexcept {
  Recorder& recorder = Session::get().recorder();
  switch (kind) {
    case TensorKind::kDevice:
      return recorder.count_blind(Blind::kDevice);
    case TensorKind::kOpaque:
      return recorder.count_blind(Blind::kNoStorage);
    case TensorKind::kNoValues:
      return recorder.count_blind(Blind::kNoValues);
    case TensorKind::kQuantized:
      return recorder.count_blind(Blind::kQuantized);
    default:
      return;
  }
}

// A Python number that torch has wrapped into a tensor (x + 1.5).
void add_wrapped_number(ThreadState& state, Open& open, const c10::TensorImpl* impl, std::uint16_t arg) {
  CallTensor tensor;
  FlatShape flat;
  if (fill(impl, &flat, &tensor) != TensorKind::kBytes || tensor.data == nullptr) return;
  CallScalar scalar;
  scalar.arg = arg;
  scalar.kind = CallScalar::Kind::kDouble;
  scalar.number = read_number(tensor.data, tensor.dtype, tensor.scalar_type);
  open.nonfinite_scalar |= !std::isfinite(scalar.number);
  state.scalars.push_back(scalar);
}

// Adds a tensor, and its forward-mode tangent, to one side of the call.
void add_tensor(ThreadState& state, std::vector<CallTensor>* side, const c10::TensorImpl* impl, TensorRole role,
                std::uint16_t arg, std::uint16_t list_index, bool fresh_return) {
  auto add = [&](const c10::TensorImpl* each) {
    CallTensor& tensor = side->emplace_back();
    const TensorKind kind = state.fill_for_call(each, &tensor);
    if (kind != TensorKind::kBytes) {
      note_kind(kind);
      side->pop_back();
      return;
    }
    tensor.role = role;
    tensor.arg = arg;
    tensor.list_index = list_index;
    tensor.fresh_return = fresh_return;
  };
  add(impl);
  if (const c10::TensorImpl* tangent = tangent_of(impl)) [[unlikely]]
    add(tangent);
}

bool hidden_writes_happen(const ThreadState& state, const Open& open) {
  const OperatorTraits& traits = open.op->traits;
  if (traits.hidden_writes == 0) return false;
  if (traits.hidden_writes_if < 0) return true;
  for (std::size_t i = open.scalars; i < state.scalars.size(); ++i) {
    if (state.scalars[i].arg == traits.hidden_writes_if) return state.scalars[i].ints[0] != 0;
  }
  return false;
}

bool is_written_return(const CachedOperator& op, std::size_t r) noexcept {
  return r < 64 && (op.written_returns >> r & 1) != 0;
}

// Arguments that the op writes by its schema.
bool is_written(const Open& open, std::uint16_t arg) {
  for (const std::uint8_t written : open.op->written_args) {
    if (written == arg) return true;
  }
  return false;
}

// True if another argument lies in the storage of this written one (x[...] = x).
bool reads_storage(const ThreadState& state, const Open& open, const CallTensor& written) {
  for (std::size_t i = open.inputs; i < state.inputs.size(); ++i) {
    const OpenTensor& input = state.inputs[i];
    if (input.arg == written.arg) continue;
    const StorageKey storage =
        input.impl == nullptr ? state.early[input.early].storage
                              : (input.impl->has_storage()
                                     ? reinterpret_cast<StorageKey>(input.impl->unsafe_storage().unsafeGetStorageImpl())
                                     : 0);
    if (storage == written.storage) return true;
  }
  return false;
}

// Copies the bytes of a tensor, gaps included, so that its own strides fit the copy. Null if there is nothing to copy.
const void* keep(ThreadState& state, const CallTensor& tensor) {
  if (tensor.data == nullptr || tensor.numel == 0 || !can_be_nonfinite(tensor.dtype)) return nullptr;
  const Geometry geometry = tensor_facts(tensor).geometry;
  const std::int64_t begin = geometry.begin_byte();
  const std::int64_t size = geometry.end_byte() - begin;
  if (state.kept_used == state.kept.size()) state.kept.emplace_back();
  std::vector<char>& copy = state.kept[state.kept_used++];
  const char* first = static_cast<const char*>(tensor.data) - (tensor.offset - begin);
  copy.assign(first, first + size);
  return copy.data() + (tensor.offset - begin);
}

Phase phase_of(const ThreadState& state, const Open& open) {
  if (open.recompute) return Phase::kRecompute;
  if (open.container >= 0) return Phase::kBackward;
  // The closure given to step() runs with gradients on, the optimizer's own arithmetic without.
  if (state.optimizer_depth > 0 && !c10::GradMode::is_enabled()) return Phase::kOptimizer;
  return Phase::kForward;
}

}  // namespace

void gather_inputs(ThreadState& state, const at::RecordFunction& record, std::size_t self) {
  c10::ArrayRef<const c10::IValue> values = record.inputs();
  Open& open = state.open[self];
  // callBoxed passes the whole stack: the arguments are the last ones.
  const std::size_t arguments = record.num_inputs() < values.size() ? record.num_inputs() : values.size();
  values = values.slice(values.size() - arguments);
  bool wrapper = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const c10::IValue& value = values[i];
    const auto arg = static_cast<std::uint16_t>(i);
    if (value.isTensor() || value.isList()) {
      const std::size_t before = state.inputs.size();
      for_tensors(value, [&](const c10::TensorImpl* impl, std::uint16_t index) {
        if (undefined(impl)) return;
        if (impl->is_wrapped_number()) {
          add_wrapped_number(state, open, impl, arg);
          return;
        }
        wrapper |= is_wrapper(impl);
        OpenTensor& input = state.inputs.emplace_back();
        input.impl = impl;
        input.arg = arg;
        input.list_index = index;
        if (c10::raw::intrusive_ptr::use_count(const_cast<c10::TensorImpl*>(impl)) ==
            1) {  // only the stack of a boxed call holds it
          CallTensor tensor;
          FlatShape flat;
          if (fill(impl, &flat, &tensor) != TensorKind::kBytes) {
            state.inputs.pop_back();
            return;
          }
          tensor.arg = arg;
          tensor.list_index = index;
          // Its memory is there at the end only if another tensor shares it (a temporary view of a live base).
          if (impl->unsafe_storage().unsafeGetStorageImpl() != tensor.handle ||
              c10::raw::intrusive_ptr::use_count(static_cast<c10::StorageImpl*>(tensor.handle)) < 2) {
            tensor.data = nullptr;
          }
          input.impl = nullptr;
          input.early = static_cast<std::uint32_t>(state.early.size());
          state.early.push(tensor);
        }
      });
      if (state.inputs.size() == before && value.isList()) add_scalar(state, open, value, arg);
    } else {
      add_scalar(state, open, value, arg);
    }
  }
  if (wrapper) {
    open.kind = OpenKind::kTransparent;
    return;
  }
  if (open.op->written_args.empty() || open.op->traits.metadata_only || open.op->traits.uninitialized) return;
  // Memory that the op reads and overwrites: what it holds must be seen now if nothing is known of it yet.
  Recorder& recorder = Session::get().recorder();
  const bool keeps = Session::get().keeps_operands();
  for (std::size_t i = open.inputs; i < state.inputs.size(); ++i) {
    OpenTensor& input = state.inputs[i];
    if (input.impl == nullptr || !is_written(open, input.arg)) continue;
    CallTensor tensor;
    FlatShape flat;
    tensor.arg = input.arg;
    if (fill(input.impl, &flat, &tensor) != TensorKind::kBytes) continue;
    if (keeps) input.kept = keep(state, tensor);
    if (recorder.known(tensor.storage)) continue;
    if ((open.op->traits.overwrites || open.op->traits.only_out) && !reads_storage(state, open, tensor)) continue;
    tensor.list_index = input.list_index;
    tensor.is_parameter = is_leaf_that_requires_grad(input.impl);
    OpCall call;
    call.op = open.op->id;
    call.traits = &open.op->traits;
    call.thread = state.thread;
    recorder.before_write(tensor, call);
  }
}

void gather_hidden(ThreadState& state, const at::RecordFunction& record) {
  Recorder& recorder = Session::get().recorder();
  const Open& open = state.open.back();
  for (const c10::IValue& value : record.inputs()) {
    for_tensors(value, [&](const c10::TensorImpl* impl, std::uint16_t) {
      CallTensor tensor;
      FlatShape flat;
      if (undefined(impl) || is_wrapper(impl) || fill(impl, &flat, &tensor) != TensorKind::kBytes) return;
      if (!recorder.maybe_shadowed(tensor.storage) || !can_be_nonfinite(tensor.dtype)) return;
      for (std::size_t i = open.inputs; i < state.inputs.size(); ++i) {
        const c10::TensorImpl* input = state.inputs[i].impl;
        if (input == nullptr) continue;
        if (input == impl || (input->has_storage() && input->unsafe_storage().unsafeGetStorageImpl() == tensor.handle))
          return;
      }
      for (std::size_t i = open.hidden; i < state.hidden.size(); ++i) {
        if (state.hidden[i].storage == tensor.storage) return;
      }
      tensor.arg = 255;  // no argument of the op itself
      state.hidden.push(tensor);
    });
  }
}

void finish_op(ThreadState& state, const at::RecordFunction& record) {
  const std::size_t self = state.open.size() - 1;
  const Open& open = state.open[self];
  const CachedOperator& op = *open.op;
  state.call_inputs.clear();
  state.call_outputs.clear();
  state.free_flats();
  const std::vector<c10::IValue>& outputs = record.outputs();
  const std::size_t returns = std::min(outputs.size(), op.returns);

  for (std::size_t i = open.inputs; i < state.inputs.size(); ++i) {
    const OpenTensor& input = state.inputs[i];
    if (input.impl == nullptr) {
      state.call_inputs.push_back(state.early[input.early]);
      continue;
    }
    const std::size_t at = state.call_inputs.size();
    add_tensor(state, &state.call_inputs, input.impl, TensorRole::kRead, input.arg, input.list_index, false);
    if (input.kept != nullptr && at < state.call_inputs.size()) state.call_inputs[at].before = input.kept;
  }
  const TensorRole written_role = op.traits.uninitialized   ? TensorRole::kUninitialized
                                  : op.traits.metadata_only ? TensorRole::kAlias
                                                            : TensorRole::kWrite;
  if (!op.written_args.empty()) {
    for (std::size_t i = open.inputs; i < state.inputs.size(); ++i) {
      const OpenTensor& input = state.inputs[i];
      if (!is_written(open, input.arg)) continue;
      if (input.impl != nullptr) {
        add_tensor(state, &state.call_outputs, input.impl, written_role, input.arg, input.list_index, false);
        continue;
      }
      // Gone from the arguments, but an in-place op gives it back.
      CallTensor written = state.early[input.early];
      written.role = written_role;
      for (std::size_t r = 0; r < returns && written.data == nullptr; ++r) {
        if (!is_written_return(op, r)) continue;
        for_tensors(outputs[outputs.size() - returns + r], [&](const c10::TensorImpl* impl, std::uint16_t) {
          CallTensor returned;
          if (undefined(impl) || state.fill_for_call(impl, &returned) != TensorKind::kBytes) return;
          if (returned.storage != written.storage || written.data != nullptr) return;
          returned.role = written_role;
          returned.arg = written.arg;
          returned.list_index = written.list_index;
          written = returned;
        });
      }
      state.call_outputs.push_back(written);
    }
  }
  const std::size_t written_arguments = state.call_outputs.size();
  for (std::size_t r = 0; r < returns; ++r) {
    if (is_written_return(op, r)) continue;  // the written argument again
    const c10::IValue& value = outputs[outputs.size() - returns + r];
    for_tensors(value, [&](const c10::TensorImpl* impl, std::uint16_t index) {
      if (undefined(impl)) return;
      add_tensor(state, &state.call_outputs, impl,
                 op.traits.uninitialized ? TensorRole::kUninitialized : TensorRole::kWrite,
                 static_cast<std::uint16_t>(r), index, true);
    });
  }
  if (op.traits.literal) {
    for (CallTensor& output : state.call_outputs) {
      output.foreign = !static_cast<c10::StorageImpl*>(output.handle)->resizable();
    }
  }
  // A return value in memory that came in is a view of it, whatever the schema says (to, contiguous, dropout in eval).
  for (std::size_t o = written_arguments; o < state.call_outputs.size(); ++o) {
    CallTensor& output = state.call_outputs[o];
    for (const CallTensor& input : state.call_inputs) {
      if (input.storage == output.storage) output.role = TensorRole::kAlias;
    }
  }
  // Arguments that it changes in passing, which its schema does not tell (batch_norm's running statistics).
  if (hidden_writes_happen(state, open)) {
    for (std::size_t i = open.inputs; i < state.inputs.size(); ++i) {
      const OpenTensor& input = state.inputs[i];
      if (input.impl == nullptr || input.arg >= 32 || (op.traits.hidden_writes >> input.arg & 1) == 0) continue;
      add_tensor(state, &state.call_outputs, input.impl, TensorRole::kWrite, input.arg, input.list_index, false);
    }
  }
  // Python code inside the op (a dispatch mode, a custom op's body) ran ops that were recorded: what these wrote is
  // theirs.
  if (state.written.size() > open.written) {
    std::erase_if(state.call_outputs, [&](const CallTensor& output) {
      return output.role != TensorRole::kAlias && std::find(state.written.begin() + open.written, state.written.end(),
                                                            output.storage) != state.written.end();
    });
  }

  OpCall call;
  call.op = op.id;
  call.traits = &op.traits;
  call.site = open.site.site;
  call.module = open.site.module;
  call.thread = state.thread;
  call.phase = phase_of(state, open);
  call.sequence = open.sequence;
  call.sequence_after = at::sequence_number::peek();
  call.has_nonfinite_scalar = open.nonfinite_scalar;
  call.nested = self > 0 && std::any_of(state.open.begin(), state.open.begin() + static_cast<std::ptrdiff_t>(self),
                                        [](const Open& around) { return around.kind == OpenKind::kOp; });
  if (open.container >= 0 && call.phase == Phase::kBackward) {
    const Open& container = state.open[static_cast<std::size_t>(open.container)];
    // Python code of the user's inside it (a hook, a custom Function's backward) has a line of its own.
    const bool own_line = open.site.user_above_floor;
    call.in_node = container.kind == OpenKind::kNode && !own_line;
    call.engine_work = container.kind == OpenKind::kEngine && !own_line;
    call.node_sequence = container.sequence;
    call.node_thread = container.node_thread;
    call.node_name = container.record->name();
    if (container.kind == OpenKind::kEngine) call.node_name += kEvaluateLength;
    // The node's own work, and not that of Python code which it calls (a hook).
    if (call.in_node && open.site.top_frame == container.site.top_frame &&
        std::strcmp(call.node_name, "torch::autograd::AccumulateGrad") == 0) {
      call.gradient_of = accumulated_parameter();
    }
  }
  call.inputs = state.call_inputs;
  call.outputs = state.call_outputs;
  call.hidden_inputs = state.hidden.from(open.hidden);
  call.scalars = std::span<const CallScalar>(state.scalars).subspan(open.scalars);
  state.busy = true;
  Session::get().recorder().record(call);
  state.busy = false;
  if (self > 0) {
    for (const CallTensor& output : state.call_outputs) {
      if (output.role != TensorRole::kAlias) state.written.push_back(output.storage);
    }
  }
}

}  // namespace sherlorch
