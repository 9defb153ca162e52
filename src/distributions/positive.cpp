// Distributions of positive numbers, and Student's t, whose scale is one.
#include <tenon/creation.h>

#include "distributions/family.h"

namespace tenon::distributions {
namespace {

constexpr ParameterOf kPositiveRate{"rate", Range::Positive},
    kConcentration{"concentration", Range::Positive}, kPositiveScale{"scale", Range::Positive};

Tensor below_0(const State&, const Tensor& x) { return lt(x, 0); }
Tensor up_to_0(const State&, const Tensor& x) { return le(x, 0); }
// `value` where `condition` is true, else infinity.
Tensor or_infinity(const Tensor& condition, const Tensor& value) {
  return where(condition, value, kInfinite);
}
// log Γ as a sample of Gamma(concentration, 1): the logarithm, of a whole shape.
Tensor log_gamma_of(const Tensor& concentration, const Shape& shape,
                    const OptionalGenerator& generator) {
  return log_gamma_sample(broadcast_to(concentration, shape), generator);
}
// e^x, but at least the smallest normal number, whose logarithm is finite.
Tensor positive_exp(const Tensor& x) {
  return exp(clamp_min(x, x.dtype() == DType::Float64 ? -708.39 : -87.33));
}
// Numbers of the exponential distribution with rate 1.
Tensor exponential_noise(const Shape& shape, DType dtype, const OptionalGenerator& generator) {
  return -log(open_uniform(shape, dtype, generator));
}
// Γ(1 + k / concentration).
Tensor weibull_gamma(const State& d, double k) { return exp(lgamma(1 + k / d[1])); }

}  // namespace

const Family kExponential{
    .name = "Exponential",
    .parameters = {kPositiveRate},
    .support = Support::Positive,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return exponential_noise(shape, d[0].dtype(), generator) / d[0];
        },
    .log_prob = [](const State& d, const Tensor& x) { return log(d[0]) - d[0] * x; },
    .outside = below_0,
    .mean = [](const State& d) { return 1 / d[0]; },
    .variance = [](const State& d) { return 1 / square(d[0]); },
    .mode = [](const State& d) { return zeros_like(d[0]); },
    .entropy = [](const State& d) { return 1 - log(d[0]); },
    .cdf = [](const State& d, const Tensor& x) { return -expm1(-d[0] * clamp_min(x, 0)); },
    .icdf = [](const State& d, const Tensor& p) { return -log1p(-p) / d[0]; },
};
Exponential::Exponential(const Argument& rate) : Distribution(made(kExponential, {rate})) {}

const Family kGamma{
    .name = "Gamma",
    .parameters = {kConcentration, kPositiveRate},
    .support = Support::Positive,
    .in_double = true,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return positive_exp(log_gamma_of(d[0], shape, generator) - log(d[1]));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          return xlogy(d[0] - 1, x) + d[0] * log(d[1]) - d[1] * x - lgamma(d[0]);
        },
    .outside = below_0,
    .inside = 1,
    .mean = [](const State& d) { return d[0] / d[1]; },
    .variance = [](const State& d) { return d[0] / square(d[1]); },
    .mode = [](const State& d) { return clamp_min((d[0] - 1) / d[1], 0); },
    .entropy =
        [](const State& d) { return d[0] - log(d[1]) + lgamma(d[0]) + (1 - d[0]) * digamma(d[0]); },
    .cdf = [](const State& d, const Tensor& x) { return igamma(d[0], d[1] * clamp_min(x, 0)); },
};
Gamma::Gamma(const Argument& concentration, const Argument& rate)
    : Distribution(made(kGamma, {concentration, rate})) {}
Chi2::Chi2(const Argument& df)
    : Distribution(
          made(kGamma,
               {df.is_number() ? Argument(df.number() / 2) : Argument(df.tensor() * 0.5), 0.5})) {}

static const Family kInverseGamma{
    .name = "InverseGamma",
    .parameters = {kConcentration, kPositiveRate},
    .support = Support::Positive,
    .in_double = true,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return positive_exp(log(d[1]) - log_gamma_of(d[0], shape, generator));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          return d[0] * log(d[1]) - (d[0] + 1) * log(x) - d[1] / x - lgamma(d[0]);
        },
    .outside = up_to_0,
    .inside = 1,
    .mean =
        [](const State& d) {
          const Tensor finite = gt(d[0], 1);
          return or_infinity(finite, d[1] / (where(finite, d[0], 2) - 1));
        },
    .variance =
        [](const State& d) {
          const Tensor finite = gt(d[0], 2), a = where(finite, d[0], 3);
          return or_infinity(finite, square(d[1] / (a - 1)) / (a - 2));
        },
    .mode = [](const State& d) { return d[1] / (d[0] + 1); },
    .entropy =
        [](const State& d) { return d[0] + log(d[1]) + lgamma(d[0]) - (1 + d[0]) * digamma(d[0]); },
    .cdf = [](const State& d, const Tensor& x) { return igammac(d[0], d[1] / clamp_min(x, 0)); },
};
InverseGamma::InverseGamma(const Argument& concentration, const Argument& rate)
    : Distribution(made(kInverseGamma, {concentration, rate})) {}

static const Family kWeibull{
    .name = "Weibull",
    .parameters = {kPositiveScale, kConcentration},
    .support = Support::Positive,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Tensor noise = exponential_noise(shape, d[0].dtype(), generator);
          return d[0] * exp(log(noise) / d[1]);
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor z = x / d[0];
          return log(d[1] / d[0]) + xlogy(d[1] - 1, z) - pow(z, d[1]);
        },
    .outside = below_0,
    .inside = 1,
    .mean = [](const State& d) { return d[0] * weibull_gamma(d, 1); },
    .variance =
        [](const State& d) {
          return square(d[0]) * (weibull_gamma(d, 2) - square(weibull_gamma(d, 1)));
        },
    .mode = [](const State& d) { return d[0] * pow(clamp_min((d[1] - 1) / d[1], 0), 1 / d[1]); },
    .entropy =
        [](const State& d) { return std::numbers::egamma * (1 - 1 / d[1]) + log(d[0] / d[1]) + 1; },
    .cdf = [](const State& d,
              const Tensor& x) { return -expm1(-pow(clamp_min(x, 0) / d[0], d[1])); },
    .icdf = [](const State& d, const Tensor& p) { return d[0] * pow(-log1p(-p), 1 / d[1]); },
};
Weibull::Weibull(const Argument& scale, const Argument& concentration)
    : Distribution(made(kWeibull, {scale, concentration})) {}

const Family kPareto{
    .name = "Pareto",
    .parameters = {kPositiveScale, {"alpha", Range::Positive}},
    .support = Support::Above,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return d[0] * exp(exponential_noise(shape, d[0].dtype(), generator) / d[1]);
        },
    .log_prob = [](const State& d,
                   const Tensor& x) { return log(d[1]) + d[1] * log(d[0]) - (d[1] + 1) * log(x); },
    .outside = [](const State& d, const Tensor& x) { return lt(x, d[0]); },
    .inside = 1,
    .mean =
        [](const State& d) {
          const Tensor finite = gt(d[1], 1), a = where(finite, d[1], 2);
          return or_infinity(finite, a * d[0] / (a - 1));
        },
    .variance =
        [](const State& d) {
          const Tensor finite = gt(d[1], 2), a = where(finite, d[1], 3);
          return or_infinity(finite, square(d[0] / (a - 1)) * a / (a - 2));
        },
    .mode = [](const State& d) { return d[0]; },
    .entropy = [](const State& d) { return log(d[0] / d[1]) + 1 + 1 / d[1]; },
    .cdf = [](const State& d,
              const Tensor& x) { return -expm1(d[1] * log(d[0] / maximum(x, d[0]))); },
    .icdf = [](const State& d, const Tensor& p) { return d[0] * exp(-log1p(-p) / d[1]); },
};
Pareto::Pareto(const Argument& scale, const Argument& alpha)
    : Distribution(made(kPareto, {scale, alpha})) {}

static const Family kStudentT{
    .name = "StudentT",
    .parameters = {{"df", Range::Positive}, {"loc"}, kPositiveScale},
    .support = Support::Real,
    .in_double = true,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Tensor half = d[0] * 0.5, noise = randn(shape, d[0].dtype(), generator);
          const Tensor log_chi2 = log_gamma_of(half, shape, generator) - log(half);
          return d[1] + d[2] * noise * exp(log_chi2 * -0.5);
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor half = d[0] * 0.5, z = (x - d[1]) / d[2];
          return -(half + 0.5) * log1p(square(z) / d[0]) - log(d[2]) - log(d[0]) * 0.5 -
                 log_beta(half, full_like(half, 0.5));
        },
    .mean = [](const State& d) { return where(gt(d[0], 1), d[1], kNotANumber); },
    .variance =
        [](const State& d) {
          const Tensor finite = gt(d[0], 2), df = where(finite, d[0], 3);
          return where(gt(d[0], 1), or_infinity(finite, square(d[2]) * df / (df - 2)), kNotANumber);
        },
    .mode = [](const State& d) { return d[1]; },
    .entropy =
        [](const State& d) {
          const Tensor half = d[0] * 0.5;
          return log(d[2]) + (half + 0.5) * (digamma(half + 0.5) - digamma(half)) +
                 log(d[0]) * 0.5 + log_beta(half, full_like(half, 0.5));
        },
};
StudentT::StudentT(const Argument& df, const Argument& loc, const Argument& scale)
    : Distribution(made(kStudentT, {df, loc, scale})) {}

}  // namespace tenon::distributions
