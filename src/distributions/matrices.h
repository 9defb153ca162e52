// Matrices of multivariate normal and Wishart distributions.
#pragma once

#include "distributions/family.h"

namespace tenon::distributions {

/// Throws unless the parameter holds square matrices.
void require_square_matrices(const char* family, const char* name, const Tensor& matrix);
/// Cholesky factors of the inverses.
Tensor factor_of_precision(const Tensor& precision);
/// KL(p ‖ q) of two Wishart distributions.
Tensor wishart_divergence(const State& p, const State& q);
/// The identity matrix of the size and dtype of a square matrix.
Tensor identity_of(const Tensor& matrix);
/// The logarithm of the determinant of a triangular matrix.
Tensor log_determinant(const Tensor& factor);
/// |L⁻¹ v|² for triangular matrices L [.., n, n] and vectors v [.., n].
Tensor squared_distance(const Tensor& factor, const Tensor& difference);
/// The covariance of a LowRankMultivariateNormal.
Tensor low_rank_covariance(const State& d);

}  // namespace tenon::distributions
