// Products of several matrices, powers and norms of vectors, and products with two vectors.
#include <cmath>
#include <limits>
#include <vector>

#include <tenon/creation.h>
#include <tenon/elementwise.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/rearrange.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// The matrix after which the product of matrices i to j is split, for all i < j.
class Splits {
 public:
  explicit Splits(const std::vector<Tensor>& matrices)
      : count_(matrices.size()), cost_(count_ * count_, 0), split_(count_ * count_, 0) {
    const auto rows = [&](std::size_t k) { return static_cast<double>(matrices[k].size(0)); };
    const auto columns = [&](std::size_t k) { return static_cast<double>(matrices[k].size(1)); };
    for (std::size_t length = 1; length < count_; ++length)
      for (std::size_t i = 0; i + length < count_; ++i) {
        const std::size_t j = i + length;
        cost_[i * count_ + j] = std::numeric_limits<double>::infinity();
        for (std::size_t k = i; k < j; ++k) {
          const double cost = cost_[i * count_ + k] + cost_[(k + 1) * count_ + j] +
                              rows(i) * columns(k) * columns(j);
          if (cost < cost_[i * count_ + j])
            cost_[i * count_ + j] = cost, split_[i * count_ + j] = k;
        }
      }
  }
  Tensor product(const std::vector<Tensor>& matrices, std::size_t i, std::size_t j) const {
    if (i == j) return matrices[i];
    const std::size_t k = split_[i * count_ + j];
    return matmul(product(matrices, i, k), product(matrices, k + 1, j));
  }

 private:
  std::size_t count_;
  std::vector<double> cost_;
  std::vector<std::size_t> split_;
};

}  // namespace

Tensor vecdot(const Tensor& a, const Tensor& b, int axis) {
  const Called called("vecdot");
  const auto [x, y] = aligned("vecdot", a, b);
  if (x.rank() == 0)
    throw make_error<ShapeError>(where("vecdot"), ": takes an axis or more, not ", a.shape(),
                                 " and ", b.shape());
  const int d = axis_of("vecdot", axis, x.rank());
  return cast(sum(x * y, {d}), x.dtype());
}

Tensor multi_dot(TensorList matrices) {
  const Called called("multi_dot");
  const OpPlace at = where("multi_dot");
  const std::size_t n = matrices.size();
  if (n < 2) throw make_error<ValueError>(at, ": takes two matrices or more, not ", n);
  std::vector<Tensor> all(matrices.begin(), matrices.end());
  for (std::size_t k = 0; k < n; ++k)
    if (!all[k].defined()) refuse_undefined("multi_dot", k, n);
  const bool row = all[0].rank() == 1, column = all[n - 1].rank() == 1;
  if (row) all[0] = unsqueeze(all[0], 0);
  if (column) all[n - 1] = unsqueeze(all[n - 1], 1);
  for (std::size_t k = 0; k < n; ++k)
    if (all[k].rank() != 2 || (k > 0 && all[k - 1].size(1) != all[k].size(0)))
      throw make_error<ShapeError>(at, ": matrix ", k, " is ", matrices[k].shape(),
                                   "; it must be a matrix whose rows are the columns of the one "
                                   "before");
  Tensor out = Splits(all).product(all, 0, n - 1);
  if (column) out = squeeze(out, 1);
  return row ? squeeze(out, 0) : out;
}

Tensor vander(const Tensor& x, std::optional<std::int64_t> count) {
  const Called called("vander");
  require_defined("vander", x);
  if (x.rank() == 0 && !count)
    throw make_error<ShapeError>(where("vander"), ": x is [], so give a count of powers");
  if (x.rank() == 0) return vander(reshape(x, {1}), count);
  const std::int64_t n = count.value_or(x.size(-1));
  if (n < 0) throw make_error<ValueError>(where("vander"), ": ", n, " powers, must be at least 0");
  Shape empty = x.shape();
  empty.push_back(0);
  if (n == 0) return zeros(empty, is_floating(x.dtype()) ? x.dtype() : DType::Int64);
  const Tensor base = is_floating(x.dtype()) ? x : cast(x, DType::Int64);
  std::vector<Tensor> powers{ones_like(base)};
  for (std::int64_t k = 1; k < n; ++k) powers.push_back(powers.back() * base);
  return stack(powers, -1);
}

Tensor renorm(const Tensor& x, double p, int axis, double most) {
  const Called called("renorm");
  const OpPlace at = where("renorm");
  require_defined("renorm", x);
  if (x.rank() < 2) throw make_error<ShapeError>(at, ": takes two axes or more, not ", x.shape());
  if (!(p > 0) || !(most >= 0))
    throw make_error<ValueError>(at, ": p is ", p, " and the largest norm ", most,
                                 "; p must be positive, the norm not negative");
  const int a = axis_of("renorm", axis, x.rank());
  Axes others;
  for (int d = 0; d < x.rank(); ++d)
    if (d != a) others.push_back(d);
  const bool upcasts = item_size(x.dtype()) == 2;
  const Tensor in = upcasts ? cast(x, DType::Float32) : x, norm = vector_norm(in, p, others, true);
  const Tensor scale = where(gt(norm, most), most / (norm + 1e-7), 1.0);
  return cast(in * scale, x.dtype());
}

Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias) {
  const Called called("bilinear");
  require_defined("bilinear", a, b, weight);
  bool fits = weight.rank() == 3 && a.rank() == b.rank() && a.rank() >= 1 &&
              a.size(-1) == weight.size(1) && b.size(-1) == weight.size(2);
  for (int d = 0; fits && d + 1 < a.rank(); ++d) fits = a.size(d) == b.size(d);
  if (!fits)
    throw make_error<ShapeError>(where("bilinear"), ": ", a.shape(), " and ", b.shape(),
                                 " with a weight ", weight.shape(),
                                 "; they must be [.., I], [.., J] and [out, I, J]");
  const std::int64_t out = weight.size(0), in_a = weight.size(1), in_b = weight.size(2);
  Ints sizes = to_ints(a.shape());
  sizes.back() = out;
  sizes.push_back(in_b);
  const Tensor by_a = reshape(permute(weight, {1, 0, 2}), {in_a, out * in_b});
  const Tensor product = reshape(matmul(a, by_a), sizes);
  const Tensor y = squeeze(matmul(product, unsqueeze(b, -1)), -1);
  return bias.defined() ? y + bias : y;
}

}  // namespace tenon
