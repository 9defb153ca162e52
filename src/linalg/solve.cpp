// Systems of equations.
#include <tenon/creation.h>
#include <tenon/function.h>
#include <tenon/functional.h>

#include "linalg/call.h"
#include "linalg/checks.h"
#include "linalg/routines.h"
#include "linalg/solved.h"

namespace tenon::linalg {
namespace {

// With the vectors of b as matrices of one column.
bool holds_vectors(const Tensor& a, const Tensor& b) {
  return b.rank() == 1 || (b.rank() == a.rank() - 1 && b.shape() == with_last(a.shape(), 1, {}));
}

void require_fit(const Tensor& a, const Tensor& b, bool left) {
  require_matrices(b);
  require_same_dtype(a, b);
  const std::int64_t size = b.size(left ? -2 : -1);
  if (size != a.size(-1))
    throw make_error<ShapeError>(where("linalg"), ": matrices ", a.shape(), " need ", a.size(-1),
                                 left ? " rows" : " columns", " on the right-hand side, which is ",
                                 b.shape());
}

struct Solution {
  Tensor x, info;
};

Solution solution_of(const Tensor& a, const Tensor& b, bool left, Failure failure) {
  require_square(a);
  if (holds_vectors(a, b)) {
    const Solution columns = solution_of(a, unsqueeze(b, left ? -1 : -2), left, failure);
    return {squeeze(columns.x, left ? -1 : -2), columns.info};
  }
  require_fit(a, b, left);
  const auto [matrices, sides] = with_common_batch(a, b);
  const LuFactors factors = factor_lu(matrices, failure);
  const Solved by{matrices, factors.lu, factors.pivots};
  // x a = b is aᵀ xᵀ = bᵀ.
  return {left ? by.solve(sides) : transpose(by.solve(transpose(sides), true)), factors.info};
}

}  // namespace

// With x = a⁻¹ b, the gradients are gb = a⁻ᵀ g and ga = -gb xᵀ; with x = a⁻ᵀ b, ga = -x gbᵀ. The
// factors are fixed numbers: all that depends on `a` is in the gradient of the first argument.
Tensor Solved::solve(const Tensor& b, bool transposed) const {
  const Function function(
      where("linalg").operation,
      [transposed](FunctionContext&, const std::vector<Tensor>& in) {
        return std::vector<Tensor>{solve_factored(in[1], in[2], in[3], transposed)};
      },
      [transposed](const FunctionContext& context, const std::vector<Tensor>& g) {
        const std::vector<Tensor>& in = context.arguments();
        const Tensor& x = context.results()[0];
        const Tensor of_b = Solved{in[0], in[1], in[2]}.solve(g[0], !transposed);
        const Tensor of_a = transposed ? -matmul(x, transpose(of_b)) : -matmul(of_b, transpose(x));
        return std::vector<Tensor>{of_a, {}, {}, of_b};
      });
  return function(a, lu.detach(), pivots, b);
}

Tensor solve(const Tensor& a, const Tensor& b, bool left) {
  const Called called("linalg::solve");
  return solution_of(a, b, left, Failure::Throw).x;
}

Checked solve_ex(const Tensor& a, const Tensor& b, bool left) {
  const Called called("linalg::solve_ex");
  const Solution out = solution_of(a, b, left, Failure::Info);
  return {out.x, out.info};
}

Tensor inv(const Tensor& a) {
  const Called called("linalg::inv");
  require_square(a);
  return solution_of(a, identity_like(a), true, Failure::Throw).x;
}

Checked inv_ex(const Tensor& a) {
  const Called called("linalg::inv_ex");
  require_square(a);
  const Solution out = solution_of(a, identity_like(a), true, Failure::Info);
  return {out.x, out.info};
}

namespace {

// The gradient with respect to a triangle: the gradient of all elements, with zeros for elements
// that the solver does not read.
Tensor triangle_of(const Tensor& g, const Triangle& triangle) {
  const std::int64_t offset = triangle.unit ? 1 : 0;
  return triangle.upper ? triu(g, offset) : tril(g, -offset);
}

Tensor with_triangle(const Tensor& a, const Tensor& b, const Triangle& triangle) {
  const Function function(
      where("linalg").operation,
      [triangle](FunctionContext&, const std::vector<Tensor>& in) {
        return std::vector<Tensor>{solve_with_triangle(in[0], in[1], triangle)};
      },
      [triangle](const FunctionContext& context, const std::vector<Tensor>& g) {
        const Tensor &from = context.arguments()[0], &x = context.results()[0];
        const Triangle other{!triangle.upper, triangle.left, triangle.unit};
        const Tensor of_b = with_triangle(transpose(from), g[0], other);
        const Tensor of_a =
            triangle.left ? -matmul(of_b, transpose(x)) : -matmul(transpose(x), of_b);
        return std::vector<Tensor>{triangle_of(of_a, triangle), of_b};
      });
  return function(a, b);
}

}  // namespace

Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& options) {
  const Called called("linalg::solve_triangular");
  require_square(a);
  require_fit(a, b, options.left);
  const auto [matrices, sides] = with_common_batch(a, b);
  return with_triangle(matrices, sides, {options.upper, options.left, options.unitriangular});
}

Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper) {
  const Called called("linalg::cholesky_solve");
  require_square(factor);
  const Tensor lower = upper ? transpose(factor) : factor;
  return solve_triangular(transpose(lower), solve_triangular(lower, b), {.upper = true});
}

Tensor cholesky_inverse(const Tensor& factor, bool upper) {
  const Called called("linalg::cholesky_inverse");
  require_square(factor);
  return cholesky_solve(identity_like(factor), factor, upper);
}

Tensor lu_solve(const LuFactor& factor, const Tensor& b, bool left, bool transposed) {
  const Called called("linalg::lu_solve");
  require_square(factor.factors);
  require_fit(factor.factors, b, left);
  const Lu parts = lu_unpack(factor);
  const Tensor &p = parts.p, &l = parts.l, &u = parts.u;
  // x A = b is Aᵀ xᵀ = bᵀ.
  const Tensor sides = left ? b : transpose(b);
  const Tensor x =
      transposed != !left
          ? matmul(p, solve_triangular(transpose(l), solve_triangular(transpose(u), sides),
                                       {.upper = true, .unitriangular = true}))
          : solve_triangular(
                u, solve_triangular(l, matmul(transpose(p), sides), {.unitriangular = true}),
                {.upper = true});
  return left ? x : transpose(x);
}

Tensor tensorinv(const Tensor& a, int axes) {
  const Called called("linalg::tensorinv");
  const Shape& shape = a.shape();
  if (axes < 1 || axes > shape.rank())
    throw make_error<ValueError>(where("linalg"), ": axes = ", axes, ", must be 1 to ",
                                 shape.rank());
  const Ints first(shape.begin(), shape.begin() + axes), last(shape.begin() + axes, shape.end());
  std::int64_t rows = 1, columns = 1;
  for (const std::int64_t size : first) rows *= size;
  for (const std::int64_t size : last) columns *= size;
  if (rows != columns)
    throw make_error<ShapeError>(where("linalg"), ": the first ", axes, " axes of ", shape,
                                 " have ", rows, " elements and the others ", columns,
                                 ": they must be equal");
  Ints sizes = last;
  sizes.insert(sizes.end(), first.begin(), first.end());
  return reshape(inv(reshape(a, {rows, columns})), sizes);
}

Tensor tensorsolve(const Tensor& a, const Tensor& b, const Ints& moved) {
  const Called called("linalg::tensorsolve");
  Ints order;
  std::vector<bool> is_moved(static_cast<std::size_t>(a.rank()));
  Ints last;
  for (const std::int64_t axis : moved) {
    last.push_back(normalize_axis(static_cast<int>(axis), a.rank(), where("linalg")));
    is_moved[static_cast<std::size_t>(last.back())] = true;
  }
  for (int axis = 0; axis < a.rank(); ++axis)
    if (!is_moved[static_cast<std::size_t>(axis)]) order.push_back(axis);
  order.insert(order.end(), last.begin(), last.end());
  const Tensor map = permute(a, order);
  const int rank = map.rank() - b.rank();
  const Ints sizes(map.shape().end() - std::max(rank, 0), map.shape().end());
  std::int64_t unknowns = 1;
  for (const std::int64_t size : sizes) unknowns *= size;
  if (rank < 0 || unknowns != b.numel() || map.numel() != b.numel() * unknowns)
    throw make_error<ShapeError>(where("linalg"), ": a map of ", map.shape(), " and a result of ",
                                 b.shape(), " give no square matrix");
  return reshape(solve(reshape(map, {b.numel(), unknowns}), reshape(b, {b.numel()})), sizes);
}

}  // namespace tenon::linalg
