// The Python type sherlorch._native.Tracker, made by hand. Some programs make a tracker for every step, and by then its
// code is in no cache of the processor: what a binding library does for a call costs several times what we do in it.
#pragma once

#include <pybind11/pybind11.h>

#include "bindings/native_tracker.h"

namespace sherlorch {

// Makes the type, with what making, starting and stopping a tracker take. All else is given to it with `is_method`.
// REQUIRES: called once. Throws py::error_already_set.
py::object make_tracker_type();

// A tracker as an argument: `[](TrackerRef self) { self->window() ... }`. Anything else is refused with a TypeError.
struct TrackerRef {
  NativeTracker* tracker = nullptr;
  NativeTracker* operator->() const noexcept { return tracker; }
};

// Null if it is none.
NativeTracker* tracker_in(PyObject* object) noexcept;

}  // namespace sherlorch

namespace pybind11::detail {

template <>
struct type_caster<sherlorch::TrackerRef> {
  PYBIND11_TYPE_CASTER(sherlorch::TrackerRef, const_name("Tracker"));
  bool load(handle source, bool) noexcept { return (value.tracker = sherlorch::tracker_in(source.ptr())) != nullptr; }
};

}  // namespace pybind11::detail
