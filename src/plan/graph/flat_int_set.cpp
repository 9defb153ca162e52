// A short sorted list is faster to search and to shift than a tree is to walk.
#include "plan/graph/flat_int_set.h"

#include <algorithm>

namespace tenon {

bool FlatIntSet::contains(int number) const { return std::binary_search(begin(), end(), number); }

bool FlatIntSet::insert(int number) {
  const int* place = std::lower_bound(begin(), end(), number);
  if (place != end() && *place == number) return false;
  numbers_.insert(place, number);
  return true;
}

void FlatIntSet::insert(const FlatIntSet& others) {
  for (const int number : others) insert(number);
}

void FlatIntSet::erase(int number) {
  const int* place = std::lower_bound(begin(), end(), number);
  if (place != end() && *place == number) numbers_.erase(place);
}

}  // namespace tenon
