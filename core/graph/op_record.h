// The cold record of one op that had something to do with a non-finite value.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/element_set.h"
#include "core/base/geometry.h"
#include "core/base/ids.h"
#include "core/base/inline_vector.h"

namespace sherlorch {

// Which elements of a tensor are bad, by class. Linear indices are row-major in that tensor's shape.
struct BadElements {
  ElementSet nan;
  ElementSet pos_inf;
  ElementSet neg_inf;

  bool empty() const noexcept { return nan.empty() && pos_inf.empty() && neg_inf.empty(); }
  std::int64_t count() const noexcept { return nan.count() + pos_inf.count() + neg_inf.count(); }
  ElementSet all() const { return set_union(set_union(nan, pos_inf), neg_inf); }
  bool coarse() const noexcept { return nan.coarse() || pos_inf.coarse() || neg_inf.coarse(); }
};

inline BadElements intersect(const BadElements& bad, const ElementSet& set) {
  return {set_intersection(bad.nan, set), set_intersection(bad.pos_inf, set), set_intersection(bad.neg_inf, set)};
}

// One tensor that an op read or wrote.
struct TensorFacts {
  std::uint16_t arg = 0;         // index of the schema's argument (of the return value, for an output that is none)
  std::uint16_t list_index = 0;  // position inside a list argument
  DType dtype = DType::kOther;
  std::uint8_t scalar_type = 0;  // c10::ScalarType, for the name of types that cannot be non-finite
  bool is_parameter = false;     // a leaf that requires grad
  bool written_arg = false;      // outputs: `arg` is the schema argument written, not the index of a return value
  StorageKey storage = 0;
  Geometry geometry;  // item_size, sizes and strides as the op saw them
  // The values of an index, mask or other integer operand that decides where elements go (row-major; bool as 0/1);
  // empty where the operator has no use for them or there were more than kMaxIndexValues.
  std::vector<std::int64_t> integer_values;
  static constexpr std::size_t kMaxIndexValues = std::size_t{1} << 20;
};

// A number, bool or list of ints among the arguments.
struct ScalarArg {
  enum class Kind : std::uint8_t { kInt, kDouble, kBool, kIntList, kNone };
  std::uint16_t arg = 0;  // index of the schema's argument
  Kind kind = Kind::kNone;
  std::int64_t i = 0;              // kInt, kBool
  double d = 0;                    // kDouble
  std::vector<std::int64_t> list;  // kIntList
};

class OpRecord;

// Bad elements of an input and the op that wrote them.
struct ReadEdge {
  OpRecord* writer = nullptr;  // held by a reference count of the OpStore
  std::uint16_t output = 0;    // index into writer->outputs
  std::int64_t delta = 0;      // bytes to add to an offset in the input's storage to get one in the writer's
  ElementSet elements;         // linear indices of the *input* tensor
  std::uint64_t folded = 0;    // ops between the two that were let go to keep the history within its cap
};

// Nearly always one. It lies in the record, so that a history is few large blocks, which the heap joins again once they
// are free, and no small ones in between: those scatter the next history over memory.
using ReadEdges = InlineVector<ReadEdge, 1>;

// In this and what follows, what a walk over a long history reads comes first: its time is that of the memory it
// touches.
struct InputRecord {
  ReadEdges edges;           // who wrote what of it was bad; disjoint; together they cover `bad`
  OpRecord* via = nullptr;   // the view op through which it was read, if any; held by a reference count
  bool overwritten = false;  // an in-place op wrote over it; `bad` is then what the shadow knew
  bool scalar = false;       // a Python number that had been taken out of a tensor with item(); no geometry
  ElementSet deliberate;     // those of the bad elements that are infinities the program asked for
  TensorFacts facts;
  BadElements bad;  // what of this input was non-finite when it was read
};

struct OutputRecord {
  ElementSet introduced;  // bad elements that this op made: out of finite values, or out of deliberate infinities alone
  ElementSet deliberate;  // infinities that the program asked for, here or before, unchanged in kind
  BadElements bad;        // what of it was non-finite when it had been written
  TensorFacts facts;
  ElementSet converted;  // the part of `introduced` that was made out of deliberate infinities
  float largest = 0;     // largest magnitude seen by the scan
};

// What was read off the operands of a culprit while it was still on the stack.
struct OperandSample {
  std::uint16_t input = 0;  // index into inputs, for tensors
  bool is_slice = false;    // the output element depends on many elements: min/max/sum/count are set, value is not
  bool available = true;    // false: overwritten by an in-place op before it could be read
  double value = 0;
  double min = 0, max = 0, sum = 0;
  std::int64_t count = 0;
  std::int64_t bad = 0;  // non-finite ones among them
  bool complete = true;  // false: the slice was long and only its beginning was read
  // The smallest magnitude on the diagonals of the square matrices in the slice; NaN if there are none.
  double diagonal = std::numeric_limits<double>::quiet_NaN();
};
struct WitnessSample {
  std::uint16_t output = 0;
  std::int64_t linear = 0;  // element of that output
  double value = 0;
  std::vector<OperandSample> operands;
};
// Finite range of an operand.
struct OperandRange {
  bool known = false;
  double min = 0;
  double max = 0;
};

enum class OpKind : std::uint8_t {
  kOp,      // an operator of the user's program
  kView,    // gave another view of bad memory; wrote nothing
  kOrigin,  // not an op: memory that was bad before any op touched it (see origin)
};

enum class OriginKind : std::uint8_t { kNone, kInput, kConstant, kUninitialized, kExternal };

class OpRecord {
  friend class OpStore;
  OpRecord* older_ = nullptr;  // all records, in the order in which they were made
  OpRecord* newer_ = nullptr;
  std::uint32_t references_ = 0;

 public:
  OpSeq seq = 0;
  OperatorId op = 0;
  SiteId site = 0;
  ModuleId module = 0;
  ThreadId thread = 0;
  Phase phase = Phase::kForward;
  OpKind kind = OpKind::kOp;
  OriginKind origin = OriginKind::kNone;
  bool constant_nan = false;   // a NaN among its Python numbers
  bool reinterpreted = false;  // wrote these bytes as another dtype; inputs and numbers are not kept
  bool unmapped = false;       // it has bad inputs and no element map: every output element was taken to depend on all

  // For who walks over the records under the graph's lock: where it keeps what it knows of this one. What another walk
  // has left here is still there, so a walk checks that its entry is of this record.
  std::uint32_t walk_entry = 0;

  std::vector<InputRecord> inputs;
  InlineVector<OutputRecord, 1> outputs;

  // The autograd node inside which it ran (backward phase); name interned in the SiteTable's string pool.
  std::uint32_t autograd_node = 0;  // string id; 0: none
  bool engine_work = false;         // between nodes: hooks, fan-out additions, undone broadcasts
  std::int64_t node_sequence = -1;  // sequence number of that node
  OperatorId forward_op = 0;        // the forward op whose backward this is, if the recorder still held it
  OpSeq forward_seq = 0;
  TensorKey gradient_of;  // the parameter into whose gradient it put its output

  std::vector<ScalarArg> args;
  std::vector<SiteId> stack;  // outermost first; only for ops that introduced something
  std::vector<WitnessSample> witness;
  std::vector<OperandRange> ranges;  // one an input
  std::uint16_t origin_arg = 0;      // kOrigin: the argument of the first reader
  OpSeq last_writer = 0;             // kOrigin, external: the op that had written these bytes, if the recorder knows

  bool has_bad_input() const noexcept {
    for (const InputRecord& input : inputs) {
      if (!input.bad.empty()) return true;
    }
    return false;
  }
};

}  // namespace sherlorch
