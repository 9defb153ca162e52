// A sorted list is searched and moved sooner than a tree is walked, as long as it is short.
#include "plan/flat_int_set.h"

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
