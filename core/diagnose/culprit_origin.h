// Where a value came from that no op of the trace made: told in a culprit's origin, label and detail.
#pragma once

#include <string>

#include "core/diagnose/step_builder.h"

namespace sherlorch {

// "mul at model.py:12": an op in a few words.
std::string op_in_short(const Step& step);

class OriginTeller {
 public:
  OriginTeller(const Graph& graph, const View& view, const StepBuilder& steps)
      : graph_(graph), view_(view), steps_(steps) {}

  // Of a record that is an origin, or lies outside of the trace. `reader` is the op that is blamed for reading it; null
  // if none has.
  void tell(const OpRecord& record, const OpRecord* reader, Culprit* culprit) const;

  // Of an op that computed with a number of the program: a NaN, or an infinity that was asked for.
  void tell_constant(const OpRecord& record, Culprit* culprit) const;

  // The op that wrote an externally changed tensor before, in short; "" if it is not known.
  std::string last_writer(const OpRecord& record) const;

 private:
  std::string asked_for(const OpRecord& record) const;

  const Graph& graph_;
  const View& view_;
  const StepBuilder& steps_;
};

}  // namespace sherlorch
