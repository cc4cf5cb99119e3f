#include "adapter/question.h"

#include <mutex>
#include <span>
#include <string>

#include "adapter/tensor_facts.h"
#include "core/diagnose/handled.h"
#include "core/record/bad_op.h"
#include "core/scan/scan.h"

namespace sherlorch {

namespace {

std::string device_text(const at::TensorBase& tensor) { return tensor.device().str(); }

// Looks at the tensor now. Throws UntrackedTensorError if there is nothing to look at.
Target look(const at::TensorBase& tensor, LoneTensor* lone) {
  if (tensor.defined()) look_at(tensor, lone);
  switch (lone->kind) {
    case TensorKind::kBytes:
      break;
    case TensorKind::kWrapper:
      throw UntrackedTensorError(
          "This tensor is a wrapper around another one and has no memory of its own: diagnose the tensor inside it.");
    case TensorKind::kDevice:
      throw UntrackedTensorError("This tensor is on " + device_text(tensor) +
                                 ", which is not traced: diagnose a tensor on the CPU.");
    default:
      throw UntrackedTensorError(
          "This tensor has no values that could be read (undefined, meta, fake or of an opaque layout): diagnose a "
          "dense "
          "CPU tensor.");
  }
  Target target;
  target.facts = tensor_facts(lone->tensor);
  target.tag = address_tag(lone->tensor.data, lone->tensor.offset);
  target.numel = lone->tensor.numel;
  target.dtype = dtype_text(lone->tensor.scalar_type);
  target.device = device_text(tensor);
  const CallTensor& seen = lone->tensor;
  if (seen.data != nullptr && can_be_nonfinite(seen.dtype)) {
    Census census = take_census(seen.data, {seen.sizes, seen.dims}, {seen.strides, seen.dims}, seen.dtype);
    target.bad = {std::move(census.nan_at), std::move(census.pos_inf_at), std::move(census.neg_inf_at)};
  }
  return target;
}

// Row-major position of the element.
std::int64_t linear_index(const Target& target, const std::vector<std::int64_t>& index) {
  const DimArray& sizes = target.facts.geometry.sizes;
  auto text = [](std::span<const std::int64_t> values) {
    std::string joined = "(";
    for (const std::int64_t value : values) joined += (joined.size() > 1 ? ", " : "") + std::to_string(value);
    return joined + ")";
  };
  if (index.size() != sizes.size()) {
    throw IndexError("The index " + text(index) + " has " + std::to_string(index.size()) +
                     " numbers, but the tensor has shape " + text(sizes) + ": give one number a dimension.");
  }
  std::int64_t linear = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const std::int64_t i = index[d] < 0 ? index[d] + sizes[d] : index[d];
    if (i < 0 || i >= sizes[d]) {
      throw IndexError("The index " + text(index) + " is not in the tensor, whose shape is " + text(sizes) + ".");
    }
    linear = linear * sizes[d] + i;
  }
  return linear;
}

}  // namespace

bool has_issue(const at::TensorBase& tensor) {
  LoneTensor lone;
  if (tensor.defined()) look_at(tensor, &lone);
  if (lone.kind != TensorKind::kBytes || lone.tensor.data == nullptr) return false;
  const CallTensor& seen = lone.tensor;
  return scan_strided(seen.data, {seen.sizes, seen.dims}, {seen.strides, seen.dims}, seen.dtype).nonfinite;
}

Diagnosis diagnose(const Window& window, const at::TensorBase& tensor,
                   const std::optional<std::vector<std::int64_t>>& index, StepElements* elements) {
  LoneTensor lone;
  Target target = look(tensor, &lone);
  if (!window.checks(target.facts.dtype)) target.bad = {};
  if (index.has_value()) {
    const std::int64_t linear = linear_index(target, *index);
    const ElementSet one = ElementSet::range(linear, linear + 1);
    target.bad = {set_intersection(target.bad.nan, one), set_intersection(target.bad.pos_inf, one),
                  set_intersection(target.bad.neg_inf, one)};
  }
  Diagnosis diagnosis = sherlorch::diagnose(Session::get().recorder().graph(), target, window.view(), elements);
  note_handled(&diagnosis);
  return diagnosis;
}

Diagnosis diagnose_op(const Window& window, OpSeq seq, StepElements* elements) {
  Graph& graph = Session::get().recorder().graph();
  Target target;
  {
    std::lock_guard lock(graph.mutex);
    const OpRecord* record = graph.store.find(seq);
    if (record == nullptr) throw UntrackedTensorError("What this op made is gone already.");
    const OutputRecord* shown = &record->outputs.front();
    for (const OutputRecord& output : record->outputs) {
      if (!output.introduced.empty()) shown = &output;
    }
    target.facts = shown->facts;
    target.bad = shown->bad;
    target.dtype = dtype_text(shown->facts.scalar_type);
    target.device = "cpu";
    target.numel = shown->facts.geometry.numel();
  }
  return sherlorch::diagnose(graph, target, window.view(), elements);
}

std::vector<Step> bystanders(const Window& window, const at::TensorBase& tensor, std::size_t limit) {
  LoneTensor lone;
  const Target target = look(tensor, &lone);
  return sherlorch::bystanders(Session::get().recorder().graph(), target, window.view(), limit);
}

bool find_node(const Window& window, const at::TensorBase& tensor, Step* step) {
  LoneTensor lone;
  try {
    const Target target = look(tensor, &lone);
    return sherlorch::find_node(Session::get().recorder().graph(), target, window.view(), step);
  } catch (const UntrackedTensorError&) {
    return false;
  }
}

}  // namespace sherlorch
