// Ref: how an operation reads a value, as strides over the value's memory.
#pragma once

#include <cstdint>

#include <tenon/shape.h>

namespace tenon {

/// How an item reads another item: the element at coordinates c of `shape` is at offset + sum c[d]
/// * stride[d] of the base's own row-major memory. For Iota the "memory" is the coordinate itself.
struct Ref {
  int item = -1;
  std::int64_t offset = 0;
  std::int64_t stride[kMaxRank] = {};
  Shape shape;
};

}  // namespace tenon
