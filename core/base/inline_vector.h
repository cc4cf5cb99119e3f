// A vector that keeps its first few elements in itself: for what a history holds many of and each time only one or two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace sherlorch {

// The part of std::vector that is needed. Up to N elements take no block on the heap; beyond that it is one block that
// grows by half. Sizes are 32 bits wide, so that one Run or four numbers cost 8 bytes on top. A longer one throws
// std::length_error. Elements that are plain bytes are copied as such.
//
// Appending is amortised O(1). Copies are as small as their content; a vector that was moved from is empty. What
// changes the size voids iterators and references, and so does moving: the elements may move along. Not thread-safe for
// writers.
template <typename T, std::size_t N>
class InlineVector {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T> && N > 0);

 public:
  // NOLINTBEGIN(readability-identifier-naming): the names that the standard's algorithms ask for
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;
  // NOLINTEND(readability-identifier-naming)

  InlineVector() noexcept = default;
  InlineVector(std::initializer_list<T> items) { assign(items.begin(), items.end()); }
  template <std::forward_iterator Iterator>
  InlineVector(Iterator first, Iterator last) {
    assign(first, last);
  }
  InlineVector(const InlineVector& other) {
    if (!kPlain || other.on_heap()) {
      assign(other.begin(), other.end());
    } else {
      take_bytes(other);
    }
  }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this == &other) return *this;
    clear();
    free_block();
    take(other);
    return *this;
  }
  ~InlineVector() {
    clear();
    free_block();
  }

  // REQUIRES: the range is not part of this vector.
  template <std::forward_iterator Iterator>
  void assign(Iterator first, Iterator last) {
    const auto count = static_cast<std::size_t>(std::distance(first, last));
    clear();
    reserve(count);
    std::uninitialized_copy(first, last, data());
    size_ = static_cast<std::uint32_t>(count);
  }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return capacity_; }
  // What it takes beside itself.
  std::size_t heap_bytes() const noexcept { return on_heap() ? capacity_ * sizeof(T) : 0; }

  T* data() noexcept { return on_heap() ? block() : reinterpret_cast<T*>(bytes_); }
  const T* data() const noexcept { return on_heap() ? block() : reinterpret_cast<const T*>(bytes_); }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }
  T& front() noexcept { return *data(); }
  const T& front() const noexcept { return *data(); }
  T& back() noexcept { return data()[size_ - 1]; }
  const T& back() const noexcept { return data()[size_ - 1]; }

  void reserve(std::size_t count) {
    if (count > capacity_) move_to_block(count);
  }
  // New elements are T().
  void resize(std::size_t count) {
    grow_to(count);
    if (count > size_) {
      std::uninitialized_value_construct(data() + size_, data() + count);
    } else {
      std::destroy(data() + count, end());
    }
    size_ = static_cast<std::uint32_t>(count);
  }
  void clear() noexcept {
    std::destroy(begin(), end());
    size_ = 0;
  }
  // By value: it may be an element of this vector.
  void push_back(T value) {
    grow_to(std::size_t{size_} + 1);
    std::construct_at(data() + size_, std::move(value));
    ++size_;
  }
  T* insert(const T* before, T value) {
    const std::ptrdiff_t at = before - data();
    push_back(std::move(value));
    std::rotate(begin() + at, end() - 1, end());
    return begin() + at;
  }
  T* erase(const T* first, const T* last) noexcept {
    T* const place = data() + (first - data());
    if (first == last) return place;
    T* const left = std::move(data() + (last - data()), end(), place);
    std::destroy(left, end());
    size_ = static_cast<std::uint32_t>(left - data());
    return place;
  }

  bool operator==(const InlineVector& other) const noexcept {
    return size_ == other.size_ && std::equal(begin(), end(), other.begin());
  }

 private:
  static constexpr bool kPlain = std::is_trivially_copyable_v<T>;

  bool on_heap() const noexcept { return capacity_ != N; }
  T* block() const noexcept {
    T* block;
    std::memcpy(static_cast<void*>(&block), bytes_, sizeof(T*));
    return block;
  }
  void free_block() noexcept {
    if (on_heap()) std::allocator<T>().deallocate(block(), capacity_);
  }
  // REQUIRES: this one holds nothing.
  void take(InlineVector& other) noexcept {
    if (kPlain || other.on_heap()) {
      take_bytes(other);
    } else {
      std::uninitialized_move(other.begin(), other.end(), reinterpret_cast<T*>(bytes_));
      size_ = other.size_;
      capacity_ = N;
      std::destroy(other.begin(), other.end());
    }
    other.size_ = 0;
    other.capacity_ = N;
  }
  // The elements, if they are plain, or the address of their block.
  void take_bytes(const InlineVector& other) noexcept {
    std::memcpy(bytes_, other.bytes_, sizeof(bytes_));
    size_ = other.size_;
    capacity_ = other.capacity_;
  }

  void grow_to(std::size_t count) {
    if (count > capacity_) move_to_block(std::max(count, std::size_t{capacity_} + capacity_ / 2 + 1));
  }
  void move_to_block(std::size_t capacity) {
    if (capacity > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("InlineVector");
    T* const block = std::allocator<T>().allocate(capacity);
    std::uninitialized_move(begin(), end(), block);
    std::destroy(begin(), end());
    free_block();
    std::memcpy(bytes_, static_cast<const void*>(&block), sizeof(T*));
    capacity_ = static_cast<std::uint32_t>(capacity);
  }

  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;  // N: no block
  alignas(T) alignas(T*) std::byte bytes_[std::max(N * sizeof(T), sizeof(T*))] = {};
};

}  // namespace sherlorch
