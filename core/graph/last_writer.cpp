#include "core/graph/last_writer.h"

#include <map>

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

std::vector<std::pair<LastWriter, ElementSet>> split_by_last_writer(
    const ElementSet& elements, const std::function<LastWriter(std::int64_t)>& last_writer) {
  constexpr int kMostAsked = 16;  // chosen: each may go through the whole flight recorder
  std::map<OpSeq, std::pair<LastWriter, ElementSet>> parts;
  LastWriter last;
  int asked = 0;
  for (const Run& run : elements.runs()) {
    for (std::int64_t begin = run.begin; begin < run.end;) {
      if (asked == 0 || (last.seq != 0 && asked < kMostAsked)) {
        last = last_writer(begin);
        ++asked;
      }
      const std::int64_t end = last.seq != 0 && asked < kMostAsked ? begin + 1 : run.end;
      auto& [writer, part] = parts[last.seq];
      writer = last;
      part.append(begin, end);
      begin = end;
    }
  }
  std::vector<std::pair<LastWriter, ElementSet>> result;
  for (auto& [seq, part] : parts) result.push_back(std::move(part));
  return result;
}

}  // namespace sherlorch
