// count_probe KIND OPS: hands so many op calls to the core's recorder, for callgrind.
//   finite   two operands of 4 floats, one fresh result
//   shadow   the same while another storage has a shadow
//   masked   a fill with -inf over memory that a fill with -inf wrote before
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "core/record/recorder.h"

namespace sherlorch {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Buffer {
  float values[4] = {1, 1, 1, 1};
};

constexpr std::int64_t kSize = 4;
constexpr std::int64_t kStride = 1;

CallTensor tensor(Buffer& buffer, TensorRole role, std::uint16_t arg) {
  CallTensor t;
  t.storage = reinterpret_cast<StorageKey>(&buffer);
  t.handle = &buffer;
  t.data = buffer.values;
  t.sizes = &kSize;
  t.strides = &kStride;
  t.numel = kSize;
  t.item_size = sizeof(float);
  t.arg = arg;
  t.dims = 1;
  t.dtype = DType::kFloat32;
  t.role = role;
  t.contiguous = true;
  t.whole_storage = true;
  t.fresh_return = role == TensorRole::kWrite;
  return t;
}

RecorderHooks hooks() {
  RecorderHooks hooks;
  hooks.guards.alive = [](void*) noexcept { return true; };
  hooks.guards.release = [](void*) noexcept {};
  hooks.guards.data = [](void* guard) noexcept -> const void* { return static_cast<Buffer*>(guard)->values; };
  hooks.guards.bytes = [](void*) noexcept { return static_cast<std::int64_t>(sizeof(Buffer::values)); };
  hooks.acquire_guard = [](void* handle) noexcept { return handle; };
  return hooks;
}

struct Operator {
  Operator(Recorder& recorder, const char* name) {
    OperatorInfo info;
    info.name = name;
    for (const char* argument : {"self", "other"}) info.arguments.push_back({argument, true, false, false});
    traits = operator_traits(info);
    id = recorder.graph().tables.operators.add(std::move(info));
  }
  OperatorTraits traits;
  OperatorId id = 0;
};

void fill(Recorder& recorder, const Operator& op, Buffer& in, Buffer& out) {
  for (float& value : out.values) value = -kInf;
  CallTensor inputs[] = {tensor(in, TensorRole::kRead, 0)};
  CallTensor outputs[] = {tensor(out, TensorRole::kWrite, 0)};
  CallScalar scalars[1];
  scalars[0].arg = 2;
  scalars[0].kind = CallScalar::Kind::kDouble;
  scalars[0].number = -kInf;
  OpCall call;
  call.op = op.id;
  call.traits = &op.traits;
  call.has_nonfinite_scalar = true;
  call.inputs = inputs;
  call.outputs = outputs;
  call.scalars = scalars;
  recorder.record(call);
}

void multiply(Recorder& recorder, const Operator& op, Buffer& a, Buffer& b, Buffer& out) {
  CallTensor inputs[] = {tensor(a, TensorRole::kRead, 0), tensor(b, TensorRole::kRead, 1)};
  CallTensor outputs[] = {tensor(out, TensorRole::kWrite, 0)};
  OpCall call;
  call.op = op.id;
  call.traits = &op.traits;
  call.inputs = inputs;
  call.outputs = outputs;
  recorder.record(call);
}

int run(const char* kind, int ops) {
  Recorder recorder(hooks());
  recorder.begin_recording();
  const Operator mul(recorder, "aten::mul");
  const Operator masked_fill(recorder, "aten::masked_fill");
  Buffer a, b, bad;
  if (std::strcmp(kind, "shadow") == 0) fill(recorder, masked_fill, a, bad);
  if (std::strcmp(kind, "masked") == 0) {
    Buffer out[2];
    for (int i = 0; i < ops; ++i) fill(recorder, masked_fill, a, out[i % 2]);
  } else {
    Buffer out[8];
    for (int i = 0; i < ops; ++i) multiply(recorder, mul, a, b, out[i % 8]);
  }
  return static_cast<int>(recorder.op_count()) < ops ? 1 : 0;
}

}  // namespace
}  // namespace sherlorch

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: count_probe finite|shadow|masked OPS\n", stderr);
    return 2;
  }
  return sherlorch::run(argv[1], std::atoi(argv[2]));
}
