// Whether a list holds something: lists of a few ids or names, by search.
#pragma once

#include <algorithm>
#include <iterator>

namespace tenon {

template <class List, class Sought>
bool contains(const List& list, const Sought& sought) {
  return std::find(std::begin(list), std::end(list), sought) != std::end(list);
}

}  // namespace tenon
