// Distributions of positive numbers, and those related to them: Student's t, whose scale is one,
// and the generalized Pareto distribution, which is shifted.
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

// log1p(c z) / c, which is z where c is 0, with derivatives of all orders there.
static Tensor log1p_quotient(const Tensor& c, const Tensor& z) {
  const Tensor product = c * z, small = lt(abs(product), 1e-3);
  const Tensor safe_product = where(small, 0, product), safe_c = where(small, 1, c);
  const Tensor p = where(small, product, 0);
  const Tensor series =
      1 - p * (0.5 - p * (1.0 / 3 - p * (0.25 - p * (0.2 - p * (1.0 / 6 - p * (1.0 / 7))))));
  return where(small, z * series, log1p(safe_product) / safe_c);
}
// expm1(c y) / c, which is y where c is 0.
static Tensor expm1_quotient(const Tensor& c, const Tensor& y) {
  const Tensor product = c * y, small = lt(abs(product), 1e-3);
  const Tensor safe_product = where(small, 0, product), safe_c = where(small, 1, c);
  const Tensor p = where(small, product, 0);
  const Tensor series =
      1 + p / 2 * (1 + p / 3 * (1 + p / 4 * (1 + p / 5 * (1 + p / 6 * (1 + p / 7)))));
  return where(small, y * series, expm1(safe_product) / safe_c);
}
static Tensor generalized_pareto_z(const State& d, const Tensor& x) { return (x - d[0]) / d[1]; }
static Tensor outside_generalized_pareto(const State& d, const Tensor& x) {
  const Tensor z = generalized_pareto_z(d, x);
  return lt(z, 0) | lt(1 + d[2] * z, 0);
}
static Tensor generalized_pareto_icdf(const State& d, const Tensor& p) {
  return d[0] + d[1] * expm1_quotient(d[2], -log1p(-p));
}

static const Family kGeneralizedPareto{
    .name = "GeneralizedPareto",
    .parameters = {{"loc"}, kPositiveScale, {"concentration"}},
    .in_double = true,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return generalized_pareto_icdf(d, open_uniform(shape, d[0].dtype(), generator));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor z = generalized_pareto_z(d, x);
          return -log1p_quotient(d[2], z) - log1p(d[2] * z) - log(d[1]);
        },
    .outside = outside_generalized_pareto,
    .mean =
        [](const State& d) {
          const Tensor finite = lt(d[2], 1);
          return or_infinity(finite, d[0] + d[1] / (1 - where(finite, d[2], 0)));
        },
    .variance =
        [](const State& d) {
          const Tensor finite = lt(d[2], 0.5), c = where(finite, d[2], 0);
          return or_infinity(finite, square(d[1] / (1 - c)) / (1 - 2 * c));
        },
    .mode = [](const State& d) { return d[0]; },
    .entropy = [](const State& d) { return log(d[1]) + d[2] + 1; },
    .cdf =
        [](const State& d, const Tensor& x) {
          // Beyond the largest value, the probability is 1.
          const Tensor z = clamp_min(generalized_pareto_z(d, x), 0);
          const Tensor past = lt(1 + d[2] * z, 0), inside = where(past, 0, z);
          return where(past, 1, -expm1(-log1p_quotient(d[2], inside)));
        },
    .icdf = generalized_pareto_icdf,
};
GeneralizedPareto::GeneralizedPareto(const Argument& loc, const Argument& scale,
                                     const Argument& concentration)
    : Distribution(made(kGeneralizedPareto, {loc, scale, concentration})) {}

static const Family kFisherSnedecor{
    .name = "FisherSnedecor",
    .parameters = {{"df1", Range::Positive}, {"df2", Range::Positive}},
    .support = Support::Positive,
    .in_double = true,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Tensor a = d[0] * 0.5, b = d[1] * 0.5;
          const Tensor above = log_gamma_of(a, shape, generator) - log(a);
          return positive_exp(above - log_gamma_of(b, shape, generator) + log(b));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor a = d[0] * 0.5, b = d[1] * 0.5, ratio = d[0] / d[1];
          return a * log(ratio) + xlogy(a - 1, x) - (a + b) * log1p(ratio * x) - log_beta(a, b);
        },
    .outside = below_0,
    .inside = 1,
    .mean =
        [](const State& d) {
          const Tensor finite = gt(d[1], 2), df = where(finite, d[1], 3);
          return where(finite, df / (df - 2), kNotANumber);
        },
    .variance =
        [](const State& d) {
          const Tensor finite = gt(d[1], 4), df = where(finite, d[1], 5);
          const Tensor spread = square(df / (df - 2)) * (d[0] + df - 2) * 2 / (d[0] * (df - 4));
          return where(finite, spread, kNotANumber);
        },
    .mode =
        [](const State& d) {
          return where(gt(d[0], 2), (d[0] - 2) / d[0] * d[1] / (d[1] + 2), kNotANumber);
        },
    .entropy =
        [](const State& d) {
          const Tensor a = d[0] * 0.5, b = d[1] * 0.5, total = digamma(a + b);
          return log_beta(a, b) - (a - 1) * (digamma(a) - digamma(b)) +
                 (a + b) * (total - digamma(b)) + log(d[1] / d[0]);
        },
};
FisherSnedecor::FisherSnedecor(const Argument& df1, const Argument& df2)
    : Distribution(made(kFisherSnedecor, {df1, df2})) {}

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
