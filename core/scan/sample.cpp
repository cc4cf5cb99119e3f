#include "core/scan/sample.h"

#include <algorithm>

namespace sherlorch {

ScanResult scan_sample(const void* data, std::size_t count, DType dtype, std::uint32_t every) noexcept {
  const std::size_t item = element_size(dtype);
  if (every <= 1 || item == 0 || count == 0) return scan_contiguous(data, count, dtype);
  const std::size_t block = static_cast<std::size_t>(kSampleBlockBytes) / item;
  const auto* bytes = static_cast<const unsigned char*>(data);
  ScanResult result;
  const auto look = [&](std::size_t first) {
    const ScanResult part = scan_contiguous(bytes + first * item, std::min(block, count - first), dtype);
    result.nonfinite |= part.nonfinite;
    result.largest = std::max(result.largest, part.largest);
  };
  for (std::size_t first = 0; first < count && !result.nonfinite; first += every * block) look(first);
  if (!result.nonfinite) look(count - std::min(block, count));
  return result;
}

}  // namespace sherlorch
