// For the property test of the element maps: asks the map of the operator call that was recorded last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sherlorch {

// The elements of output `output` that may depend on these elements of input `input`; nothing if there is no such call.
std::optional<std::vector<std::int64_t>> last_relation(std::size_t output, std::size_t input,
                                                       const std::vector<std::int64_t>& elements);
// "aten::add.Tensor"; "" if no call was recorded.
std::string last_operator();

}  // namespace sherlorch
