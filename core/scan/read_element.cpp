#include <cstdint>
#include <cstring>

#include "core/scan/format.h"
#include "core/scan/scan.h"

namespace sherlorch {
namespace {

template <typename U>
std::uint64_t part_at(const unsigned char* p) noexcept {
  U bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}

std::uint64_t part_at(const unsigned char* p, std::size_t size) noexcept {
  switch (size) {
    case 1:
      return part_at<std::uint8_t>(p);
    case 2:
      return part_at<std::uint16_t>(p);
    case 4:
      return part_at<std::uint32_t>(p);
    default:
      return part_at<std::uint64_t>(p);
  }
}

}  // namespace

ElementValue read_element(const void* element, DType dtype) noexcept {
  const scan::Format& format = scan::format_of(dtype);
  if (format.part_size == 0) return {};
  const auto* p = static_cast<const unsigned char*>(element);
  ElementValue value;
  value.real = scan::decode_part(part_at(p, format.part_size), dtype);
  if (format.parts == 2) {
    value.imag = scan::decode_part(part_at(p + format.part_size, format.part_size), dtype);
  }
  return value;
}

}  // namespace sherlorch
