// What is known of the object at an address, for caches on the hot path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sherlorch {

// Open addressing with linear probes, at most half full. It grows with the program and throws nothing out: a lookup of
// what was once inserted always finds it, so a warm program pays neither for collisions nor for memory. Only past
// kMostEntries, where a program makes code without end, does it forget everything and begin anew.
//
// Whether the object at an address is still the same one is for the caller to tell. Not thread-safe: one a thread.
template <class Value>
class AddressCache {
 public:
  static constexpr std::size_t kMostEntries = std::size_t{1} << 14;

  AddressCache() : slots_(kFirstSlots) {}

  // Null if the address was never inserted. Neither allocates nor locks; a few nanoseconds.
  Value* find(const void* address) noexcept {
    for (std::size_t i = home(address);; ++i) {
      Slot& slot = slots_[i & mask_];
      if (slot.address == nullptr) return nullptr;
      if (slot.address == address) return &slot.value;
    }
  }

  // The value at `address`, a new one if there is none. REQUIRES: address is not null. Voids pointers that were given
  // before.
  Value& insert(const void* address) {
    if (Value* found = find(address)) return *found;
    if (2 * (entries_ + 1) > slots_.size()) grow();
    return place(address);
  }

  std::size_t size() const noexcept { return entries_; }

 private:
  struct Slot {
    const void* address = nullptr;
    Value value{};
  };
  static constexpr std::size_t kFirstSlots = 64;

  // Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, 6.4): the upper half of the product.
  std::size_t home(const void* address) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(address) * 0x9e3779b97f4a7c15ull) >> 32;
  }

  Value& place(const void* address) {
    std::size_t i = home(address);
    while (slots_[i & mask_].address != nullptr) ++i;
    ++entries_;
    Slot& slot = slots_[i & mask_];
    slot.address = address;
    return slot.value;
  }

  void grow() {
    const bool full = entries_ >= kMostEntries;
    std::vector<Slot> old(full ? kFirstSlots : 2 * slots_.size());
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    entries_ = 0;
    if (full) return;
    for (Slot& slot : old) {
      if (slot.address != nullptr) place(slot.address) = std::move(slot.value);
    }
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = kFirstSlots - 1;
  std::size_t entries_ = 0;
};

}  // namespace sherlorch
