// Transforms whose results are matrices: factors of correlations, triangular and definite matrices.
#include <cmath>

#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/linalg.h>
#include <tenon/rearrange.h>

#include "distributions/family.h"

namespace tenon::distributions {
namespace {

// The number of rows of a matrix with this many elements below the diagonal.
std::int64_t rows_with(std::int64_t below) {
  const auto n = static_cast<std::int64_t>(
      std::lround((1 + std::sqrt(1 + 8 * static_cast<double>(below))) / 2));
  if (n * (n - 1) / 2 != below)
    throw make_error<ShapeError>(where("corr_cholesky_transform"), ": vectors of ", below,
                                 " numbers; a matrix of n rows takes n (n - 1) / 2");
  return n;
}

// Row i of y is a point on the upper half of a sphere: y_ij is the part tanh(x_ij) of what the
// elements before it leave of a length of 1.
class CorrCholeskyRule final : public TransformRule {
 public:
  const char* name() const override { return "corr_cholesky_transform"; }
  Tensor forward(const Tensor& x) const override {
    const Tensor part = lower(tanh(x)), left = exp(left_before(x));
    return (part + eye(part.size(-1), {}, part.dtype())) * left;
  }
  Tensor inverse(const Tensor& y) const override {
    const Tensor squares = square(y);
    // What is left before each element, summed from the diagonal, where it is small.
    const Tensor left = flip(cumsum(flip(squares, -1), -1), -1);
    const Tensor part = below(y / sqrt(where(gt(left, 0), left, 1)));
    // The nearest number to 1, where rounding has made it 1.
    const double most = 1 - (y.dtype() == DType::Float64 ? 0x1p-53 : 0x1p-24);
    return atanh(clamp(part, -most, most));
  }
  // The logarithms of the derivatives of the elements: of tanh, and what is left before them.
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor&) const override {
    return sum(log_slope(x) + below(left_before(x)), -1);
  }
  int domain_axes() const override { return 1; }
  int codomain_axes() const override { return 2; }

 private:
  // log(1 - tanh(x)²)
  static Tensor log_slope(const Tensor& x) {
    return logsigmoid(x * 2) + logsigmoid(x * -2) + 2 * std::numbers::ln2;
  }
  // Vectors as the elements below the diagonal, row by row; zeros elsewhere.
  static Tensor lower(const Tensor& x) {
    const std::int64_t n = rows_with(x.size(-1));
    std::vector<std::int64_t> place;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        place.push_back(j < i ? i * (i - 1) / 2 + j : x.size(-1));
    Ints sizes = to_ints(without_last(x.shape(), 1));
    sizes.insert(sizes.end(), {n, n});
    const Tensor with_zero = pad(x, {0, 1});
    return reshape(index_select(with_zero, -1, Tensor::from(place, {n * n})), sizes);
  }
  // The elements below the diagonal as vectors.
  static Tensor below(const Tensor& y) {
    const std::int64_t n = y.size(-1), count = n * (n - 1) / 2;
    std::vector<std::int64_t> place;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < i; ++j) place.push_back(i * n + j);
    Ints sizes = to_ints(without_last(y.shape(), 2));
    sizes.push_back(n * n);
    return index_select(reshape(y, sizes), -1, Tensor::from(place, {count}));
  }
  // Logarithms of what is left in each row before each element.
  static Tensor left_before(const Tensor& x) {
    const Tensor logs = cumsum(lower(log_slope(x)) * 0.5, -1);
    return pad(narrow(logs, -1, 0, logs.size(-1) - 1), {1, 0});
  }
};

[[noreturn]] void refuse_jacobian(const char* transform) {
  throw make_error<NotSupported>(where(transform),
                                 ": several x have the same y, so the transform has no Jacobian "
                                 "determinant and makes no distribution");
}

void require_square_x(const char* transform, const Tensor& x) {
  if (x.rank() < 2 || x.size(-1) != x.size(-2))
    throw make_error<ShapeError>(where(transform), ": takes square matrices, not ", x.shape());
}

class LowerCholeskyRule final : public TransformRule {
 public:
  const char* name() const override { return "lower_cholesky_transform"; }
  Tensor forward(const Tensor& x) const override {
    require_square_x(name(), x);
    return tril(x, -1) + diag_embed(exp(diagonal(x, 0, -2, -1)));
  }
  Tensor inverse(const Tensor& y) const override {
    require_square_x(name(), y);
    return tril(y, -1) + diag_embed(log(diagonal(y, 0, -2, -1)));
  }
  Tensor log_abs_det_jacobian(const Tensor&, const Tensor&) const override {
    refuse_jacobian(name());
  }
  int domain_axes() const override { return 2; }
  int codomain_axes() const override { return 2; }
};

class PositiveDefiniteRule final : public TransformRule {
 public:
  const char* name() const override { return "positive_definite_transform"; }
  Tensor forward(const Tensor& x) const override {
    const Tensor factor = LowerCholeskyRule().forward(x);
    return matmul(factor, transpose(factor, -2, -1));
  }
  Tensor inverse(const Tensor& y) const override {
    return LowerCholeskyRule().inverse(linalg::cholesky(y));
  }
  Tensor log_abs_det_jacobian(const Tensor&, const Tensor&) const override {
    refuse_jacobian(name());
  }
  int domain_axes() const override { return 2; }
  int codomain_axes() const override { return 2; }
};

class AbsRule final : public TransformRule {
 public:
  const char* name() const override { return "abs_transform"; }
  Tensor forward(const Tensor& x) const override { return abs(x); }
  Tensor inverse(const Tensor& y) const override { return y; }
  Tensor log_abs_det_jacobian(const Tensor&, const Tensor&) const override {
    refuse_jacobian(name());
  }
};

class SoftmaxRule final : public TransformRule {
 public:
  const char* name() const override { return "softmax_transform"; }
  Tensor forward(const Tensor& x) const override { return softmax(x, -1); }
  Tensor inverse(const Tensor& y) const override { return log(y); }
  Tensor log_abs_det_jacobian(const Tensor&, const Tensor&) const override {
    refuse_jacobian(name());
  }
  int domain_axes() const override { return 1; }
  int codomain_axes() const override { return 1; }
};

}  // namespace

Transform abs_transform() { return Transform(std::make_shared<AbsRule>()); }
Transform softmax_transform() { return Transform(std::make_shared<SoftmaxRule>()); }
Transform corr_cholesky_transform() { return Transform(std::make_shared<CorrCholeskyRule>()); }
Transform lower_cholesky_transform() { return Transform(std::make_shared<LowerCholeskyRule>()); }
Transform positive_definite_transform() {
  return Transform(std::make_shared<PositiveDefiniteRule>());
}

}  // namespace tenon::distributions
