// What reading or writing a report throws: one sentence that says what failed, why, and what to do about it.
#pragma once

#include <stdexcept>

namespace sherlorch {

class ReportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sherlorch
