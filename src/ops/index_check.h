// Indices and lengths that are refused when they run, unless they lie in a range.
#pragma once

#include <cstdint>

#include <tenon/ops.h>

namespace tenon {

/// int64 zeros of the index's shape, to be added to what must not be read otherwise: reading them
/// refuses an index outside [0, size), by the label of whoever asks.
inline Tensor zeros_within(const Tensor& index, std::int64_t size) {
  return index_select(zeros({size}, DType::Int64), 0, index);
}

}  // namespace tenon
