// Eigenvalues of symmetric matrices, and what follows from them.
#include <tenon/function.h>
#include <tenon/rearrange.h>

#include "linalg/call.h"
#include "linalg/checks.h"
#include "linalg/routines.h"

namespace tenon::linalg {
namespace {

using Tensors = std::vector<Tensor>;

// x with p x + x p = g, for symmetric p without eigenvalues l_i = -l_j: in the basis of its
// eigenvectors, x_ij is g_ij / (l_i + l_j). The gradient needs no derivative of the eigenvectors,
// which equal eigenvalues do not have.
Tensor sylvester(const Tensor& p, const Tensor& g) {
  const Function function(
      where("linalg").operation,
      [](FunctionContext&, const Tensors& in) {
        const Eigen f = eigen_of_symmetric(in[0], false);
        const Tensor sums = for_vectors(f.values) + unsqueeze(f.values, -2);
        const Tensor v = f.vectors, vt = transpose(v);
        const Tensor inner = quotient_or_zero(matmul(matmul(vt, in[1]), v), sums);
        return Tensors{matmul(matmul(v, inner), vt)};
      },
      [](const FunctionContext& context, const Tensors& slopes) {
        const Tensor w = sylvester(context.arguments()[0], slopes[0]);
        const Tensor xt = transpose(context.results()[0]);
        return Tensors{-(matmul(w, xt) + matmul(xt, w)), w};
      });
  return function(p, g);
}

}  // namespace

Eigh eigh(const Tensor& a, bool upper) {
  const Called called("linalg::eigh");
  require_square(a);
  const Function function(
      where("linalg").operation,
      [upper](FunctionContext&, const Tensors& in) {
        const Eigen out = eigen_of_symmetric(in[0], upper);
        return Tensors{out.values, out.vectors};
      },
      [](const FunctionContext& context, const Tensors& g) {
        const Tensor &values = context.results()[0], &v = context.results()[1];
        const Tensor gaps = unsqueeze(values, -2) - for_vectors(values);
        // The product's diagonal changes only the length of the vectors, which is 1.
        const Tensor product = matmul(transpose(v), g[1]);
        const Tensor turn = product - diagonals(diagonal(product, 0, -2, -1));
        const Tensor inner = diagonals(g[0]) + quotient_or_zero(turn, gaps);
        return Tensors{matmul(matmul(v, inner), transpose(v))};
      });
  const Tensors out = function.apply({a});
  return {out[0], out[1]};
}

Tensor eigvalsh(const Tensor& a, bool upper) {
  const Called called("linalg::eigvalsh");
  return eigh(a, upper).values;
}

// r = sqrt(a) is the solution of r r = a, so its derivative solves r dr + dr r = da.
Tensor matrix_sqrth(const Tensor& a) {
  const Called called("linalg::matrix_sqrth");
  require_square(a);
  const Function function(
      where("linalg").operation,
      [](FunctionContext&, const Tensors& in) {
        const Eigen f = eigen_of_symmetric(in[0], false);
        return Tensors{matmul(f.vectors * unsqueeze(sqrt(f.values), -2), transpose(f.vectors))};
      },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{sylvester(context.results()[0], g[0])};
      });
  return function(a);
}

// With w = uᵀ du, which is skew: p w + w p = uᵀ da - daᵀ u and dp = uᵀ da - w p.
Polar polar(const Tensor& a) {
  const Called called("linalg::polar");
  require_matrices(a);
  if (a.size(-2) < a.size(-1))
    throw make_error<ShapeError>(where("linalg"), ": matrices ", a.shape(),
                                 " have fewer rows than columns: transpose() them");
  const Function function(
      where("linalg").operation,
      [](FunctionContext&, const Tensors& in) {
        const SvdFactors f = factor_svd(in[0], false);
        return Tensors{matmul(f.u, f.vh), matmul(transpose(f.vh) * unsqueeze(f.s, -2), f.vh)};
      },
      [](const FunctionContext& context, const Tensors& g) {
        const Tensor &u = context.results()[0], &p = context.results()[1];
        const Tensor inner = matmul(transpose(u), g[0]);
        const Tensor n = sylvester(p, inner - matmul(g[1], p));
        const Tensor within = matmul(u, n - transpose(n) + g[1]);
        if (u.size(-2) == u.size(-1)) return Tensors{within};
        return Tensors{within + solve(p, g[0] - matmul(u, inner), false)};
      });
  const Tensors out = function.apply({a});
  return {out[0], out[1]};
}

}  // namespace tenon::linalg
