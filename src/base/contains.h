// Linear search in short lists of ids or names.
#pragma once

#include <algorithm>
#include <iterator>

namespace tenon {

template <class List, class Sought>
bool contains(const List& list, const Sought& sought) {
  return std::find(std::begin(list), std::end(list), sought) != std::end(list);
}

}  // namespace tenon
