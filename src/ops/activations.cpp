// Activations and similar element-wise functions, built from the primitives in unary.cpp and
// binary.cpp.
//
// If a branch of where() could overflow, its argument is replaced by a harmless value first: the
// gradient of the branch not taken is 0, and 0 times infinity would be NaN. At kinks the first and
// second derivatives are PyTorch's.
#include <cmath>
#include <numbers>

#include <tenon/error.h>
#include <tenon/functional.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// Gradient 0 at both bounds, unlike clamp, and at NaN. Integers stay integers, as in PyTorch; bool
// becomes float32.
Tensor open_clamp(const Tensor& input, Scalar low, Scalar high) {
  const Tensor x = is_bool(input.dtype()) ? to_floating(input) : input;
  Tensor clamped = minimum(maximum(x, low), high);
  if (!is_floating(x.dtype())) return clamped;
  return where(logical_and(gt(x, low), lt(x, high)), x, detach(clamped));
}

}  // namespace

Tensor clamp(const Tensor& x, Scalar low, Scalar high) {
  const Called called("clamp");
  // The gradient is 1 where x equals its clamped value, bounds included, and 0 elsewhere, also at
  // NaN.
  Tensor clamped = minimum(maximum(x, low), high);
  if (!is_floating(clamped.dtype())) return clamped;
  return where(eq(clamped, x), x, detach(clamped));
}

Tensor hardtanh(const Tensor& x) {
  require_defined("hardtanh", x);
  return open_clamp(x, x.dtype() == DType::UInt8 ? 0 : -1, 1);
}
Tensor relu6(const Tensor& x) {
  require_defined("relu6", x);
  return open_clamp(x, 0, 6);
}
Tensor hardsigmoid(const Tensor& x) {
  require_defined("hardsigmoid", x);
  return open_clamp(to_floating(x) + 3, 0, 6) / 6;
}
Tensor silu(const Tensor& x) {
  require_defined("silu", x);
  return to_floating(x) * sigmoid(x);
}
Tensor mish(const Tensor& x) {
  require_defined("mish", x);
  return to_floating(x) * tanh(softplus(x));
}
Tensor softsign(const Tensor& x) {
  require_defined("softsign", x);
  return to_floating(x) / (1 + abs(to_floating(x)));
}
Tensor log2(const Tensor& x) {
  require_defined("log2", x);
  return log(x) * std::numbers::log2e;
}
Tensor log10(const Tensor& x) {
  require_defined("log10", x);
  return log(x) * std::numbers::log10e;
}

Tensor gelu(const Tensor& input, bool tanh_approximation) {
  require_defined("gelu", input);
  const Tensor x = to_floating(input);
  if (!tanh_approximation) return x * 0.5 * (1 + erf(x * (1 / std::numbers::sqrt2)));
  // 1 + tanh(u) = 2 sigmoid(2 u); the right side has no cancellation.
  const double scale = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // 2 sqrt(2 / pi)
  return x * sigmoid(x * (square(x) * (0.044715 * scale) + scale));
}

Tensor leaky_relu(const Tensor& input, double negative_slope) {
  require_defined("leaky_relu", input);
  const Tensor x = to_floating(input);
  return where(gt(x, 0), x, x * negative_slope);
}

// At 0 the first derivative is the limit from below, alpha, and the second derivative is the limit
// from above, 0.
Tensor elu(const Tensor& input, double alpha) {
  require_defined("elu", input);
  const Tensor x = to_floating(input), linear = ge(x, 0);
  const Tensor line = alpha == 1 ? x : where(gt(x, 0), x, x * alpha);
  return where(linear, line, expm1(where(linear, 0, x)) * alpha);
}

Tensor celu(const Tensor& input, double alpha) {
  require_defined("celu", input);
  if (alpha == 0) throw make_error<ValueError>(where("celu"), ": alpha is 0");
  const Tensor x = to_floating(input), linear = ge(x, 0);
  return where(linear, x, expm1(where(linear, 0, x) / alpha) * alpha);
}

Tensor selu(const Tensor& x) {
  require_defined("selu", x);
  constexpr double kAlpha = 1.6732632423543772848170429916717,
                   kScale = 1.0507009873554804934193349852946;
  return elu(x, kAlpha) * kScale;
}

Tensor hardswish(const Tensor& input) {
  require_defined("hardswish", input);
  const Tensor x = to_floating(input);
  return x * open_clamp(x + 3, 0, 6) / 6;
}

// min(x, 0) - log(1 + exp(-|x|)), whose gradient at 0 is exact.
Tensor logsigmoid(const Tensor& input) {
  require_defined("logsigmoid", input);
  const Tensor x = to_floating(input), positive = ge(x, 0);
  return where(positive, 0, x) - log1p(exp(where(positive, -x, x)));
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  require_defined("prelu", x, weight);
  if (weight.numel() == 1) {
    const Tensor slope = reshape(weight, {});
    return where(gt(x, 0), x, x * slope);
  }
  if (weight.rank() != 1 || x.rank() < 2 || weight.size(0) != x.size(1))
    throw make_error<ShapeError>(where("prelu"), ": the weight is ", weight.shape(), ", for input ",
                                 x.shape(), " it is one number or one for each channel");
  Ints sizes(static_cast<std::size_t>(x.rank() - 1), 1);
  sizes[0] = weight.size(0);
  return where(gt(x, 0), x, x * reshape(weight, sizes));
}

Tensor glu(const Tensor& x, int axis) {
  require_defined("glu", x);
  const int a = normalize_axis(axis, x.rank(), where("glu"));
  const std::int64_t size = x.size(a);
  if (size % 2 != 0)
    throw make_error<ShapeError>(where("glu"), ": axis ", axis, " of ", x.shape(),
                                 " has no two halves");
  return slice(x, a, 0, size / 2) * sigmoid(slice(x, a, size / 2, size));
}

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  const Called called("lerp");
  return where(lt(abs(weight), 0.5), a + weight * (b - a), b - (b - a) * (1 - weight));
}
Tensor lerp(const Tensor& a, const Tensor& b, double weight) {
  const Called called("lerp");
  return std::abs(weight) < 0.5 ? a + (b - a) * weight : b - (b - a) * (1 - weight);
}

Tensor softplus(const Tensor& input, double beta, double threshold) {
  require_defined("softplus", input);
  if (!(beta > 0))
    throw make_error<ValueError>(where("softplus"), ": beta is ", beta, "; it must be positive");
  const Tensor x = to_floating(input), z = x * beta, linear_part = gt(z, threshold);
  return where(linear_part, x, log1p(exp(where(linear_part, 0, z))) / beta);
}

}  // namespace tenon
