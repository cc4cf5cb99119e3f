// What has happened to storages during a recording, two bits each, for any thread and without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/ids.h"

namespace sherlorch {

// A table by a hash of the storage: two storages may share their notes.
class StorageNotes {
 public:
  enum Note : std::uint64_t {
    // All of it has been written, and scanned: what is bad in it is in the shadow.
    kKnown = 1,
    // Something was written into it, or it was handed out.
    kWritten = 2,
  };

  // True if it has all of these notes. One load.
  bool has(StorageKey storage, std::uint64_t notes) const noexcept {
    const std::uint64_t at = place(storage);
    return (words_[at / kEach].load(std::memory_order_relaxed) >> shift(at) & notes) == notes;
  }

  void add(StorageKey storage, std::uint64_t notes) noexcept {
    const std::uint64_t at = place(storage);
    std::atomic<std::uint64_t>& word = words_[at / kEach];
    // A lost update between two threads only makes one later check look at memory that need not be looked at.
    const std::uint64_t old = word.load(std::memory_order_relaxed);
    const std::uint64_t wanted = old | notes << shift(at);
    if (old == wanted) return;
    const std::uint32_t nth = set_.fetch_add(1, std::memory_order_relaxed);
    if (nth < kMostNoted) noted_[nth].store(static_cast<std::uint16_t>(at / kEach), std::memory_order_relaxed);
    word.store(wanted, std::memory_order_relaxed);
  }

  void remove(StorageKey storage, Note note) noexcept {
    const std::uint64_t at = place(storage);
    words_[at / kEach].fetch_and(~(std::uint64_t{note} << shift(at)), std::memory_order_relaxed);
  }

  // A short recording pays for what it has set only: to go through all words would empty the processor's first cache,
  // at each `with` of a program that has one around every step.
  void clear() noexcept {
    const std::uint32_t set = set_.exchange(0, std::memory_order_relaxed);
    if (set <= kMostNoted) {
      for (std::uint32_t i = 0; i < set; ++i) {
        words_[noted_[i].load(std::memory_order_relaxed)].store(0, std::memory_order_relaxed);
      }
    } else {
      for (auto& word : words_) word.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::uint64_t kEach = 32;  // storages a word
  static constexpr std::uint32_t kMostNoted = 1024;

  static std::uint64_t place(StorageKey storage) noexcept { return storage * 0x9e3779b97f4a7c15ull >> 47; }  // 17 bits
  static std::uint64_t shift(std::uint64_t at) noexcept { return at % kEach * 2; }

  std::array<std::atomic<std::uint64_t>, 4096> words_{};  // 32 KiB
  // Which words hold something, while they are few.
  std::atomic<std::uint32_t> set_{0};
  std::array<std::atomic<std::uint16_t>, kMostNoted> noted_{};
};

}  // namespace sherlorch
