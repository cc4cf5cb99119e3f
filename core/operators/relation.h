// Which elements of an input can an element of an output depend on? Proved by property tests against torch itself
// (tests/python/test_element_maps.py): a relation may say too much, never too little.
//
// "Depends" means: a NaN or an infinity in that input element can change the value of that output element. Operands
// that an op multiplies by zero count (0 * Inf is NaN); what it never reads (the side of where() that was not chosen,
// memory that copy_ overwrites) does not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/element_set.h"
#include "core/graph/op_record.h"
#include "core/graph/operator_info.h"

namespace sherlorch {

namespace maps {
class Call;
}

// One dimension of an output tied to one dimension of an input: which coordinates go together.
//
//   kSame     c with c
//   kPoints   output coordinate c with input coordinate a[c]      (gather, flip, slice)
//   kScatter  input coordinate c with output coordinate a[c]      (scatter, index_add)
//   kWindow   output coordinate c with input [a[c], b[c])         (pooling, cumsum, cat); a and b must not decrease
//   kPairs    output coordinate a[k] with input coordinate b[k]   (whatever is many-to-many)
//
// In kPoints and kScatter kNone is "with none of them" and kAll "with each of them".
struct Link {
  enum class Kind : std::uint8_t { kSame, kPoints, kScatter, kWindow, kPairs };
  static constexpr std::int64_t kNone = -1;
  static constexpr std::int64_t kAll = -2;

  int out_dim = 0;
  int in_dim = 0;
  Kind kind = Kind::kSame;
  std::vector<std::int64_t> a;
  std::vector<std::int64_t> b;
};

// A relation between the elements of one output (shape out) and of one input (shape in) of one op call.
// A value; safe to share between threads while nobody changes it. identity(), nothing() and everything() allocate
// nothing.
class Relation {
 public:
  // Nothing of the input reaches the output (a shape-only operand, another list entry, ...).
  static Relation nothing();
  // Every output element may depend on every input element. Used for operators without a map.
  static Relation everything();
  // Element k depends on element k, by linear index: the shapes may differ (reshape), the number of elements not.
  static Relation identity();
  // source[d] says where the coordinate of input dimension d comes from: k >= 0 is output coordinate k (clipped to 0
  // where the input's size is 1, i.e. broadcast), kAny is the whole dimension.
  static constexpr int kAny = -1;
  static Relation box(std::vector<int> source);
  // Output element k depends on exactly the input element indices[k] (-1: on none). One entry an output element.
  static Relation function(std::vector<std::int64_t> indices);
  // Elements are related when their coordinates agree in every link; dimensions without a link are free. The views are
  // shapes of as many elements as the tensors have, in which the links' dimensions are counted; an empty one stands for
  // the single dimension of all elements.
  static Relation product(std::vector<Link> links, std::vector<std::int64_t> out_view,
                          std::vector<std::int64_t> in_view);

  // The same relation, but only the output elements in `only` depend on anything (the places that a mask left alone).
  Relation restrict_outputs(ElementSet only) &&;
  // The same relation, but only the input elements in `only` reach anything (the classes that a loss picks).
  Relation restrict_inputs(ElementSet only) &&;

  bool is_everything() const noexcept { return kind_ == Kind::kEverything && !restricted(); }
  bool is_nothing() const noexcept { return kind_ == Kind::kNothing; }
  bool is_identity() const noexcept { return kind_ == Kind::kIdentity && !restricted(); }

  // The elements of `candidates` (input) on which at least one of `wanted` (output) may depend.
  // Cost: linear in the number of runs where rows or whole ranges go together, else in the elements of the smaller
  // side. Where that would be more than some millions, the answer is `candidates`, marked coarse.
  ElementSet sources(const ElementSet& wanted, const ElementSet& candidates, std::span<const std::int64_t> out_sizes,
                     std::span<const std::int64_t> in_sizes) const;
  // The elements of `wanted` (output) that may depend on at least one of `given` (input). Cost as sources().
  ElementSet reached(const ElementSet& wanted, const ElementSet& given, std::span<const std::int64_t> out_sizes,
                     std::span<const std::int64_t> in_sizes) const;

 private:
  enum class Kind : std::uint8_t { kNothing, kEverything, kIdentity, kBox, kProduct };

  bool restricted() const noexcept { return outputs_restricted_ || inputs_restricted_; }
  // `given` on one side, answered in the elements of `candidates` on the other, without the restrictions.
  ElementSet across(bool to_input, const ElementSet& given, const ElementSet& candidates,
                    std::span<const std::int64_t> out_sizes, std::span<const std::int64_t> in_sizes) const;

  Kind kind_ = Kind::kEverything;
  bool outputs_restricted_ = false;
  bool inputs_restricted_ = false;
  std::vector<int> source_;             // kBox
  std::vector<Link> links_;             // kProduct
  std::vector<std::int64_t> out_view_;  // kProduct
  std::vector<std::int64_t> in_view_;   // kProduct
  ElementSet only_outputs_;
  ElementSet only_inputs_;
};

// The relation between output `output` and input `input` of this op call. `mapped` (may be null) tells whether the
// operator has a map (false: everything() was returned for want of one, which the report counts).
Relation relate(const OperatorInfo& op, const OpRecord& record, std::size_t output, std::size_t input, bool* mapped);

// An operator with its map looked up once, for who asks for many calls of few operators. Refers to the operator.
class MappedOperator {
 public:
  explicit MappedOperator(const OperatorInfo& op);
  // As relate().
  Relation relate(const OpRecord& record, std::size_t output, std::size_t input, bool* mapped) const;
  // True if relate() says identity() and that it is mapped, for what costs next to nothing: an elementwise operator and
  // two tensors of one shape. False says nothing.
  bool surely_identity(const OpRecord& record, std::size_t output, std::size_t input) const noexcept;

 private:
  const OperatorInfo* op_;
  Relation (*handler_)(const maps::Call&);  // null: none
  bool rewrites_ = false;                   // its name says that it reads what it writes: "add_"
};

// True if the operator's map needs the values of this integer or bool argument (index, mask, ...), so that the recorder
// keeps them.
bool needs_integer_values(const OperatorInfo& op, std::size_t arg) noexcept;

// The short names ("log_softmax") of all operators that have a map, sorted. In-place forms ("add_") that follow from
// the plain ones are not among them. For the test that holds the tables against torch's schemas.
std::vector<std::string> mapped_operators();

}  // namespace sherlorch
