// Solutions by the LU factors of a matrix, with gradients.
#pragma once

#include <tenon/tensor.h>

namespace tenon::linalg {

/// Matrices, and their LU factors.
struct Solved {
  Tensor a, lu, pivots;

  /// x with a x = b, or with aᵀ x = b if `transposed`, for b [.., n, k] with equal batch axes.
  Tensor solve(const Tensor& b, bool transposed = false) const;
};

}  // namespace tenon::linalg
