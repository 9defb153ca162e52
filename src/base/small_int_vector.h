// A vector of ints with inline storage for four. Graphs have tens of thousands of lists, most with
// one or two numbers; as std::vector each would be an allocation and a cache miss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tenon {

class SmallIntVector {
 public:
  SmallIntVector() = default;
  SmallIntVector(const SmallIntVector& other);
  SmallIntVector(SmallIntVector&& other) noexcept;
  SmallIntVector& operator=(const SmallIntVector& other);
  SmallIntVector& operator=(SmallIntVector&& other) noexcept;
  ~SmallIntVector() = default;

  int* begin() { return more_ ? more_.get() : few_; }
  int* end() { return begin() + size_; }
  const int* begin() const { return more_ ? more_.get() : few_; }
  const int* end() const { return begin() + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int& operator[](std::size_t k) { return begin()[k]; }
  int operator[](std::size_t k) const { return begin()[k]; }

  void push_back(int number);
  /// Inserts before the iterator `place`.
  void insert(const int* place, int number);
  void erase(const int* place) { erase(place, place + 1); }
  void erase(const int* first, const int* last);
  void assign(const int* first, const int* last);
  /// Also frees the memory.
  void clear() { *this = SmallIntVector(); }

 private:
  void reserve(std::uint32_t count);

  static constexpr std::uint32_t kFew = 4;
  int few_[kFew] = {};
  std::uint32_t size_ = 0, capacity_ = kFew;
  std::unique_ptr<int[]> more_;
};

}  // namespace tenon
