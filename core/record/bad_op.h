// The cold half of the recorder: one op that wrote something non-finite, or touched a storage that has a shadow.
#pragma once

#include <memory>
#include <vector>

#include "core/graph/op_record.h"
#include "core/record/op_call.h"
#include "core/record/recorder.h"

namespace sherlorch {

class BadOp {
 public:
  BadOp(Recorder& recorder, OpCall& call, FlightHeader* header)
      : recorder_(recorder), graph_(recorder.graph_), call_(call), header_(header) {}
  ~BadOp();
  BadOp(const BadOp&) = delete;
  BadOp& operator=(const BadOp&) = delete;

  // Reads memory first, then takes the lock and enters what it found into the graph.
  void record();

  // `tensor`, which `call` is about to overwrite, holds bad values already.
  static void note_existing(Recorder& recorder, const CallTensor& tensor, OpCall call);

 private:
  // A tensor of the call whose content has been looked at, with a guard for its storage.
  struct Seen {
    CallTensor* tensor = nullptr;
    BadElements bad;
    bool looked = false;  // false: the memory could not be read, ask the shadow
    bool overwritten = false;
    bool additive_mask = false;  // only 0 and -Inf
    void* guard = nullptr;
    std::vector<std::int64_t> integer_values;
  };

  // Bytes that the op writes in place.
  struct Range {
    StorageKey storage = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  void look();
  void note_overwritten();
  bool is_overwritten(const CallTensor& tensor) const;
  void look_at_input(CallTensor* tensor, bool hidden);
  void enter();
  void enter_literal();
  void enter_item();
  void enter_views();
  void fill_basics(OpRecord* record) const;
  void fill_args(OpRecord* record) const;
  void add_input(OpRecord* record, Seen& seen);
  void add_numbers(OpRecord* record);
  void classify(OpRecord* record);
  void explain_first_touch(OpRecord* record);
  // `inputs`: those that the output can depend on.
  ElementSet read_before(const OpRecord& record, std::size_t o, const std::vector<std::size_t>& inputs) const;
  void sample_witness(OpRecord* record);
  // An origin for bad elements that no op of the recording wrote; entered into the shadow.
  OpRecord* open_origin(Seen& seen, const BadElements& unexplained);
  void open(Seen& seen);

  Recorder& recorder_;
  Graph& graph_;
  OpCall& call_;
  FlightHeader* header_;
  std::vector<Seen> outputs_;  // the written ones
  std::vector<Seen> inputs_;
  std::vector<Range> overwritten_;     // by storage and begin; each end is the farthest of those before it, too
  std::vector<OpRecord*> to_release_;  // references to give back when the record that uses them is in the store
  bool bad_output_ = false;
  OpSeq introduced_ = 0;
};

// What the recorder keeps of a tensor of a call.
TensorFacts tensor_facts(const CallTensor& tensor);

// One element, whatever its type (integers included). `scalar_type` is c10::ScalarType.
double read_number(const void* element, DType dtype, std::uint8_t scalar_type) noexcept;

}  // namespace sherlorch
