// Multivariate normal distributions, by Cholesky factors.
#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/linalg.h>
#include <tenon/rearrange.h>

#include "distributions/matrices.h"

namespace tenon::distributions {
namespace {

constexpr ParameterOf kLocVector{"loc", Range::Any, 1};

// A number as the location, or vectors whose last axis may have size 1, as vectors [.., n].
Tensor location(const char* family, const Argument& loc, std::int64_t n, DType dtype) {
  if (loc.is_number()) return full({n}, loc.number(), dtype);
  require_defined(family, loc.tensor());
  const Tensor at = loc.tensor().rank() == 0 ? unsqueeze(loc.tensor(), 0) : loc.tensor();
  if (at.size(-1) != n && at.size(-1) != 1)
    throw make_error<ShapeError>(where(family), ": loc ", at.shape(),
                                 " does not fit matrices with ", n, " rows");
  return broadcast_to(at, joined(without_last(at.shape(), 1), {n}));
}

std::shared_ptr<const State> normal_of(const Argument& loc, const Tensor& factor) {
  const Called called("MultivariateNormal");
  return made(kMultivariateNormal,
              {location("MultivariateNormal", loc, factor.size(-1), factor.dtype()),
               tril(to_floating(factor))});
}

Tensor variance_of_factor(const State& d) { return sum(square(d[1]), -1); }

// The capacity I + Wᵀ D⁻¹ W of a low-rank covariance, as a Cholesky factor.
struct Capacity {
  explicit Capacity(const State& d)
      : scaled(transpose(d[1] / unsqueeze(d[2], -1), -2, -1)),
        factor(linalg::cholesky(identity_of(matmul(scaled, d[1])) + matmul(scaled, d[1]))) {}
  Tensor scaled, factor;
};
Tensor low_rank_log_determinant(const State& d, const Capacity& capacity) {
  return log_determinant(capacity.factor) * 2 + sum(log(d[2]), -1);
}

}  // namespace

void require_square_matrices(const char* family, const char* name, const Tensor& matrix) {
  require_defined(family, matrix);
  if (matrix.rank() < 2 || matrix.size(-1) != matrix.size(-2))
    throw make_error<ShapeError>(where(family), ": ", name, " is ", matrix.shape(),
                                 ", must be square matrices [.., n, n]");
}

// The inverse of the factor of the reversed matrix, reversed and transposed.
Tensor factor_of_precision(const Tensor& precision) {
  const Tensor reversed = linalg::cholesky(flip(to_floating(precision), {-2, -1}));
  const Tensor inverse = transpose(flip(reversed, {-2, -1}), -2, -1);
  return linalg::solve_triangular(inverse, identity_of(inverse));
}

Tensor identity_of(const Tensor& matrix) {
  return eye(matrix.size(-1), matrix.size(-1), matrix.dtype());
}
Tensor log_determinant(const Tensor& factor) { return sum(log(diagonal(factor, 0, -2, -1)), -1); }

Tensor squared_distance(const Tensor& factor, const Tensor& difference) {
  const Shape batch = without_last(factor.shape(), 2);
  if (batch.numel() == 1) {  // one solution for all vectors, which are columns
    const std::int64_t n = factor.size(-1);
    const Tensor one = reshape(factor, {n, n}), rows = reshape(difference, {-1, n});
    const Tensor solved = linalg::solve_triangular(one, transpose(rows, 0, 1));
    const Shape shape = without_last(difference.shape(), 1);
    return reshape(sum(square(solved), 0), to_ints(shape));
  }
  const Tensor solved = linalg::solve_triangular(factor, unsqueeze(difference, -1));
  return sum(square(squeeze(solved, -1)), -1);
}

const Family kMultivariateNormal{
    .name = "MultivariateNormal",
    .parameters = {kLocVector, {"scale_tril", Range::Any, 2}},
    .value_axes = 1,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Tensor noise = unsqueeze(randn(shape, d[0].dtype(), generator), -1);
          return d[0] + squeeze(matmul(d[1], noise), -1);
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const auto n = static_cast<double>(d.event[0]);
          return squared_distance(d[1], x - d[0]) * -0.5 - log_determinant(d[1]) -
                 n * kHalfLogTwoPi;
        },
    .mean = [](const State& d) { return d[0]; },
    .variance = variance_of_factor,
    .mode = [](const State& d) { return d[0]; },
    .entropy =
        [](const State& d) {
          const auto n = static_cast<double>(d.event[0]);
          return log_determinant(d[1]) + n * (0.5 + kHalfLogTwoPi);
        },
};

MultivariateNormal::MultivariateNormal(const Argument& loc, const CovarianceMatrix& covariance)
    : Distribution([&] {
        require_square_matrices("MultivariateNormal", "covariance", covariance.value);
        return normal_of(loc, linalg::cholesky(to_floating(covariance.value)));
      }()) {}
MultivariateNormal::MultivariateNormal(const Argument& loc, const PrecisionMatrix& precision)
    : Distribution([&] {
        require_square_matrices("MultivariateNormal", "precision", precision.value);
        return normal_of(loc, factor_of_precision(precision.value));
      }()) {}
MultivariateNormal::MultivariateNormal(const Argument& loc, const ScaleTril& scale_tril)
    : Distribution([&] {
        require_square_matrices("MultivariateNormal", "scale_tril", scale_tril.value);
        return normal_of(loc, scale_tril.value);
      }()) {}
Tensor MultivariateNormal::covariance_matrix() const {
  return matmul(scale_tril(), transpose(scale_tril(), -2, -1));
}
Tensor MultivariateNormal::precision_matrix() const {
  return linalg::cholesky_inverse(scale_tril());
}

const Family kLowRankMultivariateNormal{
    .name = "LowRankMultivariateNormal",
    .parameters = {kLocVector, {"cov_factor", Range::Any, 2}, {"cov_diag", Range::Positive, 1}},
    .value_axes = 1,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Shape few = joined(without_last(shape, 1), {d[1].size(-1), 1});
          const Tensor shared_noise = matmul(d[1], randn(few, d[0].dtype(), generator));
          const Tensor own_noise = sqrt(d[2]) * randn(shape, d[0].dtype(), generator);
          return d[0] + squeeze(shared_noise, -1) + own_noise;
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const auto n = static_cast<double>(d.event[0]);
          const Capacity capacity(d);
          const Tensor difference = x - d[0];
          const Tensor reduced = squeeze(matmul(capacity.scaled, unsqueeze(difference, -1)), -1);
          const Tensor distance =
              sum(square(difference) / d[2], -1) - squared_distance(capacity.factor, reduced);
          return (distance + low_rank_log_determinant(d, capacity)) * -0.5 - n * kHalfLogTwoPi;
        },
    .mean = [](const State& d) { return d[0]; },
    .variance = [](const State& d) { return variance_of_factor(d) + d[2]; },
    .mode = [](const State& d) { return d[0]; },
    .entropy =
        [](const State& d) {
          const auto n = static_cast<double>(d.event[0]);
          return low_rank_log_determinant(d, Capacity(d)) * 0.5 + n * (0.5 + kHalfLogTwoPi);
        },
};

Tensor low_rank_covariance(const State& d) {
  return matmul(d[1], transpose(d[1], -2, -1)) + diag_embed(d[2]);
}

LowRankMultivariateNormal::LowRankMultivariateNormal(const Argument& loc, const Tensor& cov_factor,
                                                     const Tensor& cov_diag)
    : Distribution([&] {
        constexpr const char* kName = "LowRankMultivariateNormal";
        const Called called(kName);
        require_defined(kName, cov_factor, cov_diag);
        if (cov_factor.rank() < 2 || cov_diag.rank() < 1 ||
            cov_diag.size(-1) != cov_factor.size(-2))
          throw make_error<ShapeError>(where(kName), ": cov_factor is ", cov_factor.shape(),
                                       " and cov_diag ", cov_diag.shape(),
                                       "; they must be [.., n, r] and [.., n]");
        const Tensor at = location(kName, loc, cov_factor.size(-2), cov_factor.dtype());
        return made(kLowRankMultivariateNormal, {at, cov_factor, cov_diag});
      }()) {}
Tensor LowRankMultivariateNormal::covariance_matrix() const { return low_rank_covariance(state()); }

}  // namespace tenon::distributions
