// Where the elements of a tensor lie in its storage.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/inline_vector.h"

namespace sherlorch {

// One number a dimension; those of nearly all tensors take no block of their own.
using DimArray = InlineVector<std::int64_t, 4>;

// A strided view of a storage. Element (i0, i1, ...) starts at byte offset + sum(ik * strides[k]).
// An owning, cold-path type; the hot path reads the tensor's own arrays.
struct Geometry {
  std::int64_t offset = 0;      // bytes from the start of the storage to element 0
  std::uint32_t item_size = 0;  // bytes an element
  DimArray sizes;               // elements
  DimArray strides;             // bytes

  bool operator==(const Geometry&) const = default;

  std::int64_t numel() const noexcept;
  // True if the elements lie side by side in row-major order (zero-element and 0-dim tensors included).
  bool contiguous() const noexcept;
  // The half-open range of bytes that holds every element; empty (begin == end) for a tensor without elements.
  std::int64_t begin_byte() const noexcept;
  std::int64_t end_byte() const noexcept;
  // Byte offset of the element with this row-major linear index. REQUIRES: 0 <= linear < numel().
  std::int64_t byte_of(std::int64_t linear) const noexcept;
  // Coordinates of that element, one per dimension.
  std::vector<std::int64_t> index_of(std::int64_t linear) const;
  // Row-major linear index of the element that starts at this byte; -1 if none does. Where several elements share the
  // byte (stride 0), the first one.
  // O(ndim) unless elements overlap in an irregular way (as_strided); then a bounded search.
  std::int64_t linear_of_byte(std::int64_t byte) const noexcept;
  // Row-major linear index of the first element one of whose item_size bytes is this one; -1 if none. Same cost.
  std::int64_t linear_containing(std::int64_t byte) const noexcept;
};

// Row-major contiguous geometry of this shape at this byte offset.
Geometry contiguous_geometry(std::span<const std::int64_t> sizes, std::uint32_t item_size, std::int64_t offset = 0);

}  // namespace sherlorch
