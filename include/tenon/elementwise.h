// More element-wise operations, by PyTorch's names, and products with an addend. Conventions,
// dtypes and errors are those of ops.h. All functions with floating-point results can be
// differentiated more than once.
#pragma once

#include <limits>
#include <optional>

#include <tenon/ops.h>

namespace tenon {

// ---- One tensor
/// x, but not below `low`; NaN stays NaN.
TENON_API Tensor clamp_min(const Tensor& x, Scalar low);
/// x, but not above `high`; NaN stays NaN.
TENON_API Tensor clamp_max(const Tensor& x, Scalar high);
/// x without its integer part: x - trunc(x).
TENON_API Tensor frac(const Tensor& x);
/// x in degrees for x in radians.
TENON_API Tensor rad2deg(const Tensor& x);
/// x in radians for x in degrees.
TENON_API Tensor deg2rad(const Tensor& x);
/// log(x / (1 - x)), with x limited to [eps, 1 - eps] if eps is given.
TENON_API Tensor logit(const Tensor& x, std::optional<double> eps = {});
/// -x · log(x), 0 for 0 and -infinity for negative numbers. PyTorch: `torch.special.entr`.
TENON_API Tensor entr(const Tensor& x);
/// The distribution function of the standard normal distribution. PyTorch: `torch.special.ndtr`.
TENON_API Tensor ndtr(const Tensor& x);
/// Whether x is positive infinity; bool.
TENON_API Tensor isposinf(const Tensor& x);
/// Whether x is negative infinity; bool.
TENON_API Tensor isneginf(const Tensor& x);
/// x with NaN and the infinities replaced; by default by 0 and the largest and smallest number of
/// the dtype.
TENON_API Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> positive = {},
                            std::optional<double> negative = {});
/// softmax(-x) along an axis.
TENON_API Tensor softmin(const Tensor& x, int axis = -1);
/// x moved towards 0 by lambd, and 0 between -lambd and lambd.
TENON_API Tensor softshrink(const Tensor& x, double lambd = 0.5);
/// x, but 0 between -lambd and lambd.
TENON_API Tensor hardshrink(const Tensor& x, double lambd = 0.5);
/// x - tanh(x).
TENON_API Tensor tanhshrink(const Tensor& x);
/// Leaky ReLU with a random slope between lower and upper for each element in training, and their
/// mean otherwise (Xu et al., 2015).
TENON_API Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3,
                       bool training = false, const OptionalGenerator& generator = {});
/// Dropout that keeps the mean and variance of the outputs of selu() (Klambauer et al., 2017): of
/// elements, or of whole channels of x [N, C, ..]. Returns x if `training` is false.
/// @{
TENON_API Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = false,
                               const OptionalGenerator& generator = {});
TENON_API Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5, bool training = false,
                                       const OptionalGenerator& generator = {});
/// @}
/// x if it is above the threshold, else `value`.
TENON_API Tensor threshold(const Tensor& x, Scalar threshold, Scalar value);

/// Inverse hyperbolic cosine; NaN below 1.
TENON_API Tensor acosh(const Tensor& x);
/// Inverse hyperbolic sine.
TENON_API Tensor asinh(const Tensor& x);
/// Inverse hyperbolic tangent; NaN outside [-1, 1].
TENON_API Tensor atanh(const Tensor& x);
/// Whether x has a minus sign; bool. True for -0; false for NaN, whatever its sign.
TENON_API Tensor signbit(const Tensor& x);
/// Mantissas and exponents of floating-point numbers.
struct ValuesAndExponents {
  Tensor mantissa;  ///< In (-1, -0.5] or [0.5, 1), or x itself if it is 0, infinite or NaN.
  Tensor exponent;  ///< int32: x is mantissa · 2^exponent.
};
/// Splits floating-point numbers into mantissa and exponent.
TENON_API ValuesAndExponents frexp(const Tensor& x);

// ---- Two tensors
/// sqrt(a² + b²) without overflow.
TENON_API Tensor hypot(const Tensor& a, const Tensor& b);
/// |x| with the sign of `sign`.
TENON_API Tensor copysign(const Tensor& x, const Tensor& sign);
/// The number of the dtype next to x in the direction of `towards`, whose gradient is 0.
TENON_API Tensor nextafter(const Tensor& x, const Tensor& towards);
/// The greatest common divisor of integers, at least 0.
TENON_API Tensor gcd(const Tensor& x, const Tensor& y);
/// The least common multiple of integers, at least 0; an overflow wraps around.
TENON_API Tensor lcm(const Tensor& x, const Tensor& y);
/// Integers with their bits moved; bits that leave are lost. A right shift keeps the sign. A shift
/// by fewer than 0 or more bits than the dtype has moves all bits out.
/// @{
TENON_API Tensor bitwise_left_shift(const Tensor& x, const Tensor& by);
TENON_API Tensor bitwise_right_shift(const Tensor& x, const Tensor& by);
/// @}
/// The larger number; if one is NaN, the other.
TENON_API Tensor fmax(const Tensor& a, const Tensor& b);
/// The smaller number; if one is NaN, the other.
TENON_API Tensor fmin(const Tensor& a, const Tensor& b);
/// The remainder of a / b with the sign of a, as C's `fmod`.
TENON_API Tensor fmod(const Tensor& a, const Tensor& b);
/// 0 for x < 0, 1 for x > 0, and `values` for x = 0.
TENON_API Tensor heaviside(const Tensor& x, const Tensor& values);
/// x · log(y), and 0 for x = 0 if y is not NaN.
TENON_API Tensor xlogy(const Tensor& x, const Tensor& y);
/// x · log1p(y), and 0 for x = 0 if y is not NaN.
TENON_API Tensor xlog1py(const Tensor& x, const Tensor& y);
/// x · 2^exponent.
TENON_API Tensor ldexp(const Tensor& x, const Tensor& exponent);
/// log2(2^a + 2^b), computed without overflow.
TENON_API Tensor logaddexp2(const Tensor& a, const Tensor& b);
/// pow() in float64.
TENON_API Tensor float_power(const Tensor& x, const Tensor& exponent);
/// Whether each element of x is among the elements of `test`; bool.
TENON_API Tensor isin(const Tensor& x, const Tensor& test, bool invert = false);

// ---- Products with an addend
/// x + value · a · b, element by element.
TENON_API Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);
/// x + value · a / b, element by element.
TENON_API Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);
/// beta · x + alpha · (a matrix product b), for two matrices.
TENON_API Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1,
                       Scalar alpha = 1);
/// beta · x + alpha · (matrix product vector).
TENON_API Tensor addmv(const Tensor& x, const Tensor& matrix, const Tensor& vector, Scalar beta = 1,
                       Scalar alpha = 1);
/// beta · x + alpha · outer(a, b).
TENON_API Tensor addr(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1,
                      Scalar alpha = 1);
/// beta · x + alpha · (matrix products of a batch).
TENON_API Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1,
                         Scalar alpha = 1);
/// beta · x + alpha · (the sum of the matrix products of a batch).
TENON_API Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta = 1,
                        Scalar alpha = 1);

// ---- Distances
/// The p-norm of a - b over all elements.
TENON_API Tensor dist(const Tensor& a, const Tensor& b, double p = 2);
/// The p-norm of a - b + eps over the last axis.
TENON_API Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2,
                                   double eps = 1e-6, bool keepdim = false);
/// Cross product of vectors of three elements along an axis.
TENON_API Tensor cross(const Tensor& a, const Tensor& b, int axis = -1);

}  // namespace tenon
