// LAPACK's routines as operations without gradients, on the matrices in the last two axes of a
// float32 or float64 tensor. The arguments have been checked: the dtypes are equal, and so are the
// batch axes.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/tensor.h>

namespace tenon::linalg {

/// What happens if a matrix cannot be factored.
enum class Failure {
  Throw,  ///< Evaluation throws ValueError.
  Info    ///< The result `info` tells, and the other results have no meaning.
};

/// An int32 `info` is 0, or the number of the row, from 1, at which a matrix failed.
struct Factor {
  Tensor factor, info;
};
struct LuFactors {
  Tensor lu;      ///< L below the diagonal, U on and above it
  Tensor pivots;  ///< int32 [..., k]: row i was exchanged with this row, from 1
  Tensor info;    ///< of a singular matrix the first zero on U's diagonal
};
struct LdlFactors {
  Tensor ld, pivots, info;
};
struct QrFactors {
  Tensor packed;  ///< R on and above the diagonal, the reflectors below it
  Tensor tau;     ///< the reflectors' factors [..., k]
};
struct SvdFactors {
  Tensor u, s, vh;
};
struct Eigen {
  Tensor values, vectors;
};
struct ComplexEigen {
  Tensor real, imaginary, vectors_real, vectors_imaginary;
};
struct MinimumNorm {
  Tensor solution, rank, singular_values;
};
struct Determinants {
  Tensor value, sign, log_of_absolute;
};

/// The lower Cholesky factor; reads the lower triangle.
Factor factor_cholesky(const Tensor& a, Failure failure);
LuFactors factor_lu(const Tensor& a, Failure failure);
/// x with a x = b, or with aᵀ x = b if `transposed`.
Tensor solve_factored(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool transposed);
/// L and D of symmetric matrices; reads the lower triangle.
LdlFactors factor_ldl(const Tensor& a, Failure failure);
/// x with L D Lᵀ x = b.
Tensor solve_ldl(const Tensor& ld, const Tensor& pivots, const Tensor& b);
/// The permutation matrices P of a = P L U with `rows` rows, of this dtype.
Tensor permutation(const Tensor& pivots, std::int64_t rows, DType dtype);
Determinants determinants_of(const Tensor& lu, const Tensor& pivots);
/// The matrices of cofactors, which exist for singular matrices too.
Tensor cofactors_of(const Tensor& a);

struct Triangle {
  bool upper = false, left = true, unit = false;
};
/// x with a x = b, or x a = b if not `left`.
Tensor solve_with_triangle(const Tensor& a, const Tensor& b, const Triangle& triangle);

QrFactors factor_qr(const Tensor& a);
/// The first columns of Q.
Tensor q_of(const QrFactors& factors, std::int64_t columns);
/// `full`: square u and vh.
SvdFactors factor_svd(const Tensor& a, bool full);
/// Of symmetric matrices; reads the lower triangle, or the upper one.
Eigen eigen_of_symmetric(const Tensor& a, bool upper);
ComplexEigen eigen_of(const Tensor& a);
/// Singular values below `rcond` times the largest count as zero.
MinimumNorm least_squares(const Tensor& a, const Tensor& b, double rcond);

}  // namespace tenon::linalg
