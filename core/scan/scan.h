// Is anything non-finite in a buffer? Read at memory speed, without allocation, locks or exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "core/base/element_set.h"

namespace sherlorch {

// The answer of the fast pass. `largest` is the largest magnitude among the finite and infinite parts seen, widened to
// float (saturating; +inf if an infinity or NaN is there); it comes for free because finiteness is read off the
// largest magnitude's bit pattern. For float8 types without infinities it is the decoded magnitude.
struct ScanResult {
  bool nonfinite = false;
  float largest = 0.0f;
};

// Scans `count` contiguous elements. Cost: one pass at the machine's read bandwidth. Any alignment of `data` that the
// element's own alignment allows, and also unaligned data, is read correctly. kOther and count 0: {false, 0}.
// Thread-safe; never allocates.
ScanResult scan_contiguous(const void* data, std::size_t count, DType dtype) noexcept;

// Scans a strided tensor: sizes in elements, strides in elements (may be 0 or negative), `data` points at element 0.
// Dimensions are walked in order of stride so that dense permuted tensors run at nearly contiguous speed, and
// dimensions of stride 0 are read once (an expanded tensor costs what its base costs). Never allocates for up to 16
// dimensions; more dimensions than that also work.
ScanResult scan_strided(const void* data, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                        DType dtype) noexcept;

// What is non-finite in a tensor, element by element. Linear indices are row-major in the tensor's own shape. A complex
// element is NaN if a part is NaN, else +Inf/-Inf by its first infinite part (real part first).
struct Census {
  std::int64_t numel = 0;
  std::int64_t nan = 0;
  std::int64_t pos_inf = 0;
  std::int64_t neg_inf = 0;
  std::int64_t first_nan = -1;  // linear index, -1 if none
  std::int64_t first_pos_inf = -1;
  std::int64_t first_neg_inf = -1;
  ElementSet nan_at;
  ElementSet pos_inf_at;
  ElementSet neg_inf_at;

  std::int64_t bad() const noexcept { return nan + pos_inf + neg_inf; }
};

// The census of a strided tensor (strides in elements). Cold: allocates; may throw std::bad_alloc. Expanded tensors
// (stride 0) are counted by their logical elements, but every distinct element is read only once where that matters.
Census take_census(const void* data, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                   DType dtype);

// One element as a double (real part for complex; see `imag`), for witnesses.
struct ElementValue {
  double real = 0;
  double imag = 0;
};
ElementValue read_element(const void* element, DType dtype) noexcept;

}  // namespace sherlorch
