// What is known of an operator: from its schema (filled in by the adapter) and from the tables in core/record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sherlorch {

struct ArgumentInfo {
  std::string name;
  bool is_tensor = false;  // Tensor, Tensor?, Tensor[] or Tensor?[]
  bool is_list = false;
  bool is_written = false;  // (a!): the op writes into it
};

struct OperatorInfo {
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor"; may be empty
  std::vector<ArgumentInfo> arguments;
  std::vector<bool> return_aliases;  // a return value with an alias annotation (a view, or a written argument)

  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
  // "log_" of "aten::log_"
  std::string_view short_name() const {
    std::string_view text = name;
    auto colon = text.rfind(':');
    return colon == std::string_view::npos ? text : text.substr(colon + 1);
  }
};

}  // namespace sherlorch
