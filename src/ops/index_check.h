// Range checks of indices and lengths at run time.
#pragma once

#include <cstdint>

#include <tenon/ops.h>

namespace tenon {

/// int64 zeros of the index's shape. Adding them to a tensor makes every read of that tensor check
/// the index: an index outside [0, size) is refused with the label of the calling op.
inline Tensor zeros_within(const Tensor& index, std::int64_t size) {
  return index_select(zeros({size}, DType::Int64), 0, index);
}

}  // namespace tenon
