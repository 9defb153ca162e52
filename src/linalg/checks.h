// Checks of the arguments of linear algebra, and pieces that its functions share.
#pragma once

#include <utility>

#include <tenon/linalg.h>
#include <tenon/ops.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon::linalg {

/// Throws unless `a` holds float32 or float64 matrices whose sizes LAPACK can count.
void require_matrices(const Tensor& a);
/// The same, and the matrices are square.
void require_square(const Tensor& a);
/// The same for two tensors of one dtype.
void require_same_dtype(const Tensor& a, const Tensor& b);
/// Both with the batch axes that they have in common after broadcasting.
std::pair<Tensor, Tensor> with_common_batch(const Tensor& a, const Tensor& b);
/// Identity matrices [.., n, n] with the batch axes and the dtype of `a` [.., n, any].
Tensor identity_like(const Tensor& a);
/// The matrices with vectors [.., n] on their diagonals.
Tensor diagonals(const Tensor& values);
/// x as [.., 1], and [.., 1, 1]: numbers to multiply vectors and matrices with.
inline Tensor for_vectors(const Tensor& x) { return unsqueeze(x, -1); }
inline Tensor for_matrices(const Tensor& x) { return unsqueeze(unsqueeze(x, -1), -1); }
/// a / b, and 0 where a is 0, also in the gradient.
Tensor quotient_or_zero(const Tensor& a, const Tensor& b);

}  // namespace tenon::linalg
