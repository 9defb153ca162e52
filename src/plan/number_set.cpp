// A sorted list is searched and moved sooner than a tree is walked, as long as it is short.
#include "plan/number_set.h"

#include <algorithm>

namespace tenon {

bool NumberSet::contains(int number) const { return std::binary_search(begin(), end(), number); }

bool NumberSet::insert(int number) {
  const int* place = std::lower_bound(begin(), end(), number);
  if (place != end() && *place == number) return false;
  numbers_.insert(place, number);
  return true;
}

void NumberSet::insert(const NumberSet& others) {
  for (const int number : others) insert(number);
}

void NumberSet::erase(int number) {
  const int* place = std::lower_bound(begin(), end(), number);
  if (place != end() && *place == number) numbers_.erase(place);
}

}  // namespace tenon
