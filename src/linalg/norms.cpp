// Powers and norms of matrices, and condition numbers.
#include <cmath>
#include <limits>

#include <tenon/creation.h>
#include <tenon/elementwise.h>
#include <tenon/functional.h>
#include <tenon/joining.h>
#include <tenon/rearrange.h>

#include "linalg/call.h"
#include "linalg/checks.h"

namespace tenon::linalg {
namespace {

// The two axes of the matrices of a tensor, and the form of the results.
struct Place {
  int rows, columns;
  bool keepdim;

  /// The tensor with its matrices in the last two axes.
  Tensor matrices(const Tensor& a) const { return movedim(a, {rows, columns}, {-2, -1}); }
  /// Norms [.., 1, 1] of matrices() in the place where the caller wants them.
  Tensor norms(const Tensor& x) const {
    if (keepdim) return movedim(x, {-2, -1}, {rows, columns});
    return squeeze(squeeze(x, -1), -1);
  }
};

Place place_of(const Tensor& a, const Ints& axes, bool keepdim) {
  const OpPlace at = where("linalg");
  require_defined(at.operation.c_str(), a);
  if (axes.size() != 2 || a.rank() < 2)
    throw make_error<ShapeError>(at, ": ", axes.size(), " axes of ", a.shape(),
                                 "; give the two axes of the matrices");
  const int rows = normalize_axis(static_cast<int>(axes[0]), a.rank(), at),
            columns = normalize_axis(static_cast<int>(axes[1]), a.rank(), at);
  if (rows == columns) throw make_error<ValueError>(at, ": axis ", axes[0], " is given twice");
  return {rows, columns, keepdim};
}

bool has_no_elements(const Tensor& matrices) {
  return matrices.size(-1) == 0 || matrices.size(-2) == 0;
}

// Norms [.., 1, 1] of matrices in the last two axes.
Tensor norms_of(const Tensor& a, double p) {
  const double order = std::fabs(p);
  if (order != 1 && order != 2 && !std::isinf(order))
    throw make_error<ValueError>(where("linalg"), ": the order is ", p,
                                 ", must be 1, 2 or infinity, or one of these negated");
  if (p > 0 && has_no_elements(a)) {
    const Tensor none = abs(a);
    return zeros(with_last(none.shape(), 2, {1, 1}), none.dtype());
  }
  const Tensor values =
      order == 2 ? unsqueeze(svdvals(a), -1) : sum(abs(a), {order == 1 ? -2 : -1}, true);
  const int compared = order == 1 ? -1 : -2;
  return p > 0 ? amax(values, {compared}, true) : amin(values, {compared}, true);
}

Tensor norms_of(const Tensor& a, MatrixNorm kind) {
  if (kind == MatrixNorm::Frobenius) return vector_norm(a, 2, {-2, -1}, true);
  return unsqueeze(sum(svdvals(a), {-1}, true), -1);
}

// The norm of a matrix times that of its inverse.
template <class Order>
Tensor condition(const Tensor& a, Order order) {
  require_square(a);
  const Checked inverse = inv_ex(a);
  const Tensor product = norms_of(a, order) * norms_of(inverse.result, order);
  return where(ne(inverse.info, 0), std::numeric_limits<double>::infinity(),
               squeeze(squeeze(product, -1), -1));
}

Tensor no_conditions(const Tensor& a) { return zeros(with_last(a.shape(), 2, {}), a.dtype()); }

}  // namespace

Tensor matrix_norm(const Tensor& a, MatrixNorm kind, const Ints& axes, bool keepdim) {
  const Called called("linalg::matrix_norm");
  const Place place = place_of(a, axes, keepdim);
  return place.norms(norms_of(place.matrices(a), kind));
}

Tensor matrix_norm(const Tensor& a, double p, const Ints& axes, bool keepdim) {
  const Called called("linalg::matrix_norm");
  const Place place = place_of(a, axes, keepdim);
  return place.norms(norms_of(place.matrices(a), p));
}

Tensor cond(const Tensor& a, double p) {
  const Called called("linalg::cond");
  require_matrices(a);
  if (has_no_elements(a)) return no_conditions(a);
  if (std::fabs(p) != 2) return condition(a, p);
  const Tensor s = svdvals(a), largest = select(s, -1, 0), smallest = select(s, -1, -1);
  return p > 0 ? largest / smallest : smallest / largest;
}

Tensor cond(const Tensor& a, MatrixNorm kind) {
  const Called called("linalg::cond");
  require_matrices(a);
  return has_no_elements(a) ? no_conditions(a) : condition(a, kind);
}

Tensor matrix_power(const Tensor& a, std::int64_t n) {
  const Called called("linalg::matrix_power");
  const OpPlace at = where("linalg");
  require_defined(at.operation.c_str(), a);
  if (a.rank() < 2 || a.size(-1) != a.size(-2))
    throw make_error<ShapeError>(at, ": the matrices must be square, and are ", a.shape());
  if (n == 0) return broadcast_to(eye(a.size(-1), {}, a.dtype()), a.shape());
  Tensor square = n < 0 ? inv(a) : a, out;
  // The magnitude of the smallest number is no int64.
  for (auto rest = n < 0 ? -static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n); rest > 0;
       rest /= 2) {
    if (rest % 2 == 1) out = out.defined() ? matmul(out, square) : square;
    if (rest > 1) square = matmul(square, square);
  }
  return out;
}

}  // namespace tenon::linalg
