// The arithmetic of views: strides of shapes, and of the same elements under another shape.
#pragma once

#include <cstdint>

#include "plan/region.h"

namespace tenon {

/// Row-major strides of a shape.
void contiguous_strides(const Shape& shape, std::int64_t* stride);
/// Whether a view crosses the space in the order of memory, from the value's start.
bool is_contiguous(const View& view, const Shape& space);
/// Whether two views meet the same element of their values at all coordinates of the space.
bool same_elements(const View& a, const View& b, const Shape& space);
/// The strides that read the same elements in the same order under another shape; false when there
/// are none.
bool reshape_strides(const Shape& from, const std::int64_t* stride, const Shape& to,
                     std::int64_t* out);

}  // namespace tenon
