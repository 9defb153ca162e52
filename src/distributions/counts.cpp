// Distributions of whole numbers, given by rates and probabilities.
#include <tenon/creation.h>
#include <tenon/error.h>

#include "distributions/family.h"

namespace tenon::distributions {
namespace {

constexpr ParameterOf kProbs{"probs", Range::Probability}, kLogits{"logits"};

// x · log(1 - p) and x · log(p) for the logit l of p.
Tensor times_log_failure(const Tensor& x, const Tensor& logits) { return x * logsigmoid(-logits); }
Tensor times_log_success(const Tensor& x, const Tensor& logits) { return x * logsigmoid(logits); }

Tensor bernoulli_entropy(const Tensor& probs, const Tensor& logits) {
  return -(times_log_success(probs, logits) + times_log_failure(1 - probs, logits));
}

// 0 to the largest count along a new first axis of the shape, as a tensor that broadcasts. The
// counts are evaluated.
Tensor up_to(const Tensor& counts, int rank) {
  const auto most = counts.numel() > 0 ? static_cast<std::int64_t>(amax(counts).item()) : 0;
  Ints sizes(static_cast<std::size_t>(rank) + 1, 1);
  sizes[0] = most + 1;
  return reshape(arange(0, most + 1, 1, counts.dtype()), sizes);
}

Tensor is_not_count_here(const State&, const Tensor& x) { return is_not_count(x); }

}  // namespace

const Family kBernoulli{
    .name = "Bernoulli",
    .parameters = {kProbs, kLogits},
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Tensor u = open_uniform(shape, d[0].dtype(), generator);
          return cast(lt(u, d[0]), d[0].dtype());
        },
    // x is 0 or 1, so one of the two logarithms.
    .log_prob = [](const State& d, const Tensor& x) { return logsigmoid((x * 2 - 1) * d[1]); },
    .outside = [](const State&, const Tensor& x) { return ne(x, 0) & ne(x, 1) & ~isnan(x); },
    .mean = [](const State& d) { return d[0]; },
    .variance = [](const State& d) { return d[0] * (1 - d[0]); },
    .mode =
        [](const State& d) {
          return where(eq(d[0], 0.5), kNotANumber, cast(ge(d[0], 0.5), d[0].dtype()));
        },
    .entropy = [](const State& d) { return bernoulli_entropy(d[0], d[1]); },
    .values = [](const State& d) { return arange(2, d[0].dtype()); },
};
Bernoulli::Bernoulli(const Probs& probs)
    : Distribution(made(kBernoulli, {probs.value, ProbsAndLogits(probs).logits})) {}
Bernoulli::Bernoulli(const Logits& logits)
    : Distribution(made(kBernoulli, {ProbsAndLogits(logits).probs, logits.value})) {}

const Family kBinomial{
    .name = "Binomial",
    .parameters = {{"total_count", Range::NotNegative}, kProbs, kLogits},
    .in_double = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return binomial_sample(broadcast_to(d[0], shape), broadcast_to(d[1], shape), generator);
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor ways = lgamma(d[0] + 1) - lgamma(x + 1) - lgamma(d[0] - x + 1);
          return ways + times_log_success(x, d[2]) + times_log_failure(d[0] - x, d[2]);
        },
    .outside = [](const State& d, const Tensor& x) { return is_not_count(x) | gt(x, d[0]); },
    .mean = [](const State& d) { return d[0] * d[1]; },
    .variance = [](const State& d) { return d[0] * d[1] * (1 - d[1]); },
    .mode = [](const State& d) { return minimum(floor((d[0] + 1) * d[1]), d[0]); },
    .entropy =
        [](const State& d) {
          const Tensor k = up_to(d[0], d.batch.rank()), possible = le(k, d[0]);
          const Tensor log_p = kBinomial.log_prob(d, minimum(k, d[0]));
          return -sum(where(possible, exp(log_p) * log_p, 0.0), 0);
        },
    .values = [](const State& d) { return flatten(up_to(d[0], 0)); },
};
Tensor mean_log_factorial(const Tensor& count, const Tensor& probs, const Tensor& logits) {
  State binomial{&kBinomial, {count, probs, logits}};
  const Tensor k = up_to(count, probs.rank());
  return sum(exp(kBinomial.log_prob(binomial, k)) * lgamma(k + 1), 0);
}
Binomial::Binomial(const Argument& total_count, const Probs& probs)
    : Distribution(made(kBinomial, {total_count, probs.value, ProbsAndLogits(probs).logits})) {}
Binomial::Binomial(const Argument& total_count, const Logits& logits)
    : Distribution(made(kBinomial, {total_count, ProbsAndLogits(logits).probs, logits.value})) {}

const Family kGeometric{
    .name = "Geometric",
    .parameters = {kProbs, kLogits},
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Tensor u = open_uniform(shape, d[0].dtype(), generator);
          return floor(log(u) / logsigmoid(-d[1]));
        },
    .log_prob = [](const State& d,
                   const Tensor& x) { return times_log_failure(x, d[1]) + logsigmoid(d[1]); },
    .outside = is_not_count_here,
    .mean = [](const State& d) { return exp(-d[1]); },
    .variance = [](const State& d) { return exp(-d[1]) / d[0]; },
    .mode = [](const State& d) { return zeros_like(d[0]); },
    .entropy = [](const State& d) { return bernoulli_entropy(d[0], d[1]) / d[0]; },
};
Geometric::Geometric(const Probs& probs)
    : Distribution(made(kGeometric, {probs.value, ProbsAndLogits(probs).logits})) {
  if (probs.value.is_number() && probs.value.number() == 0)
    throw make_error<ValueError>(where("Geometric"), ": probs is 0, must be above 0");
}
Geometric::Geometric(const Logits& logits)
    : Distribution(made(kGeometric, {ProbsAndLogits(logits).probs, logits.value})) {}

const Family kPoisson{
    .name = "Poisson",
    .parameters = {{"rate", Range::NotNegative}},
    .in_double = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          return poisson_sample(broadcast_to(d[0], shape), generator);
        },
    .log_prob = [](const State& d,
                   const Tensor& x) { return xlogy(x, d[0]) - d[0] - lgamma(x + 1); },
    .outside = is_not_count_here,
    .mean = [](const State& d) { return d[0]; },
    .variance = [](const State& d) { return d[0]; },
    .mode = [](const State& d) { return floor(d[0]); },
    .cdf =
        [](const State& d, const Tensor& x) {
          return where(lt(x, 0), 0.0, igammac(floor(clamp_min(x, 0)) + 1, d[0]));
        },
};
Poisson::Poisson(const Argument& rate) : Distribution(made(kPoisson, {rate})) {}

static const Family kNegativeBinomial{
    .name = "NegativeBinomial",
    .parameters = {{"total_count", Range::Positive}, kProbs, kLogits},
    .in_double = true,
    .draw =
        [](const State& d, const Shape& shape, const OptionalGenerator& generator) {
          const Tensor rates = log_gamma_sample(broadcast_to(d[0], shape), generator);
          return poisson_sample(exp(detach(rates) + d[2]), generator);
        },
    .log_prob =
        [](const State& d, const Tensor& x) {
          const Tensor ways = lgamma(d[0] + x) - lgamma(x + 1) - lgamma(d[0]);
          return ways + times_log_success(x, d[2]) + times_log_failure(d[0], d[2]);
        },
    .outside = is_not_count_here,
    .mean = [](const State& d) { return d[0] * exp(d[2]); },
    .variance = [](const State& d) { return d[0] * exp(d[2]) / sigmoid(-d[2]); },
    .mode = [](const State& d) { return clamp_min(floor((d[0] - 1) * exp(d[2])), 0); },
};
NegativeBinomial::NegativeBinomial(const Argument& total_count, const Probs& probs)
    : Distribution(
          made(kNegativeBinomial, {total_count, probs.value, ProbsAndLogits(probs).logits})) {}
NegativeBinomial::NegativeBinomial(const Argument& total_count, const Logits& logits)
    : Distribution(
          made(kNegativeBinomial, {total_count, ProbsAndLogits(logits).probs, logits.value})) {}

}  // namespace tenon::distributions
