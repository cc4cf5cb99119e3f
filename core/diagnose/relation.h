// Which elements of an input can an element of an output depend on? Proved by property tests against torch itself
// (tests/python/test_element_maps.py): a relation may say too much, never too little.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/element_set.h"
#include "core/graph/op_record.h"
#include "core/graph/operator_info.h"

namespace sherlorch {

// A relation between the elements of one output (shape out) and of one input (shape in) of one op call.
class Relation {
 public:
  // Nothing of the input reaches the output (a shape-only operand, another list entry, ...).
  static Relation nothing();
  // Every output element may depend on every input element. Used for operators without a map.
  static Relation everything();
  // Same shape, element k depends on element k.
  static Relation identity();
  // source[d] says where the coordinate of input dimension d comes from: k >= 0 is output coordinate k (clipped to 0 where
  // the input's size is 1, i.e. broadcast), kAny is the whole dimension.
  static constexpr int kAny = -1;
  static Relation box(std::vector<int> source);
  // Output element k depends on exactly the input element indices[k] (-1: on none). One entry an output element.
  static Relation function(std::vector<std::int64_t> indices);

  bool is_everything() const noexcept { return kind_ == Kind::kEverything; }
  bool is_nothing() const noexcept { return kind_ == Kind::kNothing; }
  bool is_identity() const noexcept { return kind_ == Kind::kIdentity; }

  // The elements of `candidates` (input) on which at least one of `wanted` (output) may depend.
  ElementSet sources(const ElementSet& wanted, const ElementSet& candidates, const std::vector<std::int64_t>& out_sizes,
                     const std::vector<std::int64_t>& in_sizes) const;
  // The elements of `wanted` (output) that may depend on at least one of `given` (input).
  ElementSet reached(const ElementSet& wanted, const ElementSet& given, const std::vector<std::int64_t>& out_sizes,
                     const std::vector<std::int64_t>& in_sizes) const;

 private:
  enum class Kind : std::uint8_t { kNothing, kEverything, kIdentity, kBox, kFunction };
  Kind kind_ = Kind::kEverything;
  std::vector<int> source_;
  std::vector<std::int64_t> indices_;
};

// The relation between output `output` and input `input` of this op call. `mapped` tells whether the operator has a map
// (false: everything() was returned for want of one, which the report counts).
Relation relate(const OperatorInfo& op, const OpRecord& record, std::size_t output, std::size_t input, bool* mapped);

// True if the operator's map needs the values of this integer or bool argument (index, mask, ...), so that the recorder
// keeps them.
bool needs_integer_values(const OperatorInfo& op, std::size_t arg) noexcept;

}  // namespace sherlorch
