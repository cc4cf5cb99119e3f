#include "adapter/observer.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "adapter/call_builder.h"
#include "adapter/frontend.h"
#include "adapter/session.h"
#include "adapter/thread_state.h"

#ifndef NDEBUG
#error \
    "Build the adapter with NDEBUG: at::RecordFunction::inputs() asserts on a member that release builds of torch never set."
#endif

namespace sherlorch {

namespace {

// Names of threads by torch's logical id. Cold but for the first op of a thread.
struct ThreadNames {
  std::mutex mutex;
  std::map<ThreadId, std::string> names;
};
ThreadNames& thread_names() {
  static auto* names = new ThreadNames();
  return *names;
}

void name_thread(ThreadId id) {
  char name[32] = {};
  std::string given;
  const bool main_thread = getpid() == static_cast<pid_t>(syscall(SYS_gettid));
  if (!main_thread) pthread_getname_np(pthread_self(), name, sizeof(name));
  if (!main_thread && frontend().thread_name != nullptr) given = frontend().thread_name();
  std::lock_guard lock(thread_names().mutex);
  std::string& entry = thread_names().names[id];
  if (main_thread) return;
  entry = !given.empty() ? given : std::to_string(id) + (name[0] != 0 ? " (" + std::string(name) + ")" : "");
}

bool is_optimizer_step(const char* name) noexcept { return std::strncmp(name, "Optimizer.step#", 15) == 0; }

void* top_frame() noexcept { return frontend().top_frame != nullptr ? frontend().top_frame() : nullptr; }

void push_container(ThreadState& state, const at::RecordFunction& record, OpenKind kind) {
  Open& open = state.push(record, kind);
  open.site.top_frame = top_frame();
  if (kind == OpenKind::kNode || kind == OpenKind::kEngine) {
    open.container = static_cast<int>(state.open.size()) - 1;
    open.sequence = static_cast<std::uint64_t>(record.seqNr());
    // AccumulateGrad, which no op made, has the largest number.
    if (record.seqNr() >= 0) {
      open.node_thread = static_cast<ThreadId>(record.forwardThreadId());
      if (open.node_thread == 0) open.node_thread = state.thread;
    }
  }
}

// An op in which many records nest (linear has ten) costs more by torch's own bookkeeping of these than by ours of the
// op, and nothing in them is needed while no storage has a shadow. So records are switched off until it ends, where
// that pays: switching costs about as much as two records. Not where something else than torch's own kernels could run
// inside, or somebody else listens.
bool may_silence_nested(const Open& open) {
  constexpr std::uint32_t kWorthIt = 4 * 16;  // measured: below four nested records the switching costs more
  constexpr std::uint32_t kLookAgain = 64;    // every so many calls the nested records are counted again
  const CachedOperator& op = *open.op;
  if (op.nested.load(std::memory_order_relaxed) < kWorthIt || !op.is_aten || open.kind != OpenKind::kOp) return false;
  if (op.calls.fetch_add(1, std::memory_order_relaxed) % kLookAgain == 0) return false;
  if (open.autocast || Session::get().recorder().has_shadows()) return false;
  if (c10::impl::TorchDispatchModeTLS::any_modes_set() || !at::SavedTensorDefaultHooks::get_tls_state().stack.empty()) {
    return false;
  }
  const std::optional<at::StepCallbacks> listeners = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
  return listeners.has_value() && listeners->callbacks_.size() == 1;
}

// An operator begins that is not part of another one.
void push_op(ThreadState& state, const at::RecordFunction& record, const CachedOperator* op) {
  const std::size_t self = state.open.size();
  Open& open = state.push(record, OpenKind::kOp);
  // The op around it, if any; torch puts a container ("PythonSubclass") around handlers written in Python.
  std::size_t around = self;
  while (around > 0 && state.open[around - 1].kind == OpenKind::kContainer) --around;
  const Open* outer = around == 0 ? nullptr : &state.open[around - 1];
  open.op = op;
  void* floor = open.container >= 0 ? state.open[static_cast<std::size_t>(open.container)].site.top_frame : nullptr;
  if (frontend().capture != nullptr) frontend().capture(floor, op->short_name, &open.site);
  // The dispatcher has asked for it where nodes can be made by its own doing.
  open.sequence = record.seqNr() >= 0 ? static_cast<std::uint64_t>(record.seqNr()) : at::sequence_number::peek();
  if (outer != nullptr && outer->op != nullptr) {
    if (outer->op == op || open.site.top_frame == outer->site.top_frame) {
      // A handler (__torch_dispatch__) that passes the call on, or an op inside a wrapper's op: the user's line is that
      // of the outer one.
      open.site.site = outer->site.site;
      open.site.module = outer->site.module;
      open.site.user_above_floor = outer->site.user_above_floor;
    }
    // Where grad() differentiates, the autograd node was made for the wrapper, before the op inside began.
    if (outer->kind == OpenKind::kTransparent) open.sequence = outer->sequence;
  }
  open.recompute = open.container >= 0 && open.site.checkpoint && c10::GradMode::is_enabled();
  // As at::autocast::is_autocast_enabled(kCPU), without its switch over devices.
  open.autocast = !c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::AutocastCPU);
  gather_inputs(state, record, self);
  if (may_silence_nested(state.open[self])) {
    state.open[self].silenced = true;
    at::enableRecordFunction(false);
  }
}

// An operator begins inside another one that is being recorded.
void nested_op(ThreadState& state, const at::RecordFunction& record) {
  ++state.open.back().nested;
  Recorder& recorder = Session::get().recorder();
  if (recorder.has_shadows()) gather_hidden(state, record);
}

void start(const at::RecordFunction& record) {
  ThreadState& state = thread_state();
  if (state.busy) return;
  switch (record.scope()) {
    case at::RecordScope::USER_SCOPE:
      if (is_optimizer_step(record.name())) ++state.optimizer_depth;
      return;
    case at::RecordScope::BACKWARD_FUNCTION:
      push_container(state, record, OpenKind::kNode);
      return;
    case at::RecordScope::FUNCTION:
      break;
    default:
      return;
  }
  Open* outer = state.open.empty() ? nullptr : &state.open.back();
  const bool inside_op = outer != nullptr && outer->kind == OpenKind::kOp;
  if (inside_op && (frontend().top_frame == nullptr || frontend().top_frame() == outer->site.top_frame)) {
    // Under autocast the casts inside an op outlive it: they are kept for later ops, so they are ops of their own.
    if (outer->autocast) {
      const CachedOperator* op = state.operators.find(record);
      if (op != nullptr && op->traits.cast && op != outer->op) {
        push_op(state, record, op);
        return;
      }
    }
    nested_op(state, record);
    return;
  }
  const CachedOperator* op = state.operators.find(record);
  if (op == nullptr) {
    const bool engine = std::strncmp(record.name(), kEvaluate, kEvaluateLength) == 0;
    push_container(state, record, engine ? OpenKind::kEngine : OpenKind::kContainer);
    if (std::strncmp(record.name(), "CompiledFunction", 16) == 0)
      Session::get().recorder().count_blind(Blind::kCompiled);
    return;
  }
  if (!op->traits.ignore) push_op(state, record, op);
}

void end(const at::RecordFunction& record) {
  ThreadState& state = thread_state();
  if (state.busy) return;
  if (record.scope() == at::RecordScope::USER_SCOPE) {
    if (state.optimizer_depth > 0 && is_optimizer_step(record.name())) --state.optimizer_depth;
    return;
  }
  if (state.open.empty() || state.open.back().record != &record) return;
  const Open& done = state.open.back();
  if (done.silenced) {
    at::enableRecordFunction(true);
  } else if (done.kind == OpenKind::kOp) {
    std::atomic<std::uint32_t>& nested = done.op->nested;
    const std::uint32_t average = nested.load(std::memory_order_relaxed);
    if (average != 0 || done.nested != 0) {
      nested.store(average == 0 ? done.nested * 16 : (average * 7 + done.nested * 16) / 8, std::memory_order_relaxed);
    }
  }
  if (done.kind == OpenKind::kOp) finish_op(state, record);
  state.close();
}

// torch prints a warning and goes on when a callback throws; ours keep their troubles to themselves.
std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& record) {
  if (!Session::recording()) return nullptr;
  try {
    start(record);
  } catch (...) {
    Session::get().recorder().count_blind(Blind::kRecorderError);
  }
  return nullptr;
}

void on_end(const at::RecordFunction& record, at::ObserverContext*) {
  if (!Session::recording()) {
    // An op that began while recording was on must not stay open.
    ThreadState& state = thread_state();
    if (!state.open.empty() && state.open.back().record == &record) {
      if (state.open.back().silenced) at::enableRecordFunction(true);
      state.close();
    }
    return;
  }
  try {
    end(record);
  } catch (...) {
    Session::get().recorder().count_blind(Blind::kRecorderError);
  }
}

}  // namespace

ThreadState::ThreadState(Tables* tables) : operators(tables) {
  thread = static_cast<ThreadId>(at::RecordFunction::currentThreadId() & 0xffff);
  open.reserve(64);
  inputs.reserve(1024);
  scalars.reserve(256);
  call_inputs.reserve(256);
  call_outputs.reserve(256);
}

ThreadState& thread_state() {
  // The pointer is read on every op; initial-exec saves the call that a dynamically loaded library's thread-locals
  // cost.
  static thread_local ThreadState* state __attribute__((tls_model("initial-exec"))) = nullptr;
  if (state == nullptr) [[unlikely]] {
    static thread_local std::unique_ptr<ThreadState> owner;
    owner = std::make_unique<ThreadState>(&Session::get().recorder().graph().tables);
    state = owner.get();
    // Naming may run Python code, and with it ops that are nobody's.
    state->busy = true;
    try {
      name_thread(state->thread);
    } catch (...) {  // it goes without a name
    }
    state->busy = false;
  }
  return *state;
}

namespace {

// The callbacks that differ in their bodies only; `handle` is theirs for the life of the process.
void switch_callbacks(at::CallbackHandle* handle, at::RecordFunctionCallback::StartCallback start,
                      at::RecordFunctionCallback::EndCallback end, bool on) {
  if (*handle != at::INVALID_CALLBACK_HANDLE) {
    on ? at::reenableCallback(*handle) : at::disableCallback(*handle);
  } else if (on) {
    *handle = at::addGlobalCallback(
        at::RecordFunctionCallback(start, end)
            .needsInputs(true)
            .needsOutputs(true)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
  }
}

}  // namespace

void switch_observer(bool on) {
  static at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  switch_callbacks(&handle, on_start, on_end, on);
}

void switch_empty_observer(bool on) {
  static at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  switch_callbacks(
      &handle, [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; },
      [](const at::RecordFunction&, at::ObserverContext*) {}, on);
}

std::string thread_text(ThreadId thread) {
  std::lock_guard lock(thread_names().mutex);
  auto found = thread_names().names.find(thread);
  return found == thread_names().names.end() ? "" : found->second;
}

}  // namespace sherlorch
