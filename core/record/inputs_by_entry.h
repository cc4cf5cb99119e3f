// Which inputs of an op an output of a list can depend on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/graph/op_record.h"
#include "core/graph/operator_info.h"

namespace sherlorch {

// In an op over lists entry k meets entry k alone, and such an op may have thousands of them: looking at every pair
// would take minutes. For other ops: all inputs.
class InputsByEntry {
 public:
  enum class Which : std::uint8_t { kAll, kBad };

  InputsByEntry(const OperatorInfo& op, const OpRecord& record, Which which) {
    const bool by_entry = op.short_name().starts_with("_foreach_");
    for (std::size_t i = 0; i < record.inputs.size(); ++i) {
      const InputRecord& input = record.inputs[i];
      if (which == Which::kBad && input.bad.empty()) continue;
      const bool entry =
          by_entry && !input.scalar && input.facts.arg < op.arguments.size() && op.arguments[input.facts.arg].is_list;
      (entry ? entries_[input.facts.list_index] : all_).push_back(i);
    }
    for (auto& [index, inputs] : entries_) inputs.insert(inputs.end(), all_.begin(), all_.end());
  }

  // Indices of the record's inputs, for its outputs with this list index.
  const std::vector<std::size_t>& of(std::uint16_t list_index) const {
    const auto found = entries_.find(list_index);
    return found == entries_.end() ? all_ : found->second;
  }

 private:
  std::unordered_map<std::uint16_t, std::vector<std::size_t>> entries_;
  std::vector<std::size_t> all_;  // the inputs that every output meets
};

}  // namespace sherlorch
