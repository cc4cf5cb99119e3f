// For tests: strided views of random data.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>

#include "core/scan/scan_oracle.h"

namespace sherlorch::oracle {

struct View {
  std::vector<unsigned char> storage;  // no longer than the view needs, so that sanitizers see a stray read
  std::size_t offset = 0;              // bytes
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;

  const unsigned char* data() const { return storage.data() + offset; }
  std::string text() const {
    std::ostringstream out;
    for (std::size_t k = 0; k < sizes.size(); ++k) out << sizes[k] << ":" << strides[k] << " ";
    return out.str();
  }
};

// A dense tensor, then permuted, sliced, flipped, expanded or made to overlap at random.
inline View random_view(std::mt19937_64& random, DType dtype, double bad_share) {
  View view;
  const std::size_t ndim = random() % 5;
  std::int64_t stride = 1;
  std::int64_t numel = 1;  // kept below what an exact ElementSet holds
  for (std::size_t k = 0; k < ndim; ++k) {
    const unsigned longest = random() % 4 == 0 && numel < 1000 ? 40 : 7;
    const auto size = static_cast<std::int64_t>(random() % 40 == 0 ? 0 : 1 + random() % longest);
    numel *= size;
    view.sizes.push_back(size);
    view.strides.push_back(stride);
    stride *= std::max<std::int64_t>(size, 1);
    if (random() % 3 == 0) stride += static_cast<std::int64_t>(random() % 4);
  }
  for (std::size_t k = 0; k < ndim; ++k) {
    const std::size_t other = k + random() % (ndim - k);
    if (random() % 2) {
      std::swap(view.sizes[k], view.sizes[other]);
      std::swap(view.strides[k], view.strides[other]);
    }
  }
  if (random() % 2) {
    std::reverse(view.sizes.begin(), view.sizes.end());
    std::reverse(view.strides.begin(), view.strides.end());
  }
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (std::size_t k = 0; k < ndim; ++k) {
    std::int64_t& s = view.strides[k];
    switch (random() % 12) {
      case 0:
      case 1:
        s = 0;
        break;
      case 2:
        s = -s;
        break;
      case 3:
        s = 1 + static_cast<std::int64_t>(random() % 5);
        break;
      case 4:
        s *= 2;
        break;
      default:
        break;
    }
    if (view.sizes[k] > 0) (s < 0 ? low : high) += (view.sizes[k] - 1) * s;
  }
  const auto elements = static_cast<std::size_t>(high - low + 1);
  const std::size_t misalign = random() % 4 == 0 ? random() % 16 : 0;
  view.storage.resize(misalign + elements * element_size(dtype));
  fill(view.storage.data() + misalign, elements, dtype, bad_share, random);
  view.offset = misalign + static_cast<std::size_t>(-low) * element_size(dtype);
  return view;
}

}  // namespace sherlorch::oracle
