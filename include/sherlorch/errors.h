// Everything that the public functions throw, beside what the standard library does. what() is one sentence that says
// what failed, why, and what to do about it.
#pragma once

#include <stdexcept>

#include "sherlorch/export.h"

namespace sherlorch {

// A diagnosis was asked for of a tensor that the tracker never saw written or read, or that cannot be read.
class SHERLORCH_API UntrackedTensorError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An index does not name an element of the tensor.
class SHERLORCH_API IndexError : public std::out_of_range {
 public:
  using std::out_of_range::out_of_range;
};

// A report could not be read or written.
class SHERLORCH_API ReportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sherlorch
