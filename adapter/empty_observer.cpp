#include "adapter/empty_observer.h"

#include <ATen/record_function.h>

#include <memory>

namespace sherlorch {

void switch_empty_observer(bool on) {
  static at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  if (handle != at::INVALID_CALLBACK_HANDLE) {
    on ? at::reenableCallback(handle) : at::disableCallback(handle);
  } else if (on) {
    handle = at::addGlobalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; },
            [](const at::RecordFunction&, at::ObserverContext*) {})
            .needsInputs(true)
            .needsOutputs(true)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
  }
}

}  // namespace sherlorch
