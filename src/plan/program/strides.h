// The arithmetic of views: strides of shapes, and strides of the same elements under another shape.
#pragma once

#include <cstdint>

#include "plan/program/region.h"

namespace tenon {

/// Row-major strides of a shape.
void contiguous_strides(const Shape& shape, std::int64_t* stride);
/// Whether a view visits the value's elements in memory order from its start.
bool is_contiguous(const View& view, const Shape& space);
/// Whether two views read the same element at all coordinates of the space.
bool same_elements(const View& a, const View& b, const Shape& space);
/// The strides that read the same elements in the same order under another shape. Returns false if
/// there are none.
bool reshape_strides(const Shape& from, const std::int64_t* stride, const Shape& to,
                     std::int64_t* out);

}  // namespace tenon
