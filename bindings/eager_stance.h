// While traces want it, functions that torch.compile has compiled run eagerly: the compiler's stance is "force_eager".
//
// What torch.compiler.set_stance does is done here, because a program may make a tracker for every step: called from
// there, with its code in no cache of the processor, it took 20 us of the 270 of a small model's pass. All under the
// GIL, and process-wide, as the stance is: the first trace that wants it sets it, the last one puts the old one back.
#pragma once

#include <pybind11/pybind11.h>

namespace sherlorch {

// `prepare()` is called when the first trace begins: it calls set_dynamo() if dynamo is there, or sees to it that this
// happens as soon as it is. Until then the traces are only counted.
void set_eager_prepare(const pybind11::object& prepare);

// `globals`: of the module torch._dynamo.eval_frame, which keeps the stance. `eager`: the stance that is wanted.
// `active_callback()` gives what compiles frames just now, None or False for nothing. Sets the stance if a trace wants
// it already; called again it does nothing.
void set_dynamo(const pybind11::dict& globals, const pybind11::object& eager, const pybind11::object& active_callback);

// One trace more. False if compiled functions stay compiled, as the first trace was begun inside of one.
bool enter_eager() noexcept;
// One trace less. If the program has set another stance meanwhile, that one stays.
void leave_eager() noexcept;

}  // namespace sherlorch
