// Distributions of matrices: Wishart, and Cholesky factors of correlations.
#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/linalg.h>
#include <tenon/rearrange.h>

#include "distributions/matrices.h"

namespace tenon::distributions {
namespace {

constexpr std::size_t kFactor = 0, kDf = 1;  // parameters of kWishart

double rows_of(const State& d) { return static_cast<double>(d.event[0]); }
Tensor with_matrix_axes(const Tensor& x) { return unsqueeze(unsqueeze(x, -1), -1); }
Tensor diagonal_of(const Tensor& matrix) { return diagonal(matrix, 0, -2, -1); }

// The sum of digamma(x - i / 2) for i = 0 .. n - 1, the derivative of mvlgamma().
Tensor mvdigamma(const Tensor& x, std::int64_t n) {
  const Tensor halves = arange(0, n).to(x.dtype()) * 0.5;
  return sum(digamma(unsqueeze(x, -1) - halves), -1);
}

// Half of the logarithm of the determinant of 2 V, for the scale matrix V.
Tensor half_log_determinant(const State& d) {
  return log_determinant(d[kFactor]) + rows_of(d) * (std::numbers::ln2 / 2);
}

Tensor wishart_covariance(const State& d) {
  return matmul(d[kFactor], transpose(d[kFactor], -2, -1));
}

// Bartlett's decomposition: chi-squared numbers on the diagonal, normal numbers below it.
Tensor wishart_draw(const State& d, const Shape& shape, const OptionalGenerator& generator) {
  const DType dtype = d[kDf].dtype();
  const std::int64_t n = d.event[0];
  const Shape vectors = without_last(shape, 1);
  const Tensor half = (unsqueeze(d[kDf], -1) - arange(0, n).to(dtype)) * 0.5;
  const Tensor log_chi2 = log_gamma_sample(broadcast_to(half, vectors), generator);
  const Tensor spread = exp((log_chi2 + std::numbers::ln2) * 0.5);
  const Tensor noise = tril(randn(shape, dtype, generator), -1) + diag_embed(spread);
  const Tensor factor = matmul(d[kFactor], noise);
  return matmul(factor, transpose(factor, -2, -1));
}

// Matrices that are not symmetric, up to rounding, or not positive definite.
Tensor not_definite(const Tensor& x) {
  const Tensor largest = amax(abs(x), {-2, -1});
  const Tensor skew = amax(abs(x - transpose(x, -2, -1)), {-2, -1});
  return ne(linalg::cholesky_ex(x).info, 0) | gt(skew, largest * 1e-3);
}

Tensor wishart_log_prob(const State& d, const Tensor& x) {
  const Tensor outside = not_definite(detach(x));
  const Tensor inside = where(with_matrix_axes(outside), identity_of(x), x);
  const Tensor nu = d[kDf];
  const Tensor log_det = log_determinant(linalg::cholesky(inside)) * 2;
  const Tensor trace = sum(diagonal_of(linalg::cholesky_solve(inside, d[kFactor])), -1);
  const Tensor density = (nu - (rows_of(d) + 1)) * 0.5 * log_det - trace * 0.5 -
                         nu * half_log_determinant(d) - mvlgamma(nu * 0.5, d.event[0]);
  return where(outside, -kInfinite, density);
}

std::shared_ptr<const State> wishart(const Argument& df, const Tensor& factor) {
  constexpr const char* kName = "Wishart";
  const Called called(kName);
  const auto n = static_cast<double>(factor.size(-1));
  if (df.is_number() && !(df.number() > n - 1))
    throw make_error<ValueError>(where(kName), ": df is ", df.number(), ", must be above ", n - 1,
                                 " for matrices with ", factor.size(-1), " rows");
  return made(kWishart, {tril(to_floating(factor)), df});
}

Tensor row_norms(const Tensor& x) { return sum(square(x), -1); }

// Each row is a point on the upper half of a sphere: a direction, and the square of its distance
// from the axis, which is a beta number ("onion" method).
Tensor lkj_draw(const State& d, const Shape& shape, const OptionalGenerator& generator) {
  const DType dtype = d[0].dtype();
  const std::int64_t n = d.number;
  const Tensor below = arange(0, n - 1).to(dtype);  // of the rows after the first one
  const Tensor concentration1 = below * 0.5 + 0.5;
  const Tensor marginal = d[0] + (static_cast<double>(n) - 2) * 0.5;
  const Tensor concentration0 = unsqueeze(marginal, -1) - below * 0.5;
  const Beta beta(concentration1, concentration0);
  const Tensor squares = beta.sample(without_last(shape, 2 + d.batch.rank()), generator);
  const Tensor normals = narrow(tril(randn(shape, dtype, generator), -1), -2, 1, n - 1);
  const Tensor lengths = sqrt(sum(square(normals), -1, true));
  const Tensor rows = normals / lengths * sqrt(unsqueeze(squares, -1));
  const Tensor lower = pad(rows, {0, 0, 1, 0});
  const double least = dtype == DType::Float64 ? 0x1p-1022 : 0x1p-126;
  return lower + diag_embed(sqrt(clamp_min(1 - row_norms(lower), least)));
}

Tensor not_a_correlation_factor(const State&, const Tensor& x) {
  const Tensor uneven = any(gt(abs(row_norms(x) - 1), 1e-3), -1);
  const Tensor above = any(any(ne(triu(x, 1), 0), -1), -1);
  return any(le(diagonal_of(x), 0), -1) | uneven | above;
}

Tensor lkj_log_prob(const State& d, const Tensor& x) {
  const std::int64_t n = d.number;
  const auto rest = static_cast<double>(n) - 1;
  const Tensor logs = log(narrow(diagonal_of(x), -1, 1, n - 1));
  const Tensor order = unsqueeze((d[0] - 1) * 2, -1) + arange(n - 2, -1, -1).to(d[0].dtype());
  const Tensor alpha = d[0] + rest * 0.5;
  const Tensor normalizer =
      mvlgamma(alpha - 0.5, n - 1) - lgamma(alpha) * rest + rest * 0.5 * std::log(std::numbers::pi);
  return sum(order * logs, -1) - normalizer;
}

}  // namespace

const Family kWishart{
    .name = "Wishart",
    .parameters = {{"scale_tril", Range::Any, 2}, {"df", Range::Positive}},
    .value_axes = 2,
    .in_double = true,
    .reparameterized = true,
    .draw = wishart_draw,
    .log_prob = wishart_log_prob,
    .mean = [](const State& d) { return with_matrix_axes(d[kDf]) * wishart_covariance(d); },
    .variance =
        [](const State& d) {
          const Tensor v = wishart_covariance(d), spread = diagonal_of(v);
          return with_matrix_axes(d[kDf]) *
                 (square(v) + unsqueeze(spread, -1) * unsqueeze(spread, -2));
        },
    .mode =
        [](const State& d) {
          const Tensor factor = d[kDf] - (rows_of(d) + 1);
          return with_matrix_axes(where(gt(factor, 0), factor, kNotANumber)) *
                 wishart_covariance(d);
        },
    .entropy =
        [](const State& d) {
          const double n = rows_of(d);
          const Tensor nu = d[kDf], half = nu * 0.5;
          return half_log_determinant(d) * (n + 1) + mvlgamma(half, d.event[0]) -
                 (nu - (n + 1)) * 0.5 * mvdigamma(half, d.event[0]) + half * n;
        },
};
Wishart::Wishart(const Argument& df, const CovarianceMatrix& scale)
    : Distribution([&] {
        require_square_matrices("Wishart", "covariance", scale.value);
        return wishart(df, linalg::cholesky(to_floating(scale.value)));
      }()) {}
Wishart::Wishart(const Argument& df, const PrecisionMatrix& inverse)
    : Distribution([&] {
        require_square_matrices("Wishart", "precision", inverse.value);
        return wishart(df, factor_of_precision(inverse.value));
      }()) {}
Wishart::Wishart(const Argument& df, const ScaleTril& scale_tril)
    : Distribution([&] {
        require_square_matrices("Wishart", "scale_tril", scale_tril.value);
        return wishart(df, scale_tril.value);
      }()) {}
Tensor Wishart::covariance_matrix() const { return wishart_covariance(state()); }
Tensor Wishart::precision_matrix() const { return linalg::cholesky_inverse(scale_tril()); }

Tensor wishart_divergence(const State& p, const State& q) {
  if (p.event != q.event)
    throw make_error<ShapeError>(where("kl_divergence"), ": matrices ", p.event, " and ", q.event);
  const Tensor half_p = p[kDf] * 0.5, half_q = q[kDf] * 0.5;
  const Shape batch = broadcast_shapes(p.batch, q.batch, "kl_divergence");
  const Tensor relative =
      linalg::solve_triangular(broadcast_to(q[kFactor], joined(batch, p.event)),
                               broadcast_to(p[kFactor], joined(batch, p.event)));
  const Tensor distance = sum(square(relative), {-2, -1}) - rows_of(p);
  const Tensor shift = mvlgamma(half_q, p.event[0]) - mvlgamma(half_p, p.event[0]);
  return q[kDf] * (log_determinant(q[kFactor]) - log_determinant(p[kFactor])) + half_p * distance +
         shift + (half_p - half_q) * mvdigamma(half_p, p.event[0]);
}

static const Family kLKJCholesky{
    .name = "LKJCholesky",
    .parameters = {{"concentration", Range::Positive}},
    .in_double = true,
    .draw = lkj_draw,
    .log_prob = lkj_log_prob,
    .outside = not_a_correlation_factor,
    .inside = 1,
};
LKJCholesky::LKJCholesky(std::int64_t dim, const Argument& concentration)
    : Distribution([&] {
        if (dim < 2)
          throw make_error<ValueError>(where("LKJCholesky"), ": dim is ", dim,
                                       ", must be 2 or more");
        State out = state_of(kLKJCholesky, {concentration});
        out.number = dim;
        out.event = {dim, dim};
        return shared(std::move(out));
      }()) {}
std::int64_t LKJCholesky::dim() const { return state().number; }

}  // namespace tenon::distributions
