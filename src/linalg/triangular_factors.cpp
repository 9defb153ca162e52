// Cholesky and LU factors, and determinants.
#include <limits>

#include <tenon/creation.h>
#include <tenon/function.h>
#include <tenon/functional.h>
#include <tenon/rearrange.h>

#include "linalg/call.h"
#include "linalg/checks.h"
#include "linalg/routines.h"
#include "linalg/solved.h"

namespace tenon::linalg {
namespace {

using Tensors = std::vector<Tensor>;

// The lower triangle with half of the diagonal.
Tensor half_lower(const Tensor& x) { return (tril(x) + tril(x, -1)) * 0.5; }

// I. Murray, "Differentiation of the Cholesky decomposition", 2016.
Checked cholesky_of(const Tensor& a, bool upper, Failure failure) {
  require_square(a);
  const Function function(
      where("linalg").operation,
      [failure](FunctionContext& context, const Tensors& in) {
        const Factor out = factor_cholesky(in[0], failure);
        context.mark_non_differentiable(1);
        return Tensors{out.factor, out.info};
      },
      [](const FunctionContext& context, const Tensors& g) {
        const Tensor& l = context.results()[0];
        const Tensor inner = half_lower(matmul(transpose(l), tril(g[0])));
        const Tensor left = solve_triangular(transpose(l), inner, {.upper = true});
        const Tensor whole = solve_triangular(l, left, {.left = false});
        return Tensors{(whole + transpose(whole)) * 0.5};
      });
  const Tensors out = function.apply({upper ? transpose(a) : a});
  return {upper ? transpose(out[0]) : out[0], out[1]};
}

Tensor l_of(const Tensor& factors) {
  const std::int64_t rows = factors.size(-2), few = std::min(rows, factors.size(-1));
  return tril(slice(factors, -1, 0, few), -1) + eye(rows, few, factors.dtype());
}

Tensor u_of(const Tensor& factors) {
  return triu(slice(factors, -2, 0, std::min(factors.size(-2), factors.size(-1))));
}

// The gradient of a = p l u with respect to pᵀ a, where l is square (S. Walter and L. Lehmann,
// "Algorithmic differentiation of linear algebra functions", 2010).
Tensor square_lu_gradient(const Tensor& l, const Tensor& u, const Tensor& of_l,
                          const Tensor& of_u) {
  const Tensor inner = tril(matmul(transpose(l), of_l), -1) + triu(matmul(of_u, transpose(u)));
  const Tensor left = solve_triangular(transpose(l), inner, {.upper = true, .unitriangular = true});
  return solve_triangular(transpose(u), left, {.left = false});
}

// Of the packed factors: the gradient of l is below the diagonal, that of u on and above it.
Tensor lu_gradient(const Tensor& factors, const Tensor& p, const Tensor& g) {
  const std::int64_t rows = factors.size(-2), columns = factors.size(-1);
  const Tensor l = l_of(factors), u = u_of(factors);
  if (rows <= columns) {
    // Further columns are u = l⁻¹ pᵀ a, and l has a gradient through them.
    const Tensor square_u = slice(u, -1, 0, rows), of_u = triu(slice(g, -2, 0, rows));
    const Tensor further = solve_triangular(transpose(l), slice(of_u, -1, rows, columns),
                                            {.upper = true, .unitriangular = true});
    const Tensor of_l = tril(slice(g, -1, 0, rows), -1) -
                        tril(matmul(further, transpose(slice(u, -1, rows, columns))), -1);
    const Tensor square = square_lu_gradient(l, square_u, of_l, slice(of_u, -1, 0, rows));
    return matmul(p, concat({square, further}, -1));
  }
  // Further rows are l = pᵀ a u⁻¹, and u has a gradient through them.
  const Tensor square_l = slice(l, -2, 0, columns), below = slice(l, -2, columns, rows);
  const Tensor further =
      solve_triangular(transpose(u), slice(g, -2, columns, rows), {.left = false});
  const Tensor of_u = triu(slice(g, -2, 0, columns)) - triu(matmul(transpose(below), further));
  const Tensor square = square_lu_gradient(square_l, u, tril(slice(g, -2, 0, columns), -1), of_u);
  return matmul(p, concat({square, further}, -2));
}

LuFactor factor_of(const Tensor& a, Failure failure) {
  require_matrices(a);
  const Function function(
      where("linalg").operation,
      [failure](FunctionContext& context, const Tensors& in) {
        const LuFactors out = factor_lu(in[0], failure);
        context.mark_non_differentiable(1);
        return Tensors{out.lu, out.pivots};
      },
      [](const FunctionContext& context, const Tensors& g) {
        const Tensor& factors = context.results()[0];
        const Tensor p = permutation(context.results()[1], factors.size(-2), factors.dtype());
        return Tensors{lu_gradient(factors, p, g[0])};
      });
  const Tensors out = function.apply({a});
  return {out[0], out[1]};
}

// With c = det(a) a⁻ᵀ, whose elements are the derivatives of the determinant.
Tensor cofactors(const Tensor& a) {
  const Function function(
      where("linalg").operation,
      [](FunctionContext&, const Tensors& in) { return Tensors{cofactors_of(in[0])}; },
      [](const FunctionContext& context, const Tensors& g) {
        const Tensor inverse = transpose(inv(context.arguments()[0]));
        const Tensor& c = context.results()[0];
        return Tensors{for_matrices(sum(g[0] * c, {-2, -1})) * inverse -
                       matmul(c, matmul(transpose(g[0]), inverse))};
      });
  return function(a);
}

}  // namespace

Tensor cholesky(const Tensor& a, bool upper) {
  const Called called("linalg::cholesky");
  return cholesky_of(a, upper, Failure::Throw).result;
}

Checked cholesky_ex(const Tensor& a, bool upper) {
  const Called called("linalg::cholesky_ex");
  return cholesky_of(a, upper, Failure::Info);
}

LuFactor lu_factor(const Tensor& a) {
  const Called called("linalg::lu_factor");
  return factor_of(a, Failure::Throw);
}

Lu lu_unpack(const LuFactor& factor) {
  const Called called("linalg::lu_unpack");
  const Tensor& factors = factor.factors;
  require_matrices(factors);
  return {permutation(factor.pivots, factors.size(-2), factors.dtype()), l_of(factors),
          u_of(factors)};
}

Lu lu(const Tensor& a) {
  const Called called("linalg::lu");
  return lu_unpack(factor_of(a, Failure::Info));
}

Tensor det(const Tensor& a) {
  const Called called("linalg::det");
  require_square(a);
  const Function function(
      where("linalg").operation,
      [](FunctionContext&, const Tensors& in) {
        const LuFactors factors = factor_lu(in[0], Failure::Info);
        return Tensors{determinants_of(factors.lu, factors.pivots).value};
      },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{for_matrices(g[0]) * cofactors(context.arguments()[0])};
      });
  return function(a);
}

SignAndLog slogdet(const Tensor& a) {
  const Called called("linalg::slogdet");
  require_square(a);
  const Function function(
      where("linalg").operation,
      [](FunctionContext& context, const Tensors& in) {
        const LuFactors factors = factor_lu(in[0], Failure::Info);
        const Determinants out = determinants_of(factors.lu, factors.pivots);
        context.mark_non_differentiable(0);
        context.save({factors.lu, factors.pivots});
        return Tensors{out.sign, out.log_of_absolute};
      },
      [](const FunctionContext& context, const Tensors& g) {
        const Tensor& from = context.arguments()[0];
        const Solved by{from, context.saved()[0], context.saved()[1]};
        return Tensors{for_matrices(g[1]) * by.solve(identity_like(from), true)};
      });
  const Tensors out = function.apply({a});
  return {out[0], out[1]};
}

Tensor logdet(const Tensor& a) {
  const Called called("linalg::logdet");
  const SignAndLog out = slogdet(a);
  return where(lt(out.sign, 0.0), std::numeric_limits<double>::quiet_NaN(), out.logabsdet);
}

}  // namespace tenon::linalg
