// Sorting in little code, for lists of some hundred items: std::stable_sort takes 4 KB for every
// type and comparison.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tenon {

/// The indices from 0 to count - 1, stably sorted: before(context, i, j) says whether item i must
/// come before item j. Empty if the items are in order.
std::vector<std::size_t> stable_order(std::size_t count,
                                      bool (*before)(const void* context, std::size_t i,
                                                     std::size_t j),
                                      const void* context);

/// Sorts the items as std::stable_sort does.
template <class T, class Before>
void sort_stably(std::vector<T>& items, const Before& before) {
  const auto compare = [&](std::size_t i, std::size_t j) { return before(items[i], items[j]); };
  const auto called = [](const void* context, std::size_t i, std::size_t j) -> bool {
    return (*static_cast<decltype(&compare)>(context))(i, j);
  };
  const std::vector<std::size_t> order = stable_order(items.size(), called, &compare);
  if (order.empty()) return;
  std::vector<T> sorted;
  sorted.reserve(items.size());
  for (const std::size_t i : order) sorted.push_back(std::move(items[i]));
  items = std::move(sorted);
}

}  // namespace tenon
