// Distributions of probabilities: beta, Dirichlet, continuous Bernoulli and the relaxed ones.
#include <tenon/creation.h>
#include <tenon/error.h>

#include "distributions/family.h"

namespace tenon::distributions {
namespace {

constexpr ParameterOf kTemperature{"temperature", Range::Positive};

Tensor not_in_unit(const State&, const Tensor& x) { return lt(x, 0) | gt(x, 1); }
// Vectors whose numbers are negative or do not sum to 1, up to rounding.
Tensor not_in_simplex(const State&, const Tensor& x) {
  return any(lt(x, 0), -1) | gt(abs(sum(x, -1) - 1), 1e-3);
}

// Concentrations without a common last axis: log Γ samples of [.., n].
Tensor log_gammas(const Tensor& concentration, const Shape& shape,
                  const OptionalGenerator& generator) {
  return log_gamma_sample(broadcast_to(concentration, shape), generator);
}

// Probabilities without 0 and 1, where densities can be infinite.
Tensor inside_unit(const Tensor& x) {
  const bool is_double = x.dtype() == DType::Float64;
  return clamp(x, is_double ? 0x1p-1022 : 0x1p-126, 1 - (is_double ? 0x1p-53 : 0x1p-24));
}

// The mode of a Dirichlet distribution; if all concentrations are below 1, the largest one's
// corner.
Tensor dirichlet_mode(const Tensor& concentration) {
  const Tensor above = clamp_min(concentration - 1, 0);
  const Tensor corner =
      one_hot(argmax(concentration, -1), concentration.size(-1), concentration.dtype());
  const Tensor flat = all(lt(concentration, 1), -1, true);
  return where(flat, corner, above / sum(where(flat, 1, above), -1, true));
}

}  // namespace

const Family kBeta{
    .name = "Beta",
    .parameters = {{"concentration1", Range::Positive}, {"concentration0", Range::Positive}},
    .support = Support::Unit,
    .in_double = true,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Tensor a = log_gammas(d[0], shape, generator);
          return inside_unit(sigmoid(a - log_gammas(d[1], shape, generator)));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          return xlogy(d[0] - 1, x) + xlog1py(d[1] - 1, -x) - log_beta(d[0], d[1]);
        },
    .outside = not_in_unit,
    .inside = 0.5,
    .mean = [](const State& d) { return d[0] / (d[0] + d[1]); },
    .variance =
        [](const State& d) {
          const Tensor total = d[0] + d[1];
          return (d[0] / total) * (d[1] / total) / (total + 1);
        },
    .mode =
        [](const State& d) {
          return select(dirichlet_mode(stack({d[0], d[1]}, -1)), -1, 0);
        },
    .entropy =
        [](const State& d) {
          return log_beta(d[0], d[1]) - (d[0] - 1) * digamma(d[0]) - (d[1] - 1) * digamma(d[1]) +
                 (d[0] + d[1] - 2) * digamma(d[0] + d[1]);
        },
};
Beta::Beta(const Argument& concentration1, const Argument& concentration0)
    : Distribution(made(kBeta, {concentration1, concentration0})) {}

// The mean of x^k.
static Tensor kumaraswamy_moment(const State& d, double k) {
  const Tensor a = 1 + k / d[0];
  return exp(log(d[1]) + log_beta(a, d[1]));
}
// log(1 - x^a), without cancellation near 1.
static Tensor log_rest(const Tensor& x, const Tensor& a) { return log(-expm1(a * log(x))); }
static Tensor kumaraswamy_icdf(const State& d, const Tensor& p) {
  return exp(log(-expm1(log1p(-p) / d[1])) / d[0]);
}

static const Family kKumaraswamy{
    .name = "Kumaraswamy",
    .parameters = {{"concentration1", Range::Positive}, {"concentration0", Range::Positive}},
    .support = Support::Unit,
    .in_double = true,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return inside_unit(kumaraswamy_icdf(d, open_uniform(shape, d[0].dtype(), generator)));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor rest = -expm1(d[0] * log(x));
          return log(d[0]) + log(d[1]) + xlogy(d[0] - 1, x) + xlogy(d[1] - 1, rest);
        },
    .outside = not_in_unit,
    .inside = 0.5,
    .mean = [](const State& d) { return kumaraswamy_moment(d, 1); },
    .variance =
        [](const State& d) { return kumaraswamy_moment(d, 2) - square(kumaraswamy_moment(d, 1)); },
    .mode =
        [](const State& d) {
          const Tensor peaked = ge(d[0], 1) & ge(d[1], 1) & gt(d[0] * d[1], 1);
          const Tensor a = where(peaked, d[0], 2), b = where(peaked, d[1], 2);
          return where(peaked, pow((a - 1) / (a * b - 1), 1 / a), kNotANumber);
        },
    .entropy =
        [](const State& d) {
          const Tensor harmonic = digamma(d[1] + 1) + std::numbers::egamma;
          return 1 - 1 / d[1] + (1 - 1 / d[0]) * harmonic - log(d[0]) - log(d[1]);
        },
    .cdf = [](const State& d,
              const Tensor& x) { return -expm1(d[1] * log_rest(clamp(x, 0.0, 1.0), d[0])); },
    .icdf = kumaraswamy_icdf,
};
Kumaraswamy::Kumaraswamy(const Argument& concentration1, const Argument& concentration0)
    : Distribution(made(kKumaraswamy, {concentration1, concentration0})) {}

const Family kDirichlet{
    .name = "Dirichlet",
    .parameters = {{"concentration", Range::Positive, 1}},
    .value_axes = 1,
    .in_double = true,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return inside_unit(softmax(log_gammas(d[0], shape, generator), -1));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          return sum(xlogy(d[0] - 1, x) - lgamma(d[0]), -1) + lgamma(sum(d[0], -1));
        },
    .outside = not_in_simplex,
    .inside = 0.5,
    .mean = [](const State& d) { return d[0] / sum(d[0], -1, true); },
    .variance =
        [](const State& d) {
          const Tensor total = sum(d[0], -1, true), mean = d[0] / total;
          return mean * (1 - mean) / (total + 1);
        },
    .mode = [](const State& d) { return dirichlet_mode(d[0]); },
    .entropy =
        [](const State& d) {
          const Tensor total = sum(d[0], -1);
          return sum(lgamma(d[0]) - (d[0] - 1) * digamma(d[0]), -1) - lgamma(total) +
                 (total - static_cast<double>(d.event[0])) * digamma(total);
        },
};
Dirichlet::Dirichlet(const Argument& concentration)
    : Distribution(made(kDirichlet, {concentration})) {}

static const Family kRelaxedBernoulli{
    .name = "RelaxedBernoulli",
    .parameters = {kTemperature, {"probs", Range::Probability}, {"logits"}},
    .support = Support::Unit,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Tensor noise = logit(open_uniform(shape, d[0].dtype(), generator));
          return inside_unit(sigmoid((d[2] + noise) / d[0]));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor low = log(x), high = log1p(-x);
          const Tensor difference = d[2] - (low - high) * d[0];
          return log(d[0]) + difference - softplus(difference) * 2 - low - high;
        },
    .outside = not_in_unit,
    .inside = 0.5,
};
RelaxedBernoulli::RelaxedBernoulli(const Argument& temperature, const Probs& probs)
    : Distribution(
          made(kRelaxedBernoulli, {temperature, probs.value, ProbsAndLogits(probs).logits})) {}
RelaxedBernoulli::RelaxedBernoulli(const Argument& temperature, const Logits& logits)
    : Distribution(
          made(kRelaxedBernoulli, {temperature, ProbsAndLogits(logits).probs, logits.value})) {}

static const Family kRelaxedOneHotCategorical{
    .name = "RelaxedOneHotCategorical",
    .parameters = {{"logits", Range::Any, 1}, {"probs", Range::Any, 1}, kTemperature},
    .value_axes = 1,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Tensor noise = gumbel_noise(shape, d[0].dtype(), generator);
          return inside_unit(softmax((d[0] + noise) / unsqueeze(d[2], -1), -1));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const auto classes = static_cast<double>(d.event[0]);
          const Tensor at = log(x), score = log_softmax(d[0] - at * unsqueeze(d[2], -1), -1);
          return sum(score - at, -1) + std::lgamma(classes) + log(d[2]) * (classes - 1);
        },
    .outside = not_in_simplex,
    .inside = 0.5,
};
RelaxedOneHotCategorical::RelaxedOneHotCategorical(const Argument& temperature, const Probs& probs)
    : Distribution([&] {
        const ClassProbabilities both("RelaxedOneHotCategorical", probs);
        return made(kRelaxedOneHotCategorical, {both.logits, both.probs, temperature});
      }()) {}
RelaxedOneHotCategorical::RelaxedOneHotCategorical(const Argument& temperature,
                                                   const Logits& logits)
    : Distribution([&] {
        const ClassProbabilities both("RelaxedOneHotCategorical", logits);
        return made(kRelaxedOneHotCategorical, {both.logits, both.probs, temperature});
      }()) {}

// ---- Continuous Bernoulli: near λ = 1/2 by series, because the exact terms are 0 / 0 there.
namespace {

// λ, but 1/4 where λ is so near 1/2 that formulas in `offset`, 2 λ - 1, are exact.
struct Cut {
  explicit Cut(const Tensor& all, double width)
      : near(lt(abs(all - 0.5), width)),
        probs(where(near, 0.25, all)),
        offset(where(near, all * 2 - 1, 0)),
        slope(log(probs) - log1p(-probs)) {}
  Tensor near, probs, offset, slope;
};
constexpr double kSeries = 0.01, kLinear = 1e-7;

// log(2 artanh(2 λ - 1) / (2 λ - 1)), the logarithm of the normalizing constant.
Tensor log_constant(const Tensor& probs) {
  const Cut cut(probs, kSeries);
  const Tensor x = square(cut.offset);
  const Tensor series = x * (x * (x * (x / 9 + 1.0 / 7) + 1.0 / 5) + 1.0 / 3);
  return where(cut.near, log1p(series) + std::numbers::ln2,
               log(abs(cut.slope)) - log(abs(1 - cut.probs * 2)));
}

Tensor continuous_mean(const State& d) {
  const Cut cut(d[0], kSeries);
  const Tensor x = square(cut.offset);
  const Tensor series = x * (x * (x * (214.0 / 14175) + 22.0 / 945) + 2.0 / 45) + 1.0 / 6;
  return where(cut.near, cut.offset * series + 0.5,
               cut.probs / (cut.probs * 2 - 1) - 1 / cut.slope);
}

}  // namespace

const Family kContinuousBernoulli{
    .name = "ContinuousBernoulli",
    .parameters = {{"probs", Range::Probability}, {"logits"}},
    .support = Support::Unit,
    .in_double = true,
    .reparameterized = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return kContinuousBernoulli.icdf(d, open_uniform(shape, d[0].dtype(), generator));
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          return x * logsigmoid(d[1]) + (1 - x) * logsigmoid(-d[1]) + log_constant(d[0]);
        },
    .outside = not_in_unit,
    .inside = 0.5,
    .mean = continuous_mean,
    .variance =
        [](const State& d) {
          const Cut cut(d[0], kSeries);
          const Tensor p = cut.probs, x = square(cut.offset);
          const Tensor exact = p * (p - 1) / square(1 - p * 2) + 1 / square(cut.slope);
          return where(cut.near, 1.0 / 12 - (x * (8.0 / 945) + 1.0 / 60) * x, exact);
        },
    .entropy =
        [](const State& d) {
          const Tensor mean = continuous_mean(d);
          return -(mean * logsigmoid(d[1]) + (1 - mean) * logsigmoid(-d[1])) - log_constant(d[0]);
        },
    .cdf =
        [](const State& d, const Tensor& x) {
          const Cut cut(d[0], kLinear);
          const Tensor at = clamp(x, 0.0, 1.0);
          return where(cut.near, at + cut.offset * at * (at - 1),
                       expm1(cut.slope * at) / expm1(cut.slope));
        },
    .icdf =
        [](const State& d, const Tensor& p) {
          const Cut cut(d[0], kLinear);
          return where(cut.near, p + cut.offset * p * (1 - p),
                       log1p(p * expm1(cut.slope)) / cut.slope);
        },
};
ContinuousBernoulli::ContinuousBernoulli(const Probs& probs)
    : Distribution(made(kContinuousBernoulli,
                        {ProbsAndLogits(probs).inner, ProbsAndLogits(probs).logits})) {}
ContinuousBernoulli::ContinuousBernoulli(const Logits& logits)
    : Distribution(made(kContinuousBernoulli, {ProbsAndLogits(logits).inner, logits.value})) {}

}  // namespace tenon::distributions
