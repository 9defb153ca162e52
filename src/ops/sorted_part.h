// A part of a sorted axis, for order statistics: elements from the middle cost less than a sort.
#pragma once

#include <tenon/ops.h>

namespace tenon {

/// Elements [first, first + count) of x after sort() along an axis, and their indices.
ValuesAndIndices sorted_part(const Tensor& x, int axis, std::int64_t first, std::int64_t count,
                             bool descending = false);

}  // namespace tenon
