// From an open op to the call that the recorder takes.
#pragma once

#include "adapter/thread_state.h"

namespace sherlorch {

// At the start: remembers the tensors and numbers of the op (torch keeps them readable in the start callback only),
// finds out whether its tensors are wrappers, and looks at memory that the op is about to overwrite for the first time.
// `self` is the op's index in state.open.
void gather_inputs(ThreadState& state, const at::RecordFunction& record, std::size_t self);

// An op nested in the innermost open one: remembers what it reads that has a shadow, e.g. a cast that autocast kept.
void gather_hidden(ThreadState& state, const at::RecordFunction& record);

// At the end: hands the innermost open op to the recorder.
void finish_op(ThreadState& state, const at::RecordFunction& record);

}  // namespace sherlorch
