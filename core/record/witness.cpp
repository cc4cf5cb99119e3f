// What the operands of a culprit held, read while the op is still on the stack.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/operators/relation.h"
#include "core/record/bad_op.h"
#include "core/record/inputs_by_entry.h"

namespace sherlorch {

namespace {

// Chosen: enough to see a pattern, few enough to read.
constexpr std::size_t kElements = 4;
// Longest slice that is summed up, and largest operand whose range is taken.
constexpr std::int64_t kLongestSlice = std::int64_t{1} << 16;
constexpr std::int64_t kLargestRange = std::int64_t{1} << 20;

struct Reader {
  const CallTensor& tensor;
  Geometry geometry;
  const char* base;

  explicit Reader(const CallTensor& t)
      : tensor(t), geometry(tensor_facts(t).geometry), base(static_cast<const char*>(t.readable()) - t.offset) {}
  double operator()(std::int64_t i) const {
    return read_number(base + geometry.byte_of(i), tensor.dtype, tensor.scalar_type);
  }
};

OperandRange range_of(const CallTensor& tensor) {
  OperandRange range;
  if (tensor.numel > kLargestRange || tensor.numel == 0) return range;
  const Reader read(tensor);
  range.min = std::numeric_limits<double>::infinity();
  range.max = -range.min;
  for (std::int64_t i = 0; i < tensor.numel; ++i) {
    const double value = read(i);
    if (!std::isfinite(value)) continue;
    range.known = true;
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
  }
  return range;
}

OperandSample sample_slice(const CallTensor& tensor, const ElementSet& slice) {
  OperandSample sample;
  sample.is_slice = true;
  sample.min = std::numeric_limits<double>::infinity();
  sample.max = -sample.min;
  const Reader read(tensor);
  std::int64_t looked = 0;
  const DimArray& sizes = read.geometry.sizes;
  const std::size_t dims = sizes.size();
  const std::int64_t rows = dims >= 2 && sizes[dims - 1] == sizes[dims - 2] ? sizes[dims - 1] : 0;  // of a matrix
  slice.for_each([&](std::int64_t i) {
    const double value = read(i);
    if (rows > 0 && i % (rows * rows) % (rows + 1) == 0) sample.diagonal = std::fmin(sample.diagonal, std::fabs(value));
    if (std::isfinite(value)) {
      sample.min = std::min(sample.min, value);
      sample.max = std::max(sample.max, value);
      sample.sum += value;
    } else {
      ++sample.bad;
    }
    return ++looked < kLongestSlice;
  });
  sample.count = slice.count();
  sample.complete = looked == sample.count;
  return sample;
}

}  // namespace

void BadOp::sample_witness(OpRecord* record) {
  const OperatorInfo& op = graph_.tables.operators.get(call_.op);
  auto readable = [](const Seen& seen) { return !seen.overwritten && seen.tensor->data != nullptr; };
  const std::size_t hidden_from = call_.inputs.size();
  const InputsByEntry meet(op, *record, InputsByEntry::Which::kAll);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const bool known = i < hidden_from && readable(inputs_[i]);
    record->ranges.push_back(known ? range_of(*inputs_[i].tensor) : OperandRange());
  }
  for (std::size_t o = 0; o < record->outputs.size(); ++o) {
    const OutputRecord& output = record->outputs[o];
    const Reader value(*outputs_[o].tensor);
    // The first of each class, then the first ones.
    std::vector<std::int64_t> chosen;
    // A coarse set holds good neighbours, too.
    const bool pick = output.introduced.coarse() && !is_complex(outputs_[o].tensor->dtype);
    auto choose = [&](std::int64_t element) {
      if (pick && element >= 0 && std::isfinite(value(element))) return;
      if (element >= 0 && chosen.size() < kElements &&
          std::find(chosen.begin(), chosen.end(), element) == chosen.end()) {
        chosen.push_back(element);
      }
    };
    choose(set_intersection(output.introduced, output.bad.nan).first());
    choose(set_intersection(output.introduced, output.bad.pos_inf).first());
    choose(set_intersection(output.introduced, output.bad.neg_inf).first());
    output.introduced.for_each([&](std::int64_t element) {
      choose(element);
      return chosen.size() < kElements;
    });
    std::sort(chosen.begin(), chosen.end());
    for (const std::int64_t element : chosen) {
      WitnessSample witness;
      witness.output = static_cast<std::uint16_t>(o);
      witness.linear = element;
      witness.value = value(element);
      for (const std::size_t i : meet.of(output.facts.list_index)) {
        if (i >= inputs_.size() || i >= hidden_from) continue;
        const CallTensor& tensor = *inputs_[i].tensor;
        bool mapped = true;
        const Relation relation = relate(op, *record, o, i, &mapped);
        if (relation.is_nothing()) continue;
        OperandSample sample;
        if (!readable(inputs_[i])) {
          sample.available = false;
        } else {
          const ElementSet sources =
              relation.sources(ElementSet::range(element, element + 1), ElementSet::range(0, tensor.numel),
                               output.facts.geometry.sizes, record->inputs[i].facts.geometry.sizes);
          if (sources.count() == 1) {
            sample.value = Reader(tensor)(sources.first());
          } else {
            sample = sample_slice(tensor, sources);
          }
        }
        sample.input = static_cast<std::uint16_t>(i);
        witness.operands.push_back(sample);
      }
      record->witness.push_back(std::move(witness));
    }
  }
}

}  // namespace sherlorch
