#include "adapter/tensor_facts.h"

#include <ATen/Parallel.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <atomic>

#include "adapter/parallel.h"

namespace sherlorch {

namespace {

constexpr DType dtype_of_type(c10::ScalarType type) noexcept {
  switch (type) {
    case c10::ScalarType::Half:
      return DType::kFloat16;
    case c10::ScalarType::BFloat16:
      return DType::kBFloat16;
    case c10::ScalarType::Float:
      return DType::kFloat32;
    case c10::ScalarType::Double:
      return DType::kFloat64;
    case c10::ScalarType::ComplexHalf:
      return DType::kComplex32;
    case c10::ScalarType::ComplexFloat:
      return DType::kComplex64;
    case c10::ScalarType::ComplexDouble:
      return DType::kComplex128;
    case c10::ScalarType::Float8_e4m3fn:
      return DType::kFloat8E4M3FN;
    case c10::ScalarType::Float8_e5m2:
      return DType::kFloat8E5M2;
    case c10::ScalarType::Float8_e4m3fnuz:
      return DType::kFloat8E4M3FNUZ;
    case c10::ScalarType::Float8_e5m2fnuz:
      return DType::kFloat8E5M2FNUZ;
    case c10::ScalarType::Float8_e8m0fnu:
      return DType::kFloat8E8M0FNU;
    default:
      return DType::kOther;
  }
}

// By the number of the scalar type; read for every tensor of every op.
constexpr auto kDTypes = [] {
  std::array<DType, c10::NumScalarTypes> table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = dtype_of_type(static_cast<c10::ScalarType>(i));
  return table;
}();

constexpr c10::DispatchKeySet kWrapperKeys({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper,
                                            c10::DispatchKey::Functionalize, c10::DispatchKey::Batched});

// The address in the storage, past every check: reading materializes no copy-on-write storage and a fake tensor's
// storage must not throw.
const void* bytes_of(c10::StorageImpl* storage) noexcept { return storage->_mutable_data_ptr_no_checks().get(); }

}  // namespace

bool is_wrapper(const c10::TensorImpl* impl) noexcept {
  const c10::DispatchKeySet keys = impl->key_set();
  if (keys.has_any(kWrapperKeys)) return true;
  if (!keys.has(c10::DispatchKey::Python)) return false;
  if (!impl->has_storage()) return true;
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  return storage == nullptr || (bytes_of(storage) == nullptr && storage->device_type() != c10::DeviceType::Meta) ||
         storage->device_type() == c10::DeviceType::Meta;
}

const c10::TensorImpl* with_bytes(const c10::TensorImpl* impl) noexcept {
  const c10::DispatchKeySet keys = impl->key_set();
  // has_all: the sets name a backend too, and one bit of it alone says nothing.
  if (keys.has_all(c10::sparse_ks)) {
    return static_cast<const at::SparseTensorImpl*>(impl)->values().unsafeGetTensorImpl();
  }
  if (impl->is_sparse_compressed()) {
    return static_cast<const at::SparseCsrTensorImpl*>(impl)->values().unsafeGetTensorImpl();
  }
  return impl;
}

namespace {

// The usual case: strided memory of the CPU, in a plain tensor.
bool is_plain(const c10::TensorImpl* impl) noexcept {
  if (impl == nullptr) return false;
  constexpr c10::DispatchKeySet kDense(c10::DispatchKey::CPU);
  constexpr c10::DispatchKeySet kOdd = kWrapperKeys | c10::DispatchKeySet(c10::DispatchKey::Python);
  const c10::DispatchKeySet keys = impl->key_set();
  return keys.has_all(kDense) && !keys.has_any(kOdd) && !impl->has_symbolic_sizes_strides();
}

// What needs a closer look before its memory can be read. Leads to the tensor that has the bytes; kBytes if it has.
TensorKind look_closer(const c10::TensorImpl** impl) noexcept {
  if (*impl == nullptr || *impl == c10::UndefinedTensorImpl::singleton()) return TensorKind::kNothing;
  if (!(*impl)->has_storage()) {
    if (is_wrapper(*impl)) return TensorKind::kWrapper;
    const c10::TensorImpl* values = with_bytes(*impl);
    if (values == *impl || !values->has_storage()) return TensorKind::kOpaque;
    *impl = values;
  }
  c10::StorageImpl* storage = (*impl)->unsafe_storage().unsafeGetStorageImpl();
  if (storage == nullptr) return is_wrapper(*impl) ? TensorKind::kWrapper : TensorKind::kOpaque;
  const c10::DeviceType device = storage->device_type();
  if (device != c10::DeviceType::CPU) {
    if (device == c10::DeviceType::Meta) return TensorKind::kNoValues;
    return TensorKind::kDevice;
  }
  if ((*impl)->key_set().has(c10::DispatchKey::Python) && bytes_of(storage) == nullptr && storage->nbytes() != 0) {
    return TensorKind::kWrapper;
  }
  if ((*impl)->has_symbolic_sizes_strides()) return TensorKind::kNoValues;
  if (c10::isQIntType(c10::typeMetaToScalarType((*impl)->dtype()))) return TensorKind::kQuantized;
  return TensorKind::kBytes;
}

}  // namespace

TensorKind fill(const c10::TensorImpl* impl, FlatShape* flat, CallTensor* tensor) noexcept {
  c10::StorageImpl* storage = nullptr;
  if (is_plain(impl)) [[likely]]
    storage = impl->unsafe_storage().unsafeGetStorageImpl();
  if (storage == nullptr || storage->device_type() != c10::DeviceType::CPU) [[unlikely]] {
    const TensorKind kind = look_closer(&impl);
    if (kind != TensorKind::kBytes) return kind;
    storage = impl->unsafe_storage().unsafeGetStorageImpl();
  }
  const auto type = static_cast<std::uint8_t>(c10::typeMetaToScalarType(impl->dtype()));
  const auto item = static_cast<std::int64_t>(impl->itemsize());
  const auto size = static_cast<std::int64_t>(storage->nbytes());
  tensor->storage = reinterpret_cast<StorageKey>(storage);
  tensor->handle = storage;
  tensor->dtype = dtype_of(type);
  tensor->scalar_type = type;
  tensor->item_size = static_cast<std::uint32_t>(item);
  tensor->is_parameter = false;
  if (impl->is_nested()) [[unlikely]] {
    // The components of a nested tensor lie in one buffer.
    flat->size = size / std::max<std::int64_t>(1, item);
    tensor->sizes = &flat->size;
    tensor->strides = &flat->stride;
    tensor->dims = 1;
    tensor->numel = flat->size;
    tensor->offset = 0;
    tensor->contiguous = true;
  } else {
    const c10::IntArrayRef sizes = impl->sizes();
    tensor->sizes = sizes.data();
    tensor->strides = impl->strides().data();
    tensor->dims = static_cast<std::uint8_t>(sizes.size());
    tensor->numel = impl->numel();
    tensor->offset = impl->storage_offset() * item;
    tensor->contiguous = impl->is_contiguous();
  }
  const std::int64_t bytes = tensor->numel * item;
  std::int64_t end = tensor->offset + bytes;
  if (!tensor->contiguous && tensor->numel > 0) {
    end = tensor->offset + item;
    for (int d = 0; d < tensor->dims; ++d) end += (tensor->sizes[d] - 1) * tensor->strides[d] * item;
  }
  tensor->whole_storage = bytes == size && (tensor->contiguous || impl->is_non_overlapping_and_dense());
  // A storage that was freed under its tensor (resize_(0), as FSDP does) must not be read.
  const void* begin = bytes_of(storage);
  const bool inside = begin != nullptr && (tensor->numel == 0 || end <= size);
  tensor->data = inside ? static_cast<const char*>(begin) + tensor->offset : nullptr;
  return TensorKind::kBytes;
}

void look_at(const at::TensorBase& tensor, LoneTensor* lone) noexcept {
  lone->kind = fill(tensor.unsafeGetTensorImpl(), &lone->flat, &lone->tensor);
  if (lone->kind == TensorKind::kBytes) {
    lone->tensor.is_parameter = is_leaf_that_requires_grad(tensor.unsafeGetTensorImpl());
  }
}

TensorKey tensor_key(const at::TensorBase& tensor) noexcept {
  LoneTensor lone;
  if (tensor.defined()) look_at(tensor, &lone);
  if (lone.kind != TensorKind::kBytes) return {};
  return {lone.tensor.storage, tensor.unsafeGetTensorImpl()};
}

namespace {

c10::StorageImpl* storage_of(void* guard) noexcept { return static_cast<c10::StorageImpl*>(guard); }

}  // namespace

StorageGuardOps storage_guards() noexcept {
  // A guard is a weak reference: it keeps the StorageImpl's few bytes (not the data) and so its address.
  StorageGuardOps ops;
  ops.alive = [](void* guard) noexcept { return c10::raw::weak_intrusive_ptr::use_count(storage_of(guard)) > 0; };
  ops.release = [](void* guard) noexcept { c10::raw::weak_intrusive_ptr::decref(storage_of(guard)); };
  ops.data = [](void* guard) noexcept { return bytes_of(storage_of(guard)); };
  ops.bytes = [](void* guard) noexcept { return static_cast<std::int64_t>(storage_of(guard)->nbytes()); };
  return ops;
}

void* acquire_storage_guard(void* handle) noexcept {
  if (handle == nullptr) return nullptr;
  c10::raw::weak_intrusive_ptr::incref(storage_of(handle));
  return handle;
}

ScanResult scan_large(const CallTensor& tensor) noexcept {
  if (!tensor.contiguous || at::in_parallel_region() || at::get_num_threads() == 1) {
    return tensor.contiguous
               ? scan_contiguous(tensor.data, static_cast<std::size_t>(tensor.numel), tensor.dtype)
               : scan_strided(tensor.data, {tensor.sizes, tensor.dims}, {tensor.strides, tensor.dims}, tensor.dtype);
  }
  std::atomic<bool> nonfinite{false};
  std::atomic<float> largest{0};
  constexpr std::int64_t kGrainBytes = std::int64_t{1} << 18;
  const std::int64_t bytes = tensor.numel * tensor.item_size;
  const auto element_of = [&](std::int64_t part) { return tensor.numel * part / kParts; };
  run_in_parallel((kParts * kGrainBytes + bytes - 1) / bytes, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = element_of(begin);
    const ScanResult part = scan_contiguous(static_cast<const char*>(tensor.data) + first * tensor.item_size,
                                            static_cast<std::size_t>(element_of(end) - first), tensor.dtype);
    if (part.nonfinite) nonfinite.store(true, std::memory_order_relaxed);
    float seen = largest.load(std::memory_order_relaxed);
    while (part.largest > seen && !largest.compare_exchange_weak(seen, part.largest)) {
    }
  });
  return {nonfinite.load(), largest.load()};
}

DType dtype_of(std::uint8_t scalar_type) noexcept {
  return scalar_type < kDTypes.size() ? kDTypes[scalar_type] : DType::kOther;
}

std::string dtype_text(std::uint8_t scalar_type) {
  const auto type = static_cast<c10::ScalarType>(scalar_type);
  const DType dtype = dtype_of(scalar_type);
  if (dtype != DType::kOther) return "torch." + std::string(dtype_name(dtype));
  switch (type) {
    case c10::ScalarType::Byte:
      return "torch.uint8";
    case c10::ScalarType::Char:
      return "torch.int8";
    case c10::ScalarType::Short:
      return "torch.int16";
    case c10::ScalarType::Int:
      return "torch.int32";
    case c10::ScalarType::Long:
      return "torch.int64";
    case c10::ScalarType::Bool:
      return "torch.bool";
    default:
      return std::string("torch.") + c10::toString(type);
  }
}

}  // namespace sherlorch
