// QR factors, singular values and eigenvalues, and what follows from them.
#include <cmath>

#include <tenon/creation.h>
#include <tenon/elementwise.h>
#include <tenon/function.h>
#include <tenon/functional.h>
#include <tenon/rearrange.h>

#include "base/epsilon.h"
#include "linalg/call.h"
#include "linalg/checks.h"
#include "linalg/routines.h"

namespace tenon::linalg {
namespace {

using Tensors = std::vector<Tensor>;

Tensor r_of(const QrFactors& factors, std::int64_t rows) {
  return triu(slice(factors.packed, -2, 0, rows));
}

// At least as many rows as columns (S. Walter and L. Lehmann, "Algorithmic differentiation of
// linear algebra functions", 2010).
Qr tall_qr(const Tensor& a) {
  const Function function(
      where("linalg").operation,
      [](FunctionContext&, const Tensors& in) {
        const QrFactors factors = factor_qr(in[0]);
        const std::int64_t columns = in[0].size(-1);
        return Tensors{q_of(factors, columns), r_of(factors, columns)};
      },
      [](const FunctionContext& context, const Tensors& g) {
        const Tensor &q = context.results()[0], &r = context.results()[1];
        const Tensor m = matmul(r, transpose(g[1])) - matmul(transpose(g[0]), q);
        const Tensor symmetric = tril(m) + transpose(tril(m, -1));
        return Tensors{
            solve_triangular(transpose(r), g[0] + matmul(q, symmetric), {.left = false})};
      });
  const Tensors out = function.apply({a});
  return {out[0], out[1]};
}

// Of a few rows and more columns, q is that of the first columns, and r = qᵀ a.
Qr reduced_qr(const Tensor& a) {
  const std::int64_t rows = a.size(-2), columns = a.size(-1);
  if (rows >= columns) return tall_qr(a);
  const Qr first = tall_qr(slice(a, -1, 0, rows));
  return {first.q, concat({first.r, matmul(transpose(first.q), slice(a, -1, rows, columns))}, -1)};
}

// x - xᵀ
Tensor skew(const Tensor& x) { return x - transpose(x); }

// The gradient of reduced factors (J. Townsend, "Differentiating the singular value
// decomposition", 2016).
Tensor svd_gradient(const SvdFactors& f, const Tensor& of_u, const Tensor& of_s,
                    const Tensor& of_vh) {
  const Tensor ut = transpose(f.u), v = transpose(f.vh), of_v = transpose(of_vh);
  const Tensor rows = for_vectors(f.s), columns = unsqueeze(f.s, -2);
  const Tensor gaps = (columns - rows) * (columns + rows);
  const Tensor of_left = quotient_or_zero(skew(matmul(ut, of_u)), gaps),
               of_right = quotient_or_zero(skew(matmul(f.vh, of_v)), gaps);
  const Tensor inner = of_left * columns + rows * of_right + diagonals(of_s);
  Tensor out = matmul(matmul(f.u, inner), f.vh);
  // The gradient through changes of the vectors that leave the space that they span.
  if (f.u.size(-2) > f.u.size(-1)) {
    const Tensor scaled = of_u / columns;
    out = out + matmul(scaled - matmul(f.u, matmul(ut, scaled)), f.vh);
  }
  if (f.vh.size(-1) > f.vh.size(-2)) {
    const Tensor scaled = of_vh / rows;
    out = out + matmul(f.u, scaled - matmul(matmul(scaled, v), f.vh));
  }
  return out;
}

Svd reduced_svd(const Tensor& a) {
  const Function function(
      where("linalg").operation,
      [](FunctionContext&, const Tensors& in) {
        const SvdFactors out = factor_svd(in[0], false);
        return Tensors{out.u, out.s, out.vh};
      },
      [](const FunctionContext& context, const Tensors& g) {
        const Tensors& f = context.results();
        return Tensors{svd_gradient({f[0], f[1], f[2]}, g[0], g[1], g[2])};
      });
  const Tensors out = function.apply({a});
  return {out[0], out[1], out[2]};
}

double relative_of(const Tensor& a, const Tolerance& tolerance) {
  if (tolerance.rtol) return *tolerance.rtol;
  const bool absolute = tolerance.atol.value_or(0) > 0;
  return absolute ? 0
                  : epsilon_of(a.dtype()) * static_cast<double>(std::max(a.size(-1), a.size(-2)));
}

// Which of the singular values [.., k] count.
Tensor counting(const Tensor& a, const Tensor& s, const Tolerance& tolerance) {
  const Tensor relative = amax(s, {-1}, true) * relative_of(a, tolerance);
  return gt(s, clamp_min(relative, tolerance.atol.value_or(0)));
}

bool is_empty(const Tensor& a) { return a.size(-1) == 0 || a.size(-2) == 0; }

// G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
// problems whose variables separate", 1973.
Tensor pinv_gradient(const Tensor& a, const Tensor& y, const Tensor& g) {
  const Tensor yt = transpose(y), gt = transpose(g);
  if (a.size(-2) <= a.size(-1)) {
    const Tensor k = matmul(gt, y), kyt = matmul(k, yt);
    return kyt - transpose(matmul(y, k)) - matmul(matmul(a, y), kyt) +
           matmul(matmul(yt, y), gt - matmul(k, a));
  }
  const Tensor k = matmul(y, gt), ytk = matmul(yt, k);
  return ytk - transpose(matmul(k, y)) + matmul(matmul(gt - matmul(a, k), y), yt) -
         matmul(matmul(ytk, y), a);
}

}  // namespace

Qr qr(const Tensor& a, QrMode mode) {
  const Called called("linalg::qr");
  require_matrices(a);
  const std::int64_t rows = a.size(-2);
  if (mode == QrMode::Reduced || rows <= a.size(-1)) return reduced_qr(a);
  const QrFactors factors = factor_qr(a);
  return {q_of(factors, rows), r_of(factors, rows)};
}

QrFactor geqrf(const Tensor& a) {
  const Called called("linalg::geqrf");
  require_matrices(a);
  const QrFactors out = factor_qr(a);
  return {out.packed, out.tau};
}

// Reflector i is I - tau v vᵀ, where v has zeros above element i, a one there, and column i of
// `packed` below it.
Tensor householder_product(const Tensor& packed, const Tensor& tau) {
  const Called called("linalg::householder_product");
  require_matrices(packed);
  require_same_dtype(packed, tau);
  const std::int64_t rows = packed.size(-2), columns = packed.size(-1);
  const std::int64_t count = tau.rank() == 0 ? 0 : tau.size(-1);
  if (tau.rank() != packed.rank() - 1 || columns > rows || count > columns ||
      with_last(tau.shape(), 1, {}) != with_last(packed.shape(), 2, {}))
    throw make_error<ShapeError>(where("linalg"), ": reflectors ", packed.shape(), " and factors ",
                                 tau.shape(), ": [.., m, n] with m >= n need [.., k] with k <= n");
  const Tensor vectors = tril(packed, -1) + eye(rows, columns, packed.dtype());
  Tensor out = broadcast_to(eye(rows, columns, packed.dtype()), packed.shape());
  for (std::int64_t i = count; i-- > 0;) {
    const Tensor v = slice(vectors, -1, i, i + 1);
    out = out - matmul(for_matrices(select(tau, -1, i)) * v, matmul(transpose(v), out));
  }
  return out;
}

Tensor ormqr(const QrFactor& factor, const Tensor& other, bool left, bool transposed) {
  const Called called("linalg::ormqr");
  require_matrices(factor.packed);
  require_same_dtype(factor.packed, other);
  const std::int64_t rows = factor.packed.size(-2), columns = factor.packed.size(-1);
  // The whole Q is the product of the same reflectors with further columns.
  const Tensor few = slice(factor.packed, -1, 0, std::min(rows, columns));
  const Tensor all =
      rows <= columns
          ? few
          : concat({few, zeros(with_last(few.shape(), 1, {rows - columns}), few.dtype())}, -1);
  const Tensor q = householder_product(all, factor.tau);
  const Tensor used = transposed ? transpose(q) : q;
  return left ? matmul(used, other) : matmul(other, used);
}

Svd svd(const Tensor& a, bool full) {
  const Called called("linalg::svd");
  require_matrices(a);
  const std::int64_t rows = a.size(-2), columns = a.size(-1);
  if (!full || rows == columns) return reduced_svd(a);
  const Svd reduced = reduced_svd(a);
  const SvdFactors whole = factor_svd(a, true);
  if (rows > columns)
    return {concat({reduced.u, slice(whole.u, -1, columns, rows)}, -1), reduced.s, reduced.vh};
  return {reduced.u, reduced.s, concat({reduced.vh, slice(whole.vh, -2, rows, columns)}, -2)};
}

Tensor svdvals(const Tensor& a) {
  const Called called("linalg::svdvals");
  require_matrices(a);
  return reduced_svd(a).s;
}

Svd svd_lowrank(const Tensor& a, std::int64_t rank, int iterations) {
  const Called called("linalg::svd_lowrank");
  require_matrices(a);
  const std::int64_t rows = a.size(-2), columns = a.size(-1);
  if (rank < 0 || rank > std::min(rows, columns))
    throw make_error<ValueError>(where("linalg"), ": rank = ", rank, " for matrices ", a.shape(),
                                 ": must be 0 to ", std::min(rows, columns));
  const Tensor directions = randn(with_last(a.shape(), 2, {columns, rank}), a.dtype());
  Tensor q = reduced_qr(matmul(a, directions)).q;
  for (int k = 0; k < iterations; ++k)
    q = reduced_qr(matmul(a, reduced_qr(matmul(transpose(a), q)).q)).q;
  const Svd small = reduced_svd(matmul(transpose(q), a));
  return {matmul(q, small.u), small.s, small.vh};
}

Svd pca_lowrank(const Tensor& a, std::optional<std::int64_t> rank, bool center, int iterations) {
  const Called called("linalg::pca_lowrank");
  require_matrices(a);
  const std::int64_t most = std::min<std::int64_t>({6, a.size(-2), a.size(-1)});
  return svd_lowrank(center ? a - mean(a, {-2}, true) : a, rank.value_or(most), iterations);
}

Eig eig(const Tensor& a) {
  const Called called("linalg::eig");
  require_square(a);
  const ComplexEigen out = eigen_of(a);
  return {out.real, out.imaginary, out.vectors_real, out.vectors_imaginary};
}

Tensor pinv(const Tensor& a, const Tolerance& tolerance) {
  const Called called("linalg::pinv");
  require_matrices(a);
  if (is_empty(a)) return transpose(a);
  const Function function(
      where("linalg").operation,
      [tolerance](FunctionContext&, const Tensors& in) {
        const SvdFactors f = factor_svd(in[0], false);
        const Tensor counts = counting(in[0], f.s, tolerance);
        const Tensor inverse = where(counts, 1.0 / where(counts, f.s, 1.0), 0.0);
        return Tensors{matmul(transpose(f.vh) * unsqueeze(inverse, -2), transpose(f.u))};
      },
      [](const FunctionContext& context, const Tensors& g) {
        return Tensors{pinv_gradient(context.arguments()[0], context.results()[0], g[0])};
      });
  return function(a);
}

Tensor matrix_rank(const Tensor& a, const Tolerance& tolerance) {
  const Called called("linalg::matrix_rank");
  require_matrices(a);
  if (is_empty(a)) return zeros(with_last(a.shape(), 2, {}), DType::Int64);
  return sum(cast(counting(a, factor_svd(a, false).s, tolerance), DType::Int64), {-1});
}

LeastSquares lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond) {
  const Called called("linalg::lstsq");
  require_matrices(a);
  require_matrices(b);
  require_same_dtype(a, b);
  if (a.size(-2) != b.size(-2))
    throw make_error<ShapeError>(where("linalg"), ": ", a.shape(), " and ", b.shape(),
                                 " have different numbers of rows");
  const double limit =
      rcond.value_or(epsilon_of(a.dtype()) * static_cast<double>(std::max(a.size(-1), a.size(-2))));
  const auto [matrices, sides] = with_common_batch(a, b);
  const Function function(
      where("linalg").operation,
      [limit](FunctionContext& context, const Tensors& in) {
        const MinimumNorm out = least_squares(in[0], in[1], limit);
        context.mark_non_differentiable(1);
        context.mark_non_differentiable(2);
        return Tensors{out.solution, out.rank, out.singular_values};
      },
      [limit](const FunctionContext& context, const Tensors& g) {
        const Tensor &from = context.arguments()[0], &side = context.arguments()[1];
        const Tensor inverse = pinv(from, {.rtol = limit});
        return Tensors{pinv_gradient(from, inverse, matmul(g[0], transpose(side))),
                       matmul(transpose(inverse), g[0])};
      });
  const Tensors out = function.apply({matrices, sides});
  const Tensor residuals = sum(square(matmul(matrices, out[0]) - sides), {-2});
  return {out[0], residuals, out[1], out[2]};
}

}  // namespace tenon::linalg
