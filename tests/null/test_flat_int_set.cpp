// FlatIntSet against std::set.
#include "plan/graph/flat_int_set.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

using namespace tenon;

TEST_CASE("flat int set: equals std::set") {
  std::mt19937 random(11);
  FlatIntSet numbers, others;
  std::set<int> plain;
  for (int k = 0; k < 5000; ++k) {
    const int number = static_cast<int>(random() % 40);
    if (random() % 2 == 0) {
      CHECK(numbers.insert(number) == plain.insert(number).second);
    } else {
      numbers.erase(number);
      plain.erase(number);
    }
    if (k % 100 == 0) {
      others = FlatIntSet();
      for (int j = 0; j < 3; ++j) others.insert(static_cast<int>(random() % 40));
      numbers.insert(others);
      plain.insert(others.begin(), others.end());
    }
    CHECK(numbers.contains(number) == (plain.count(number) != 0));
    CHECK(numbers.size() == plain.size());
    CHECK(std::equal(numbers.begin(), numbers.end(), plain.begin(), plain.end()));
  }
}
