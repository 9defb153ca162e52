// A small set of integers in ascending order, for tens of members, not thousands.
#pragma once

#include <cstddef>

#include "base/small_int_vector.h"

namespace tenon {

class FlatIntSet {
 public:
  const int* begin() const { return numbers_.begin(); }
  const int* end() const { return numbers_.end(); }
  std::size_t size() const { return numbers_.size(); }
  bool empty() const { return numbers_.empty(); }
  bool contains(int number) const;
  /// Returns false if the number is already a member.
  bool insert(int number);
  void insert(const FlatIntSet& others);
  void erase(int number);

 private:
  SmallIntVector numbers_;
};

}  // namespace tenon
