#include "sherlorch/diagnosis.h"

namespace sherlorch {

std::string SourceLocation::text() const {
  if (!known()) return "";
  return line > 0 ? file + ":" + std::to_string(line) : file;
}

const char* transition_name(Transition transition) noexcept {
  switch (transition) {
    case Transition::kNone:
      return "none";
    case Transition::kFiniteToInf:
      return "finite_to_inf";
    case Transition::kFiniteToNan:
      return "finite_to_nan";
    case Transition::kInfToNan:
      return "inf_to_nan";
    case Transition::kNanToInf:
      return "nan_to_inf";
    case Transition::kInfToInf:
      return "inf_to_inf";
  }
  return "none";
}

const char* origin_name(Origin origin) noexcept {
  switch (origin) {
    case Origin::kOp:
      return "op";
    case Origin::kInput:
      return "input";
    case Origin::kParameter:
      return "parameter";
    case Origin::kConstant:
      return "constant";
    case Origin::kUninitialized:
      return "uninitialized";
  }
  return "op";
}

const char* cause_name(Cause cause) noexcept {
  switch (cause) {
    case Cause::kUnknown:
      return "unknown";
    case Cause::kInvalidOperation:
      return "invalid operation";
    case Cause::kDivisionByZero:
      return "division by zero";
    case Cause::kOverflow:
      return "overflow";
    case Cause::kCastOverflow:
      return "cast overflow";
    case Cause::kDeliberateInfinity:
      return "deliberate infinity";
    case Cause::kBadOrigin:
      return "bad origin";
  }
  return "unknown";
}

}  // namespace sherlorch
