// Checks of arguments.
#include "linalg/checks.h"

#include <limits>

#include <tenon/creation.h>
#include <tenon/rearrange.h>

#include "linalg/call.h"

namespace tenon::linalg {

void require_matrices(const Tensor& a) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 8;
  if (a.dtype() != DType::Float32 && a.dtype() != DType::Float64)
    throw make_error<DTypeError>(where("linalg"), ": a tensor of ", a.dtype(),
                                 ": cast() it to float32 or float64");
  if (a.rank() < 2)
    throw make_error<ShapeError>(where("linalg"), ": matrices have at least two axes, and this is ",
                                 a.shape());
  if (a.size(-1) > kMost || a.size(-2) > kMost)
    throw make_error<ShapeError>(where("linalg"), ": matrices of ", a.shape(),
                                 " are larger than LAPACK counts");
}

void require_square(const Tensor& a) {
  require_matrices(a);
  if (a.size(-1) != a.size(-2))
    throw make_error<ShapeError>(where("linalg"), ": the matrices must be square, and are ",
                                 a.shape());
}

void require_same_dtype(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    throw make_error<DTypeError>(where("linalg"), ": tensors of ", a.dtype(), " and ", b.dtype(),
                                 ": cast() one of them");
}

std::pair<Tensor, Tensor> with_common_batch(const Tensor& a, const Tensor& b) {
  const Shape from = with_last(a.shape(), 2, {}), to = with_last(b.shape(), 2, {});
  if (from == to) return {a, b};
  const Shape both = broadcast_shapes(from, to, where("linalg"));
  const auto expanded = [&](const Tensor& x) {
    Ints sizes(both.begin(), both.end());
    sizes.insert(sizes.end(), {x.size(-2), x.size(-1)});
    return expand(x, sizes);
  };
  return {expanded(a), expanded(b)};
}

Tensor identity_like(const Tensor& a) {
  const std::int64_t n = a.size(-2);
  return broadcast_to(eye(n, n, a.dtype()), with_last(a.shape(), 2, {n, n}));
}

Tensor diagonals(const Tensor& values) { return diag_embed(values); }

Tensor quotient_or_zero(const Tensor& a, const Tensor& b) {
  const Tensor is_zero = eq(a, 0.0);
  return where(is_zero, 0.0, a / where(is_zero, 1.0, b));
}

}  // namespace tenon::linalg
