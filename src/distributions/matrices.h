// Matrices of multivariate normal distributions.
#pragma once

#include "distributions/family.h"

namespace tenon::distributions {

/// The identity matrix of the size and dtype of a square matrix.
Tensor identity_of(const Tensor& matrix);
/// The logarithm of the determinant of a triangular matrix.
Tensor log_determinant(const Tensor& factor);
/// |L⁻¹ v|² for triangular matrices L [.., n, n] and vectors v [.., n].
Tensor squared_distance(const Tensor& factor, const Tensor& difference);
/// The covariance of a LowRankMultivariateNormal.
Tensor low_rank_covariance(const State& d);

}  // namespace tenon::distributions
