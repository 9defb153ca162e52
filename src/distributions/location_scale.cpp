// Distributions of real numbers with a location and a scale, and those made of one by |x| or e^x.
#include <tenon/creation.h>

#include "distributions/family.h"

namespace tenon::distributions {
namespace {

constexpr double kEuler = std::numbers::egamma, kPiHere = std::numbers::pi;
constexpr ParameterOf kLoc{"loc"}, kScale{"scale", Range::Positive};

Tensor standard(const State& d, const Tensor& x) { return (x - d[0]) / d[1]; }
Tensor located(const State& d, const Tensor& z) { return d[0] + d[1] * z; }
Tensor loc_of(const State& d) { return d[0]; }
Tensor not_a_number(const State& d) { return full_like(d[0], kNotANumber); }
Tensor infinity(const State& d) { return full_like(d[0], kInfinite); }
Tensor zero(const State& d) { return zeros_like(d[0]); }
Tensor is_negative(const State&, const Tensor& x) { return lt(x, 0); }
Tensor is_not_positive(const State&, const Tensor& x) { return le(x, 0); }

Tensor normal_density(const Tensor& z, const Tensor& scale) {
  return square(z) * -0.5 - log(scale) - kHalfLogTwoPi;
}
Tensor cauchy_density(const Tensor& z, const Tensor& scale) {
  return -log1p(square(z)) - log(scale) - std::log(kPiHere);
}
Tensor cauchy_quantile(const Tensor& p) { return tan((p - 0.5) * kPiHere); }
Tensor laplace_quantile(const Tensor& p) {
  const Tensor from_middle = p - 0.5;
  return -sign(from_middle) * log1p(abs(from_middle) * -2.0);
}
Tensor normal_entropy(const Tensor& scale) { return log(scale) + (0.5 + kHalfLogTwoPi); }

// scale · quantile of uniform numbers, for a family whose first parameter is the location.
template <Tensor (*quantile)(const Tensor&)>
Tensor draw_by_quantile(const State& d, const Shape& shape, const OptionalGenerator& generator) {
  return located(d, quantile(open_uniform(shape, d[0].dtype(), generator)));
}

}  // namespace

const Family kNormal{
    .name = "Normal",
    .parameters = {kLoc, kScale},
    .support = Support::Real,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return located(d, randn(shape, d[0].dtype(), generator));
        },
    .log_prob = [](const State& d,
                   const Tensor& x) { return normal_density(standard(d, x), d[1]); },
    .mean = loc_of,
    .variance = [](const State& d) { return square(d[1]); },
    .mode = loc_of,
    .entropy = [](const State& d) { return normal_entropy(d[1]); },
    .cdf = [](const State& d, const Tensor& x) { return ndtr(standard(d, x)); },
    .icdf = [](const State& d, const Tensor& p) { return located(d, ndtri(p)); },
};
Normal::Normal(const Argument& loc, const Argument& scale)
    : Distribution(made(kNormal, {loc, scale})) {}

const Family kLogNormal{
    .name = "LogNormal",
    .parameters = {kLoc, kScale},
    .support = Support::Positive,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return exp(kNormal.draw(d, shape, generator));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor at = log(x);
          return kNormal.log_prob(d, at) - at;
        },
    .outside = is_not_positive,
    .inside = 1,
    .mean = [](const State& d) { return exp(d[0] + square(d[1]) * 0.5); },
    .variance =
        [](const State& d) {
          const Tensor square_of_scale = square(d[1]);
          return expm1(square_of_scale) * exp(d[0] * 2 + square_of_scale);
        },
    .mode = [](const State& d) { return exp(d[0] - square(d[1])); },
    .entropy = [](const State& d) { return normal_entropy(d[1]) + d[0]; },
    .cdf = [](const State& d, const Tensor& x) { return kNormal.cdf(d, log(clamp_min(x, 0))); },
    .icdf = [](const State& d, const Tensor& p) { return exp(kNormal.icdf(d, p)); },
};
LogNormal::LogNormal(const Argument& loc, const Argument& scale)
    : Distribution(made(kLogNormal, {loc, scale})) {}

const Family kHalfNormal{
    .name = "HalfNormal",
    .parameters = {kScale},
    .support = Support::Positive,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return d[0] * abs(randn(shape, d[0].dtype(), generator));
        },
    .log_prob = [](const State& d,
                   const Tensor& x) { return normal_density(x / d[0], d[0]) + std::numbers::ln2; },
    .outside = is_negative,
    .mean = [](const State& d) { return d[0] * std::sqrt(2 / kPiHere); },
    .variance = [](const State& d) { return square(d[0]) * (1 - 2 / kPiHere); },
    .mode = zero,
    .entropy = [](const State& d) { return normal_entropy(d[0]) - std::numbers::ln2; },
    .cdf = [](const State& d,
              const Tensor& x) { return erf(clamp_min(x, 0) / d[0] * std::sqrt(0.5)); },
    .icdf = [](const State& d, const Tensor& p) { return d[0] * erfinv(p) * std::numbers::sqrt2; },
};
HalfNormal::HalfNormal(const Argument& scale) : Distribution(made(kHalfNormal, {scale})) {}

const Family kCauchy{
    .name = "Cauchy",
    .parameters = {kLoc, kScale},
    .support = Support::Real,
    .reparameterized = true,
    .draw = draw_by_quantile<cauchy_quantile>,
    .log_prob = [](const State& d,
                   const Tensor& x) { return cauchy_density(standard(d, x), d[1]); },
    .mean = not_a_number,
    .variance = infinity,
    .mode = loc_of,
    .entropy = [](const State& d) { return log(d[1]) + std::log(4 * kPiHere); },
    .cdf = [](const State& d,
              const Tensor& x) { return atan(standard(d, x)) * (1 / kPiHere) + 0.5; },
    .icdf = [](const State& d, const Tensor& p) { return located(d, cauchy_quantile(p)); },
};
Cauchy::Cauchy(const Argument& loc, const Argument& scale)
    : Distribution(made(kCauchy, {loc, scale})) {}

static const Family kHalfCauchy{
    .name = "HalfCauchy",
    .parameters = {kScale},
    .support = Support::Positive,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return d[0] * tan(open_uniform(shape, d[0].dtype(), generator) * (kPiHere / 2));
        },
    .log_prob = [](const State& d,
                   const Tensor& x) { return cauchy_density(x / d[0], d[0]) + std::numbers::ln2; },
    .outside = is_negative,
    .mean = infinity,
    .variance = infinity,
    .mode = zero,
    .entropy = [](const State& d) { return log(d[0]) + std::log(2 * kPiHere); },
    .cdf = [](const State& d,
              const Tensor& x) { return atan(clamp_min(x, 0) / d[0]) * (2 / kPiHere); },
    .icdf = [](const State& d, const Tensor& p) { return d[0] * tan(p * (kPiHere / 2)); },
};
HalfCauchy::HalfCauchy(const Argument& scale) : Distribution(made(kHalfCauchy, {scale})) {}

const Family kLaplace{
    .name = "Laplace",
    .parameters = {kLoc, kScale},
    .support = Support::Real,
    .reparameterized = true,
    .draw = draw_by_quantile<laplace_quantile>,
    .log_prob =
        [](const State& d, const Tensor& x) {
          return -abs(standard(d, x)) - log(d[1]) - std::numbers::ln2;
        },
    .mean = loc_of,
    .variance = [](const State& d) { return square(d[1]) * 2; },
    .mode = loc_of,
    .entropy = [](const State& d) { return log(d[1]) + (1 + std::numbers::ln2); },
    .cdf =
        [](const State& d, const Tensor& x) {
          const Tensor z = standard(d, x);
          return 0.5 - sign(z) * expm1(-abs(z)) * 0.5;
        },
    .icdf = [](const State& d, const Tensor& p) { return located(d, laplace_quantile(p)); },
};
Laplace::Laplace(const Argument& loc, const Argument& scale)
    : Distribution(made(kLaplace, {loc, scale})) {}

const Family kGumbel{
    .name = "Gumbel",
    .parameters = {kLoc, kScale},
    .support = Support::Real,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return located(d, gumbel_noise(shape, d[0].dtype(), generator));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor z = standard(d, x);
          return -(z + exp(-z)) - log(d[1]);
        },
    .mean = [](const State& d) { return d[0] + d[1] * kEuler; },
    .variance = [](const State& d) { return square(d[1]) * (kPiHere * kPiHere / 6); },
    .mode = loc_of,
    .entropy = [](const State& d) { return log(d[1]) + (1 + kEuler); },
    .cdf = [](const State& d, const Tensor& x) { return exp(-exp(-standard(d, x))); },
    .icdf = [](const State& d, const Tensor& p) { return located(d, -log(-log(p))); },
};
Gumbel::Gumbel(const Argument& loc, const Argument& scale)
    : Distribution(made(kGumbel, {loc, scale})) {}

static const Family kLogistic{
    .name = "Logistic",
    .parameters = {kLoc, kScale},
    .support = Support::Real,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return located(d, logit(open_uniform(shape, d[0].dtype(), generator)));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor size = abs(standard(d, x));
          return -size - log1p(exp(-size)) * 2 - log(d[1]);
        },
    .mean = loc_of,
    .variance = [](const State& d) { return square(d[1]) * (kPiHere * kPiHere / 3); },
    .mode = loc_of,
    .entropy = [](const State& d) { return log(d[1]) + 2; },
    .cdf = [](const State& d, const Tensor& x) { return sigmoid(standard(d, x)); },
    .icdf = [](const State& d, const Tensor& p) { return located(d, logit(p)); },
};
Logistic::Logistic(const Argument& loc, const Argument& scale)
    : Distribution(made(kLogistic, {loc, scale})) {}

const Family kUniform{
    .name = "Uniform",
    .parameters = {{"low"}, {"high"}},
    .support = Support::Interval,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return d[0] + (d[1] - d[0]) * open_uniform(shape, d[0].dtype(), generator);
        },
    .log_prob = [](const State& d, const Tensor& x) { return x * 0 - log(d[1] - d[0]); },
    .outside = [](const State& d, const Tensor& x) { return lt(x, d[0]) | ge(x, d[1]); },
    .mean = [](const State& d) { return (d[0] + d[1]) * 0.5; },
    .variance = [](const State& d) { return square(d[1] - d[0]) * (1.0 / 12); },
    .mode = not_a_number,
    .entropy = [](const State& d) { return log(d[1] - d[0]); },
    .cdf = [](const State& d,
              const Tensor& x) { return clamp((x - d[0]) / (d[1] - d[0]), 0.0, 1.0); },
    .icdf = [](const State& d, const Tensor& p) { return d[0] + (d[1] - d[0]) * p; },
};
Uniform::Uniform(const Argument& low, const Argument& high)
    : Distribution(made(kUniform, {low, high})) {
  if (low.is_number() && high.is_number() && !(low.number() < high.number()))
    throw make_error<ValueError>(where("Uniform"), ": low is ", low.number(),
                                 ", must be below high, ", high.number());
}

}  // namespace tenon::distributions
