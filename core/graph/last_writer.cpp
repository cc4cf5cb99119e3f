#include "core/graph/last_writer.h"

namespace sherlorch {

LastWriter find_last_writer(const FlightRecorder& flight, OpSeq begin, OpSeq end, const ByteRead& read,
                            const std::function<bool(OpSeq)>* visible) {
  LastWriter last;
  flight.backwards(begin, end, [&](const FlightOp& op) {
    if (visible != nullptr && !(*visible)(op.seq)) return true;
    for (const FlightTensor& written : op.tensors) {
      if (written.storage != (read.storage & 0xffffffffffff) || written.tag != read.tag) continue;
      if (read.byte < written.begin || read.byte >= written.end) continue;
      if (written.role != TensorRole::kWrite && written.role != TensorRole::kUninitialized) continue;
      if (written.gaps && written.dtype == read.dtype) continue;
      last.seq = op.seq;
      last.uninitialized = written.role == TensorRole::kUninitialized;
      last.reinterpreted = !last.uninitialized && written.dtype != read.dtype;
      return false;
    }
    return true;
  });
  return last;
}

}  // namespace sherlorch
