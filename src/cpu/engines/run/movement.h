// Data movement between contiguous arrays (concat also reads runs at a distance): concatenation,
// padding, gather, scatter. Any dtype, by the bytes of an element.
//
// Work is cut by sizes. Indices are checked when they are read: an index outside [0, size),
// negative ones included, throws ValueError. An index of rank 1 applies along all other axes; a
// base of rank 0 is the same everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "graph/attrs.h"
#include "plan/program/engine.h"

namespace tenon::cpu {

struct MovedArray {
  const std::byte* data = nullptr;
  Shape shape;
  DType dtype = DType::Float32;
  std::optional<std::int64_t> pitch =
      {};  // concat: bytes from one run to the next; none: contiguous
};

void concat(std::span<const MovedArray> inputs, int axis, std::byte* out, const Shape& out_shape);
void pad(const MovedArray& x, const PadAttrs& margin, std::byte* out, const Shape& out_shape);
void gather(const MovedArray& x, const MovedArray& index, int axis, std::byte* out);
/// out = base plus the updates, added in their order. Not for 16-bit floating-point dtypes. The
/// base of this function and of scatter() may be `out` itself.
void scatter_add(const MovedArray& base, const MovedArray& index, const MovedArray& updates,
                 int axis, std::byte* out, const Shape& out_shape);
/// out = base with elements replaced by updates; the last update of an element wins.
void scatter(const MovedArray& base, const MovedArray& index, const MovedArray& updates, int axis,
             std::byte* out, const Shape& out_shape);
/// out = the largest or smallest of base and the updates of each element; NaN wins. float32,
/// float64 and int64.
void scatter_extreme(const MovedArray& base, const MovedArray& index, const MovedArray& updates,
                     int axis, bool largest, std::byte* out, const Shape& out_shape);

}  // namespace tenon::cpu
