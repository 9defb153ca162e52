// Reductions in the epilogue of a contraction: over the whole result, or one result for each
// channel. Helpers for engines that support both or only the first.
#pragma once

#include <algorithm>

#include "plan/program/region.h"

namespace tenon {

/// Whether a reduction keeps one axis and yields one number for each entry of that axis.
inline bool keeps_channels(const MapReduce& reduce, const Shape& space) {
  for (int d = 0; d < space.rank(); ++d)
    if (space[d] != 1 && (reduce.axes >> d & 1u) == 0) return true;
  return false;
}

/// Whether an epilogue has per-channel reductions. Engines that support them accept no other kind
/// of reduction beside them.
inline bool reduces_channels(const Region& region) {
  const MapProgram& map = region.map;
  return std::any_of(map.reduces.begin(), map.reduces.end(),
                     [&map](const MapReduce& reduce) { return keeps_channels(reduce, map.space); });
}

/// Capabilities::no_reductions of engines that only reduce over the whole result.
inline const char* no_channel_sums(const Region& region) {
  return reduces_channels(region) ? "reduces whole results only, not each channel" : nullptr;
}

}  // namespace tenon
