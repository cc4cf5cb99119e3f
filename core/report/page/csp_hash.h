// The source expression by which a content security policy admits one inline script or style.
#pragma once

#include <string>
#include <string_view>

namespace sherlorch {

// "'sha256-<base64>'" of exactly this text.
std::string csp_hash(std::string_view text);

}  // namespace sherlorch
