// Where in the user's Python source an op was called, read from CPython's own frames without the GIL.
#pragma once

#include <vector>

#include "adapter/frontend.h"

namespace sherlorch {

// Called with the GIL held when a module that nobody has named runs as the outermost one; null: never.
void set_root_namer(void (*namer)(void* module));

// The hooks for Frontend.
void capture_site(void* floor, const char* op_name, SiteCapture* capture) noexcept;
void* top_python_frame() noexcept;
void capture_python_stack(std::vector<SiteId>* stack);

}  // namespace sherlorch
