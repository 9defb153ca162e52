// Linear algebra: factorizations, systems of equations, eigenvalues and functions of matrices.
//
// Names, shapes and results are those of torch.linalg. Matrices are in the last two axes, and the
// axes before them are batch axes. Matrices are float32 or float64; other dtypes throw DTypeError,
// and matrices that do not fit throw ShapeError. Gradients can be differentiated again, except
// where a function says that it has none.
//
// LAPACK computes the results on the host when they are evaluated. It is loaded at run time: any
// liblapack.so.3, OpenBLAS or MKL, or the file that the environment variable TENON_LAPACK names.
// Without it, these functions throw NotSupported. Matrices on a GPU are copied to the host and the
// results back. Bits do not depend on Tenon's number of threads; they may depend on the library.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tenon/export.h>
#include <tenon/tensor.h>

/// Linear algebra: what torch.linalg holds.
namespace tenon::linalg {

// ---- Cholesky factors
/// The lower factor L of symmetric positive definite matrices L Lᵀ, or with `upper` the factor Lᵀ.
/// Reads that triangle only. Evaluation throws ValueError for a matrix that is not positive
/// definite.
TENON_API Tensor cholesky(const Tensor& a, bool upper = false);
/// A result, and whether each matrix of the batch allowed it.
struct Checked {
  Tensor result;  ///< without meaning where info is not 0
  Tensor info;    ///< int32: 0, or the row, from 1, at which the matrix failed
};
/// cholesky() that reports a matrix without a factor in `info`.
TENON_API Checked cholesky_ex(const Tensor& a, bool upper = false);
/// The solution x of A x = b for A = L Lᵀ, or A = Lᵀ L if the factor is `upper`.
TENON_API Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper = false);
/// The inverse of A = L Lᵀ, or of A = Lᵀ L if the factor is `upper`.
TENON_API Tensor cholesky_inverse(const Tensor& factor, bool upper = false);

// ---- Systems of equations
/// The solution x of a x = b, or with `left` = false of x a = b. `b` holds matrices [.., n, k], or
/// vectors if it has one axis or the shape of `a` without its last axis. Batch axes broadcast.
/// Evaluation throws ValueError for a singular matrix.
TENON_API Tensor solve(const Tensor& a, const Tensor& b, bool left = true);
/// solve() that reports singular matrices in `info`.
TENON_API Checked solve_ex(const Tensor& a, const Tensor& b, bool left = true);
/// Options of solve_triangular().
struct TriangularOptions {
  bool upper = false;          ///< reads the upper triangle of `a` instead of the lower one
  bool left = true;            ///< solves a x = b; otherwise x a = b
  bool unitriangular = false;  ///< takes ones for the diagonal of `a`
};
/// The solution x of a system with triangular matrices; b [.., n, k], or [.., k, n] if not `left`.
/// The other triangle is not read. A zero on the diagonal gives infinities or NaN.
TENON_API Tensor solve_triangular(const Tensor& a, const Tensor& b,
                                  const TriangularOptions& options = {});
/// The inverse of square matrices. Evaluation throws ValueError for a singular matrix.
TENON_API Tensor inv(const Tensor& a);
/// inv() that reports singular matrices in `info`.
TENON_API Checked inv_ex(const Tensor& a);
/// The solutions of least squares.
struct LeastSquares {
  Tensor solution;         ///< [.., n, k]: of all best solutions, the one with the smallest norm
  Tensor residuals;        ///< [.., k]: sums of squared errors
  Tensor rank;             ///< int64 [..]
  Tensor singular_values;  ///< [.., min(m, n)]
};
/// Solutions x that minimize ‖a x - b‖, for a [.., m, n] and b [.., m, k]. Singular values up to
/// `rcond` times the largest count as zero; by default the dtype's epsilon times max(m, n).
/// Gradients flow through solution and residuals.
TENON_API LeastSquares lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond = {});
/// Which singular values count as zero: those up to max(atol, rtol · largest). By default `rtol` is
/// the dtype's epsilon times max(m, n), or 0 if `atol` is given.
struct Tolerance {
  std::optional<double> atol{}, rtol{};
};
/// The pseudoinverse [.., n, m] of matrices [.., m, n].
TENON_API Tensor pinv(const Tensor& a, const Tolerance& tolerance = {});
/// The number of singular values that do not count as zero, int64.
TENON_API Tensor matrix_rank(const Tensor& a, const Tolerance& tolerance = {});
/// The inverse of `a` as a map from its last axes to its first `axes` axes: a tensor x with
/// tensordot(x, a, axes) = identity.
TENON_API Tensor tensorinv(const Tensor& a, int axes = 2);
/// The solution x of tensordot(a, x, x.rank()) = b; `moved` axes of `a` are moved to its end
/// before.
TENON_API Tensor tensorsolve(const Tensor& a, const Tensor& b, const Ints& moved = {});

// ---- Triangular factors and determinants
/// a = p l u.
struct Lu {
  Tensor p;  ///< permutations [.., m, m]
  Tensor l;  ///< lower triangular with ones on the diagonal [.., m, k], k = min(m, n)
  Tensor u;  ///< upper triangular [.., k, n]
};
/// LU factors with partial pivoting.
TENON_API Lu lu(const Tensor& a);
/// LU factors in one matrix.
struct LuFactor {
  Tensor factors;  ///< u on and above the diagonal, l below it
  Tensor pivots;   ///< int32 [.., k]: row i was exchanged with this row; rows count from 1
};
/// LU factors for lu_solve(). Gradients flow through `factors`.
TENON_API LuFactor lu_factor(const Tensor& a);
/// The solution x of A x = b for A = p l u; with `left` = false of x A = b, and with `transposed`
/// for Aᵀ instead of A.
TENON_API Tensor lu_solve(const LuFactor& factor, const Tensor& b, bool left = true,
                          bool transposed = false);
/// The three factors.
TENON_API Lu lu_unpack(const LuFactor& factor);
/// Factors of symmetric matrices, which need not be definite.
struct LdlFactor {
  Tensor
      factors;    ///< D in blocks of 1 and 2 rows on the diagonal, L below it, as LAPACK packs them
  Tensor pivots;  ///< int32 [.., n]: exchanges of rows; two equal negative numbers for a block of 2
};
/// Factors L D Lᵀ for ldl_solve(), by Bunch and Kaufman's pivoting. Reads the lower triangle.
/// Without a gradient. Evaluation throws ValueError for a singular matrix.
TENON_API LdlFactor ldl_factor(const Tensor& a);
/// The factors, and in `info` 0 or the row, from 1, where D has a zero.
struct CheckedLdl {
  LdlFactor factor;
  Tensor info;  ///< int32 [..]
};
/// ldl_factor() that reports singular matrices in `info`.
TENON_API CheckedLdl ldl_factor_ex(const Tensor& a);
/// The solution x of A x = b for A = L D Lᵀ and b [.., n, k]; batch axes broadcast. The gradient is
/// that of b.
TENON_API Tensor ldl_solve(const LdlFactor& factor, const Tensor& b);
/// The determinants [..]. The gradient is right for singular matrices too; the second derivative
/// needs the inverse.
TENON_API Tensor det(const Tensor& a);
/// A determinant as sign · exp(logabsdet).
struct SignAndLog {
  Tensor sign;       ///< -1, 0 or 1
  Tensor logabsdet;  ///< -inf for a singular matrix
};
/// Sign and logarithm of the determinants [..].
TENON_API SignAndLog slogdet(const Tensor& a);
/// The logarithms of the determinants; NaN if negative. PyTorch: `torch.logdet`.
TENON_API Tensor logdet(const Tensor& a);

// ---- Orthogonal factors
/// What qr() computes.
enum class QrMode {
  Reduced,  ///< q [.., m, k] and r [.., k, n], k = min(m, n)
  Complete  ///< q [.., m, m] and r [.., m, n]; without a gradient if m > n
};
/// a = q r.
struct Qr {
  Tensor q;  ///< orthonormal columns
  Tensor r;  ///< upper triangular
};
/// QR factors.
TENON_API Qr qr(const Tensor& a, QrMode mode = QrMode::Reduced);
/// R and the reflectors of Q as LAPACK packs them, for householder_product() and ormqr(). Without a
/// gradient. PyTorch: `torch.geqrf`.
struct QrFactor {
  Tensor packed;  ///< r on and above the diagonal, reflectors below it
  Tensor tau;     ///< factors of the reflectors [.., k]
};
/// QR factors in packed form.
TENON_API QrFactor geqrf(const Tensor& a);
/// The first n columns of the product of k reflectors, from packed [.., m, n] and tau [.., k].
TENON_API Tensor householder_product(const Tensor& packed, const Tensor& tau);
/// The product of the whole Q, or Qᵀ if `transposed`, and `other`; with `left` = false of `other`
/// and Q.
TENON_API Tensor ormqr(const QrFactor& factor, const Tensor& other, bool left = true,
                       bool transposed = false);
/// a = u diag(s) vh.
struct Svd {
  Tensor u;   ///< [.., m, m], or [.., m, k] with k = min(m, n)
  Tensor s;   ///< singular values [.., k], largest first
  Tensor vh;  ///< [.., n, n], or [.., k, n]
};
/// The singular value decomposition; `full` gives square u and vh. The columns of u and the rows of
/// vh beyond k have no gradient. Gradients through u and vh need distinct singular values, and do
/// not depend on the signs of the vectors only if the function that is differentiated does not.
TENON_API Svd svd(const Tensor& a, bool full = true);
/// The singular values [.., k], largest first.
TENON_API Tensor svdvals(const Tensor& a);
/// An approximate decomposition of rank `rank` by random projections, which `iterations` power
/// iterations make more exact (N. Halko et al., "Finding structure with randomness", 2011).
TENON_API Svd svd_lowrank(const Tensor& a, std::int64_t rank = 6, int iterations = 2);
/// svd_lowrank() of the matrices with columns of mean 0, by default of rank min(6, m, n).
TENON_API Svd pca_lowrank(const Tensor& a, std::optional<std::int64_t> rank = {},
                          bool center = true, int iterations = 2);
/// Eigenvalues and eigenvectors of symmetric matrices.
struct Eigh {
  Tensor values;   ///< [.., n], smallest first
  Tensor vectors;  ///< columns [.., n, n]
};
/// Eigenvalues and eigenvectors of symmetric matrices; reads the lower triangle, or the upper one.
/// Gradients through the vectors need distinct eigenvalues.
TENON_API Eigh eigh(const Tensor& a, bool upper = false);
/// The eigenvalues of symmetric matrices, smallest first.
TENON_API Tensor eigvalsh(const Tensor& a, bool upper = false);
/// Complex eigenvalues and eigenvectors as real and imaginary parts.
struct Eig {
  Tensor real;               ///< real parts of the eigenvalues [.., n]
  Tensor imaginary;          ///< imaginary parts; conjugate pairs are neighbours
  Tensor vectors_real;       ///< real parts of the eigenvectors, columns of norm 1 [.., n, n]
  Tensor vectors_imaginary;  ///< imaginary parts of the eigenvectors
};
/// Eigenvalues and eigenvectors of square matrices. Without a gradient.
TENON_API Eig eig(const Tensor& a);
/// a = u p.
struct Polar {
  Tensor u;  ///< orthonormal columns [.., m, n]
  Tensor p;  ///< symmetric positive semidefinite [.., n, n]
};
/// The polar decomposition of matrices with at least as many rows as columns. The gradient needs
/// independent columns.
TENON_API Polar polar(const Tensor& a);

// ---- Functions of matrices
/// exp of square matrices (N. Higham, "The scaling and squaring method for the matrix exponential
/// revisited", 2005), in double precision; also of 16-bit dtypes. PyTorch: `torch.matrix_exp`.
TENON_API Tensor matrix_exp(const Tensor& a);
/// The symmetric square root of symmetric positive semidefinite matrices. Negative eigenvalues give
/// NaN.
TENON_API Tensor matrix_sqrth(const Tensor& a);
/// The n-th power of square matrices; a negative n is a power of the inverse. Every dtype that
/// matmul() has for n >= 0.
TENON_API Tensor matrix_power(const Tensor& a, std::int64_t n);

// ---- Norms
/// Norms of matrices that have a name.
enum class MatrixNorm {
  Frobenius,  ///< the root of the sum of squares
  Nuclear     ///< the sum of the singular values
};
/// Norm of the matrices in two axes. Every floating dtype for the Frobenius norm.
TENON_API Tensor matrix_norm(const Tensor& a, MatrixNorm kind = MatrixNorm::Frobenius,
                             const Ints& axes = {-2, -1}, bool keepdim = false);
/// Norm of order `p`: for 1 and -1 the largest and smallest sum of magnitudes of a column, for
/// infinity and -infinity of a row, for 2 and -2 the largest and smallest singular value. Orders
/// but 2 and -2 take every dtype that sum() takes.
TENON_API Tensor matrix_norm(const Tensor& a, double p, const Ints& axes = {-2, -1},
                             bool keepdim = false);
/// The condition number: for p = 2 and -2 the quotient of the largest and the smallest singular
/// value or its inverse, for other orders the norm of the matrix times that of its inverse, which
/// is infinite for singular matrices. Of matrices without elements it is 0.
/// @{
TENON_API Tensor cond(const Tensor& a, double p = 2);
TENON_API Tensor cond(const Tensor& a, MatrixNorm kind);
/// @}

}  // namespace tenon::linalg
