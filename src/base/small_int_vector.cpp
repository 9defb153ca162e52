// Growth beyond the inline storage, as in std::vector.
#include "base/small_int_vector.h"

#include <algorithm>
#include <utility>

namespace tenon {

SmallIntVector::SmallIntVector(const SmallIntVector& other) { assign(other.begin(), other.end()); }
SmallIntVector::SmallIntVector(SmallIntVector&& other) noexcept { *this = std::move(other); }

SmallIntVector& SmallIntVector::operator=(const SmallIntVector& other) {
  if (this != &other) assign(other.begin(), other.end());
  return *this;
}

SmallIntVector& SmallIntVector::operator=(SmallIntVector&& other) noexcept {
  if (this == &other) return *this;
  std::copy_n(other.few_, kFew, few_);
  more_ = std::move(other.more_);
  capacity_ = std::exchange(other.capacity_, kFew);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

void SmallIntVector::push_back(int number) {
  reserve(size_ + 1);
  begin()[size_++] = number;
}

void SmallIntVector::insert(const int* place, int number) {
  const std::ptrdiff_t k = place - begin();
  reserve(size_ + 1);
  int* const list = begin();
  std::copy_backward(list + k, list + size_, list + size_ + 1);
  list[k] = number;
  ++size_;
}

void SmallIntVector::erase(const int* first, const int* last) {
  int* const list = begin();
  std::copy(last, static_cast<const int*>(list + size_), list + (first - list));
  size_ -= static_cast<std::uint32_t>(last - first);
}

void SmallIntVector::assign(const int* first, const int* last) {
  size_ = 0;
  reserve(static_cast<std::uint32_t>(last - first));
  std::copy(first, last, begin());
  size_ = static_cast<std::uint32_t>(last - first);
}

void SmallIntVector::reserve(std::uint32_t count) {
  if (count <= capacity_) return;
  const std::uint32_t capacity = std::max(count, 2 * capacity_);
  std::unique_ptr<int[]> more(new int[capacity]);
  std::copy_n(begin(), size_, more.get());
  more_ = std::move(more);
  capacity_ = capacity;
}

}  // namespace tenon
