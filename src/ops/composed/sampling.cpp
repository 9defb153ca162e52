// Samples of distributions, computed from uniform and normal numbers, and activations and dropouts
// that draw numbers.
#include <cmath>
#include <numbers>

#include <tenon/creation.h>
#include <tenon/elementwise.h>
#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon {
namespace {

void require_above(const char* op, const char* what, double value, double limit) {
  if (!(value > limit))
    throw make_error<ValueError>(where(op), ": ", what, " is ", value, ", must be above ", limit);
}

// Uniform numbers in (0, 1], of which a logarithm is finite. Integer results are computed in
// float32.
Tensor positive_uniform(const Shape& shape, DType dtype, const OptionalGenerator& generator) {
  return 1.0 - rand(shape, dtype == DType::Float64 ? dtype : DType::Float32, generator);
}

// The value of dropped elements: what selu() tends to for small numbers (Klambauer et al., 2017).
constexpr double kSaturation = -1.7580993408473766;

Tensor with_saturation(const char* op, const Tensor& x, const Shape& drawn, double p,
                       const OptionalGenerator& generator) {
  if (!is_floating(x.dtype()))
    throw make_error<DTypeError>(where(op), ": takes floating tensors, not ", x.dtype(),
                                 ": cast it first");
  if (!(p >= 0 && p <= 1))
    throw make_error<ValueError>(where(op), ": the probability is ", p, ", must be from 0 to 1");
  if (p == 0) return x;
  if (p == 1) return x * 0.0;
  const Tensor keep = ge(rand(drawn, DType::Float32, generator), p);
  // Mean and variance stay 0 and 1.
  const double scale = 1 / std::sqrt((1 - p) * (1 + p * kSaturation * kSaturation));
  return where(keep, x, kSaturation) * scale - scale * kSaturation * p;
}

}  // namespace

Tensor randint_like(const Tensor& x, std::int64_t low, std::int64_t high,
                    const OptionalGenerator& generator) {
  require_defined("randint_like", x);
  return is_floating(x.dtype())
             ? cast(randint(low, high, x.shape(), DType::Int64, generator), x.dtype())
             : randint(low, high, x.shape(), x.dtype(), generator);
}

Tensor normal(const Tensor& mean, const Tensor& std, const OptionalGenerator& generator) {
  const Called called("normal");
  const auto [center, width] = aligned("normal", mean, std);
  const Tensor from = to_floating(detach(center));
  return from + to_floating(detach(width)) * randn(from.shape(), from.dtype(), generator);
}
Tensor normal(const Shape& shape, double mean, double std, DType dtype,
              const OptionalGenerator& generator) {
  const Called called("normal");
  if (!(std >= 0))
    throw make_error<ValueError>(where("normal"), ": std is ", std, ", must not be negative");
  return randn(shape, dtype, generator) * std + mean;
}
Tensor uniform(const Shape& shape, double low, double high, DType dtype,
               const OptionalGenerator& generator) {
  const Called called("uniform");
  if (!(low <= high))
    throw make_error<ValueError>(where("uniform"), ": low is ", low, ", must not be above high, ",
                                 high);
  return rand(shape, dtype, generator) * (high - low) + low;
}
Tensor exponential(const Shape& shape, double rate, DType dtype,
                   const OptionalGenerator& generator) {
  const Called called("exponential");
  require_above("exponential", "the rate", rate, 0);
  return cast(log(positive_uniform(shape, dtype, generator)) * (-1 / rate), dtype);
}
Tensor geometric(const Shape& shape, double p, DType dtype, const OptionalGenerator& generator) {
  const Called called("geometric");
  if (!(p > 0 && p < 1))
    throw make_error<ValueError>(where("geometric"), ": p is ", p, ", must be between 0 and 1");
  const Tensor u = positive_uniform(shape, dtype, generator);
  return cast(maximum(ceil(log(u) * (1 / std::log1p(-p))), 1), dtype);
}
Tensor cauchy(const Shape& shape, double median, double scale, DType dtype,
              const OptionalGenerator& generator) {
  const Called called("cauchy");
  require_above("cauchy", "the scale", scale, 0);
  const Tensor u = positive_uniform(shape, dtype, generator) - 0.5;
  return cast(tan(u * std::numbers::pi) * scale + median, dtype);
}
Tensor log_normal(const Shape& shape, double mean, double std, DType dtype,
                  const OptionalGenerator& generator) {
  const Called called("log_normal");
  require_above("log_normal", "std", std, 0);
  return exp(normal(shape, mean, std, dtype, generator));
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training,
             const OptionalGenerator& generator) {
  const Called called("rrelu");
  require_defined("rrelu", x);
  if (!(lower <= upper))
    throw make_error<ValueError>(where("rrelu"), ": the lower slope is ", lower,
                                 ", must not be above the upper one, ", upper);
  if (!training) return leaky_relu(x, (lower + upper) / 2);
  const Tensor in = to_floating(x);
  return where(ge(in, 0), in, in * uniform(in.shape(), lower, upper, in.dtype(), generator));
}
Tensor alpha_dropout(const Tensor& x, double p, bool training, const OptionalGenerator& generator) {
  const Called called("alpha_dropout");
  require_defined("alpha_dropout", x);
  return training ? with_saturation("alpha_dropout", x, x.shape(), p, generator) : x;
}
Tensor feature_alpha_dropout(const Tensor& x, double p, bool training,
                             const OptionalGenerator& generator) {
  const Called called("feature_alpha_dropout");
  require_defined("feature_alpha_dropout", x);
  if (x.rank() < 2)
    throw make_error<ShapeError>(where("feature_alpha_dropout"), ": takes [N, C, ..], not ",
                                 x.shape());
  Shape channels = x.shape();
  for (int d = 2; d < x.rank(); ++d) channels[d] = 1;
  return training ? with_saturation("feature_alpha_dropout", x, channels, p, generator) : x;
}

}  // namespace tenon
