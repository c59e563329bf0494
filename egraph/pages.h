// Memory for arrays that are small in most graphs and large in some.
//
// Large blocks come from the kernel directly, in huge pages where it has them: random access to a
// hash of a million rows then costs no misses of the page table. Small ones come from the heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace l3c::egraph {

inline constexpr size_t kHugePage = size_t{1} << 21;

// Zeroed pages from the kernel; from kHugePage on they begin where a huge page may, and are huge
// where the kernel has them and they are wished for. A page that is touched for the first time
// costs as much as some hundred instructions, a huge one as a tenth of the pages that it is worth.
void* MapPages(size_t bytes);
// More or fewer of them, which may stand elsewhere then; nothing is copied.
void* RemapPages(void* block, size_t old_bytes, size_t bytes);
void UnmapPages(void* block, size_t bytes);

// For the whole process; true at first. Huge pages that are not full take megabytes that nobody
// counts: too many for a small budget of bytes.
void WishForHugePages(bool wish);

// A block of `size` elements whose bytes are zero at first.
template <typename T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ZeroedArray() = default;
  explicit ZeroedArray(size_t size) : size_(size) {
    if (size == 0) return;
    if (!IsMapped()) {
      data_ = static_cast<T*>(std::calloc(size, sizeof(T)));
      if (data_ == nullptr) throw std::bad_alloc();
      return;
    }
    data_ = static_cast<T*>(MapPages(Bytes()));
  }
  ZeroedArray(const ZeroedArray& other) : ZeroedArray(other.size_) {
    if (size_ != 0) std::memcpy(data_, other.data_, Bytes());
  }
  ZeroedArray(ZeroedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ZeroedArray& operator=(ZeroedArray other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ZeroedArray() {
    if (data_ == nullptr) return;
    if (IsMapped()) {
      UnmapPages(data_, Bytes());
    } else {
      std::free(data_);
    }
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t Bytes() const { return size_ * sizeof(T); }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  bool IsMapped() const { return Bytes() >= kHugePage; }

  T* data_ = nullptr;
  size_t size_ = 0;
};

// A vector that grows by a quarter once it is large: the kernel then moves whole pages, so there is
// neither a copy nor a moment with twice the memory. When it outgrows half a huge page it is copied
// once, into huge ones, and has a whole number of them from then on.
template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(const GrowingArray& other) {
    Reallocate(other.size_);
    if (other.size_ != 0) std::memcpy(data_, other.data_, other.size_ * sizeof(T));
    size_ = other.size_;
  }
  GrowingArray(GrowingArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  GrowingArray& operator=(GrowingArray other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~GrowingArray() { Release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t Bytes() const { return capacity_ * sizeof(T); }
  // What Bytes() is when `size` elements are there.
  size_t BytesAt(size_t size) const {
    size_t capacity = capacity_;
    while (capacity < size) capacity = Grown(capacity);
    return capacity * sizeof(T);
  }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  void push_back(T value) {
    if (size_ == capacity_) Reallocate(Grown(capacity_));
    data_[size_++] = value;
  }
  // `count` more elements, whose values are whatever they are: the first of them.
  T* Append(size_t count) {
    if (size_ + count > capacity_) {
      size_t capacity = capacity_;
      while (capacity < size_ + count) capacity = Grown(capacity);
      Reallocate(capacity);
    }
    size_ += count;
    return data_ + (size_ - count);
  }
  // New elements are `fill`.
  void resize(size_t size, T fill) {
    if (size > capacity_) {
      size_t capacity = capacity_;
      while (capacity < size) capacity = Grown(capacity);
      Reallocate(capacity);
    }
    for (size_t i = size_; i < size; ++i) data_[i] = fill;
    size_ = size;
  }
  void pop_back() { --size_; }
  // Drops the elements from `size` on and the memory that an array of this size would not have.
  void Truncate(size_t size, size_t capacity) {
    size_ = size;
    if (capacity < capacity_) Reallocate(capacity);
  }
  size_t capacity() const { return capacity_; }

 private:
  static constexpr size_t kDoubledBytes = size_t{1} << 18;
  static size_t Grown(size_t capacity) {
    if (capacity == 0) return 16;
    if (capacity * sizeof(T) < kDoubledBytes) return capacity * 2;
    const size_t grown = capacity + capacity / 4;
    if (grown * sizeof(T) <= kHugePage / 2) return grown;
    return (grown * sizeof(T) + kHugePage - 1) / kHugePage * kHugePage / sizeof(T);
  }
  // Whether an array of so many elements stands in pages of its own.
  static constexpr size_t kMinMapped = size_t{1} << 17;
  static bool IsMapped(size_t capacity) { return capacity * sizeof(T) >= kMinMapped; }
  static bool IsHuge(size_t capacity) { return capacity * sizeof(T) > kHugePage / 2; }

  void Reallocate(size_t capacity) {
    void* block = nullptr;
    if (IsMapped(capacity)) {
      const size_t bytes = capacity * sizeof(T);
      const bool moves = IsMapped(capacity_) && IsHuge(capacity_) == IsHuge(capacity);
      block = moves ? RemapPages(data_, Bytes(), bytes) : MapPages(bytes);
      if (!moves) CopyTo(block, capacity);
    } else if (IsMapped(capacity_)) {
      if (capacity != 0 && (block = std::malloc(capacity * sizeof(T))) == nullptr) {
        throw std::bad_alloc();
      }
      CopyTo(block, capacity);
    } else if (capacity == 0) {
      std::free(data_);
    } else {
      block = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
      if (block == nullptr) throw std::bad_alloc();
    }
    data_ = static_cast<T*>(block);
    capacity_ = capacity;
  }
  // Copies what fits and lets go of what was there.
  void CopyTo(void* block, size_t capacity) {
    const size_t count = size_ < capacity ? size_ : capacity;
    if (count != 0) std::memcpy(block, data_, count * sizeof(T));
    Release();
  }
  void Release() {
    if (IsMapped(capacity_)) {
      UnmapPages(data_, Bytes());
    } else {
      std::free(data_);
    }
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// How long an array is and how much room it has, to be cut back to later. Byte budgets count room,
// and shall end a run after an undo where they would have ended it before.
struct VectorMark {
  size_t size = 0;
  size_t capacity = 0;

  VectorMark() = default;
  template <typename Array>
  explicit VectorMark(const Array& values) : size(values.size()), capacity(values.capacity()) {}

  template <typename T>
  void CutBack(GrowingArray<T>* values) const {
    values->Truncate(size, capacity);
  }
  template <typename T>
  void CutBack(std::vector<T>* values) const {
    values->erase(values->begin() + static_cast<ptrdiff_t>(size), values->end());
    if (values->capacity() == capacity) return;
    std::vector<T> shorter;
    shorter.reserve(capacity);
    std::move(values->begin(), values->end(), std::back_inserter(shorter));
    *values = std::move(shorter);
  }
};

}  // namespace l3c::egraph
