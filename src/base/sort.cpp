// The one instance of std::stable_sort behind sort_stably().
#include "base/sort.h"

#include <algorithm>
#include <numeric>

namespace tenon {

std::vector<std::size_t> stable_order(std::size_t count,
                                      bool (*before)(const void* context, std::size_t i,
                                                     std::size_t j),
                                      const void* context) {
  std::size_t sorted = 1;
  while (sorted < count && !before(context, sorted, sorted - 1)) ++sorted;
  if (sorted >= count) return {};
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return before(context, i, j); });
  return order;
}

}  // namespace tenon
