// Movement of elements between contiguous arrays: concat, pad, gather, scatters. Any dtype, by
// bytes of an element.
//
// Work is cut by sizes. Indices are checked as they are read: one outside [0, size) is a
// ValueError, negative ones included. An index of rank 1 is the same along all other axes, a base
// of rank 0 the same everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/attrs.h"
#include "plan/engine.h"

namespace tenon::cpu {

struct MovedArray {
  const std::byte* data = nullptr;
  Shape shape;
  DType dtype = DType::Float32;
};

void concat(std::span<const MovedArray> inputs, int axis, std::byte* out, const Shape& out_shape);
void pad(const MovedArray& x, const PadAttrs& margin, std::byte* out, const Shape& out_shape);
void gather(const MovedArray& x, const MovedArray& index, int axis, std::byte* out);
/// out = base with the updates added, in order of the updates. Not for 16-bit floating dtypes.
void scatter_add(const MovedArray& base, const MovedArray& index, const MovedArray& updates,
                 int axis, std::byte* out, const Shape& out_shape);
/// out = base with the updates in its place; of equal places the last.
void scatter(const MovedArray& base, const MovedArray& index, const MovedArray& updates, int axis,
             std::byte* out, const Shape& out_shape);

}  // namespace tenon::cpu
