// What a contraction's epilogue reduces of the result: the whole of it, or each of its channels.
#pragma once

#include <algorithm>

#include "plan/region.h"

namespace tenon {

/// Whether a reduction gives a number for each entry of an axis that it keeps.
inline bool keeps_channels(const MapReduce& reduce, const Shape& space) {
  for (int d = 0; d < space.rank(); ++d)
    if (space[d] != 1 && (reduce.axes >> d & 1u) == 0) return true;
  return false;
}

/// Whether an epilogue has such reductions; engines that take them take no others beside them.
inline bool reduces_channels(const Region& region) {
  const MapProgram& map = region.map;
  return std::any_of(map.reduces.begin(), map.reduces.end(),
                     [&map](const MapReduce& reduce) { return keeps_channels(reduce, map.space); });
}

/// What engines say that reduce the whole only (Capabilities::no_reductions).
inline const char* no_channel_sums(const Region& region) {
  return reduces_channels(region) ? "reduces whole results only" : nullptr;
}

}  // namespace tenon
