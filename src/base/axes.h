// Counts of elements around an axis of a shape: how many elements a copy along the axis moves at
// once, and how often.
#pragma once

#include <cstdint>

#include <tenon/shape.h>

namespace tenon {

/// Product of the extents before the axis.
inline std::int64_t outer_count(const Shape& shape, std::int64_t axis) {
  std::int64_t n = 1;
  for (int d = 0; d < axis; ++d) n *= shape[d];
  return n;
}

/// Product of the extents after the axis.
inline std::int64_t inner_count(const Shape& shape, std::int64_t axis) {
  std::int64_t n = 1;
  for (int d = static_cast<int>(axis) + 1; d < shape.rank(); ++d) n *= shape[d];
  return n;
}

}  // namespace tenon
