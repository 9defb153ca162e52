// Special functions, by PyTorch's names in torch and torch.special. Conventions, dtypes and errors
// are those of ops.h: integers become float32. Values are computed in float64 and rounded to the
// dtype of x. Derivatives are formulas of their own and can be differentiated again.
#pragma once

#include <cstdint>

#include <tenon/ops.h>

namespace tenon {

// ---- Error function and normal distribution
/// 1 - erf(x), accurate where erf(x) is close to 1.
TENON_API Tensor erfc(const Tensor& x);
/// e^(x²) · erfc(x).
TENON_API Tensor erfcx(const Tensor& x);
/// The inverse of erf(); NaN outside [-1, 1].
TENON_API Tensor erfinv(const Tensor& x);
/// The inverse of ndtr(), the quantile of the standard normal distribution; NaN outside [0, 1].
TENON_API Tensor ndtri(const Tensor& x);
/// log(ndtr(x)), accurate in the lower tail.
TENON_API Tensor log_ndtr(const Tensor& x);

// ---- Gamma function and zeta function
/// log |Γ(x)|; infinity at 0 and at negative integers.
TENON_API Tensor lgamma(const Tensor& x);
/// The derivative of lgamma(); NaN at negative integers.
TENON_API Tensor digamma(const Tensor& x);
/// The n-th derivative of digamma(), 0 <= n < 170. At the poles, 0 and the negative integers, it is
/// infinite, positive for an odd n.
TENON_API Tensor polygamma(std::int64_t n, const Tensor& x);
/// The logarithm of the multivariate gamma function of dimension p, for x > (p - 1) / 2.
TENON_API Tensor mvlgamma(const Tensor& x, std::int64_t p);
/// The Hurwitz zeta function, the sum of (q + k)^-s over k >= 0, for s > 1; shapes broadcast. A
/// gradient with respect to s is refused with ValueError when it is requested.
TENON_API Tensor zeta(const Tensor& s, const Tensor& q);

/// The regularized incomplete gamma function, the integral of t^(a - 1) e^-t / Γ(a) from 0 to x,
/// for a and x >= 0; shapes broadcast. A gradient with respect to a is refused with ValueError when
/// it is requested. PyTorch: also `torch.special.gammainc`.
TENON_API Tensor igamma(const Tensor& a, const Tensor& x);
/// 1 - igamma(a, x), accurate where it is small. PyTorch: also `torch.special.gammaincc`.
TENON_API Tensor igammac(const Tensor& a, const Tensor& x);

// ---- Bessel functions
/// Bessel functions of the first and second kind, of order 0 and 1. Those of the second kind are
/// NaN for negative numbers.
/// @{
TENON_API Tensor bessel_j0(const Tensor& x);
TENON_API Tensor bessel_j1(const Tensor& x);
TENON_API Tensor bessel_y0(const Tensor& x);
TENON_API Tensor bessel_y1(const Tensor& x);
/// @}
/// Modified Bessel functions of the first kind, of order 0 and 1; i0e() and i1e() are scaled by
/// e^-|x|. PyTorch: also `torch.special.modified_bessel_i0` and `…_i1`.
/// @{
TENON_API Tensor i0(const Tensor& x);
TENON_API Tensor i0e(const Tensor& x);
TENON_API Tensor i1(const Tensor& x);
TENON_API Tensor i1e(const Tensor& x);
/// @}
/// Modified Bessel functions of the second kind, of order 0 and 1, for x >= 0; the scaled ones are
/// multiplied by e^x.
/// @{
TENON_API Tensor modified_bessel_k0(const Tensor& x);
TENON_API Tensor modified_bessel_k1(const Tensor& x);
TENON_API Tensor scaled_modified_bessel_k0(const Tensor& x);
TENON_API Tensor scaled_modified_bessel_k1(const Tensor& x);
/// @}
/// The Airy function Ai(x). A gradient is refused with ValueError when it is requested.
TENON_API Tensor airy_ai(const Tensor& x);
/// sin(x) / x, 1 at 0: the spherical Bessel function of order 0.
TENON_API Tensor spherical_bessel_j0(const Tensor& x);
/// sin(π x) / (π x), 1 at 0.
TENON_API Tensor sinc(const Tensor& x);
#define TENON_POLYNOMIAL(name)                            \
  TENON_API Tensor name(const Tensor& x, std::int64_t n); \
  TENON_API Tensor name(const Tensor& x, const Tensor& n)
/// Orthogonal polynomials in x of degree n: Chebyshev's of the first to fourth kind, also shifted
/// to [0, 1], Hermite's of physics (h) and of probability (he), Laguerre's and Legendre's. A tensor
/// n broadcasts with x and is evaluated, because the largest degree decides the number of
/// operations; fractions are cut off. A negative degree gives 0. Throws ValueError for a degree
/// above 1024.
/// @{
TENON_POLYNOMIAL(chebyshev_polynomial_t);
TENON_POLYNOMIAL(chebyshev_polynomial_u);
TENON_POLYNOMIAL(chebyshev_polynomial_v);
TENON_POLYNOMIAL(chebyshev_polynomial_w);
TENON_POLYNOMIAL(shifted_chebyshev_polynomial_t);
TENON_POLYNOMIAL(shifted_chebyshev_polynomial_u);
TENON_POLYNOMIAL(shifted_chebyshev_polynomial_v);
TENON_POLYNOMIAL(shifted_chebyshev_polynomial_w);
TENON_POLYNOMIAL(hermite_polynomial_h);
TENON_POLYNOMIAL(hermite_polynomial_he);
TENON_POLYNOMIAL(laguerre_polynomial_l);
TENON_POLYNOMIAL(legendre_polynomial_p);
/// @}
#undef TENON_POLYNOMIAL
}  // namespace tenon
