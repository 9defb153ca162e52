// Sorting in little code.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/sort.h"

using namespace tenon;

TEST_CASE("sort: sort_stably sorts as std::stable_sort") {
  std::uint32_t seed = 1;
  for (std::size_t count = 0; count < 70; ++count) {
    std::vector<std::pair<int, std::size_t>> items;
    for (std::size_t i = 0; i < count; ++i)
      items.emplace_back(static_cast<int>((seed = seed * 1664525 + 1013904223) >> 29), i);
    const auto later = [](const auto& a, const auto& b) { return a.first > b.first; };
    auto expected = items;
    std::stable_sort(expected.begin(), expected.end(), later);
    sort_stably(items, later);
    CHECK(items == expected);
    sort_stably(items, later);  // in order already
    CHECK(items == expected);
  }
}

TEST_CASE("sort: sort_stably moves items that cannot be copied") {
  std::vector<std::unique_ptr<int>> items;
  for (const int value : {3, 1, 2}) items.push_back(std::make_unique<int>(value));
  sort_stably(items, [](const auto& a, const auto& b) { return *a < *b; });
  CHECK(*items[0] == 1);
  CHECK(*items[1] == 2);
  CHECK(*items[2] == 3);
}
