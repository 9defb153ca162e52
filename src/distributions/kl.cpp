// Kullback-Leibler divergences: a table of pairs, as in PyTorch.
#include <iterator>

#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/linalg.h>

#include "distributions/matrices.h"

namespace tenon::distributions {
namespace {

using std::numbers::egamma;

struct KnownPair {
  const Family *p, *q;
  Tensor (*divergence)(const State& p, const State& q);
};

// -H(p), the first part of most divergences.
Tensor negative_entropy(const State& p) { return -p.family->entropy(p); }
Tensor mean_of(const State& p) { return p.family->mean(p); }
Tensor variance_of(const State& p) { return p.family->variance(p); }

// From any distribution whose mean and variance are known.
Tensor to_normal(const State& p, const State& q) {
  const Tensor off = variance_of(p) + square(mean_of(p) - q[0]);
  return negative_entropy(p) + off / square(q[1]) * 0.5 + log(q[1]) + kHalfLogTwoPi;
}
Tensor to_exponential(const State& p, const State& q) {
  return negative_entropy(p) + q[0] * mean_of(p) - log(q[0]);
}
// `mean_log` is the mean of log(x).
Tensor to_gamma(const State& p, const State& q, const Tensor& mean_log) {
  return negative_entropy(p) - q[0] * log(q[1]) + lgamma(q[0]) - (q[0] - 1) * mean_log +
         q[1] * mean_of(p);
}
// `mean_exp` is the mean of e^(-(x - loc) / scale).
Tensor to_gumbel(const State& p, const State& q, const Tensor& mean_exp) {
  return negative_entropy(p) + (mean_of(p) - q[0]) / q[1] + mean_exp + log(q[1]);
}

Tensor bernoulli_pair(const State& p, const State& q) {
  // Of logits, so that no probability of 0 is divided by.
  const Tensor success = p[0] * (logsigmoid(p[1]) - logsigmoid(q[1]));
  return success + (1 - p[0]) * (logsigmoid(-p[1]) - logsigmoid(-q[1]));
}
Tensor binomial_pair(const State& p, const State& q) {
  const Tensor success = p[1] * (logsigmoid(p[2]) - logsigmoid(q[2]));
  const Tensor one = success + (1 - p[1]) * (logsigmoid(-p[2]) - logsigmoid(-q[2]));
  return where(eq(p[0], q[0]), p[0] * one, where(gt(p[0], q[0]), kInfinite, scalar(kNotANumber)));
}
Tensor category_pair(const State& p, const State& q) {
  if (p[0].size(-1) != q[0].size(-1))
    throw make_error<ShapeError>(where("kl_divergence"), ": distributions of ", p[0].size(-1),
                                 " and ", q[0].size(-1), " classes");
  return sum(p[0] * where(eq(p[0], 0), 0, p[1] - q[1]), -1);
}
Tensor dirichlet_pair(const State& p, const State& q) {
  const Tensor p_total = sum(p[0], -1), q_total = sum(q[0], -1);
  const Tensor expected = digamma(p[0]) - unsqueeze(digamma(p_total), -1);
  return lgamma(p_total) - lgamma(q_total) -
         sum(lgamma(p[0]) - lgamma(q[0]) - (p[0] - q[0]) * expected, -1);
}
Tensor beta_pair(const State& p, const State& q) {
  const Tensor total = p[0] + p[1], change = q[0] - p[0] + q[1] - p[1];
  return log_beta(q[0], q[1]) - log_beta(p[0], p[1]) + (p[0] - q[0]) * digamma(p[0]) +
         (p[1] - q[1]) * digamma(p[1]) + change * digamma(total);
}
Tensor gamma_pair(const State& p, const State& q) {
  return q[0] * log(p[1] / q[1]) + lgamma(q[0]) - lgamma(p[0]) + (p[0] - q[0]) * digamma(p[0]) +
         (q[1] - p[1]) * (p[0] / p[1]);
}
Tensor normal_pair(const State& p, const State& q) {
  const Tensor ratio = square(p[1] / q[1]), off = square((p[0] - q[0]) / q[1]);
  return (ratio + off - 1 - log(ratio)) * 0.5;
}
Tensor laplace_pair(const State& p, const State& q) {
  const Tensor distance = abs(p[0] - q[0]), ratio = p[1] / q[1];
  return ratio * exp(-distance / p[1]) + distance / q[1] - log(ratio) - 1;
}
Tensor cauchy_pair(const State& p, const State& q) {
  return log((square(p[1] + q[1]) + square(p[0] - q[0])) / (p[1] * q[1] * 4));
}
Tensor gumbel_pair(const State& p, const State& q) {
  const Tensor ratio = p[1] / q[1], off = (p[0] - q[0]) / q[1];
  return -log(ratio) + off - 1 + (ratio - 1) * egamma + exp(lgamma(ratio + 1) - off);
}
Tensor uniform_pair(const State& p, const State& q) {
  const Tensor inside = le(q[0], p[0]) & ge(q[1], p[1]);
  return where(inside, log((q[1] - q[0]) / (p[1] - p[0])), kInfinite);
}
Tensor pareto_pair(const State& p, const State& q) {
  const Tensor ratio = p[1] / q[1], inside = ge(p[0], q[0]);
  return where(inside, q[1] * log(p[0] / q[0]) + log(ratio) + 1 / ratio - 1, kInfinite);
}
Tensor geometric_pair(const State& p, const State& q) {
  return negative_entropy(p) - logsigmoid(-q[1]) * mean_of(p) - logsigmoid(q[1]);
}
Tensor continuous_bernoulli_pair(const State& p, const State& q) {
  const Tensor at = mean_of(p), none = zeros_like(at);
  const Tensor constant = kContinuousBernoulli.log_prob(q, none);
  return negative_entropy(p) - (at * q[1] + constant);
}
Tensor poisson_pair(const State& p, const State& q) {
  return xlogy(p[0], p[0] / q[0]) - p[0] + q[0];
}

// Of factors L of the covariances, and the difference of the means.
Tensor of_factors(const Tensor& p, const Tensor& q, const Tensor& difference) {
  const auto n = static_cast<double>(p.size(-1));
  const Shape batch =
      broadcast_shapes(without_last(p.shape(), 2), without_last(q.shape(), 2), "kl_divergence");
  const Shape all = joined(batch, last_of(p.shape(), 2));
  const Tensor relative = linalg::solve_triangular(broadcast_to(q, all), broadcast_to(p, all));
  const Tensor distance = squared_distance(
      broadcast_to(q, all), broadcast_to(difference, joined(batch, last_of(all, 1))));
  return log_determinant(q) - log_determinant(p) +
         (sum(square(relative), {-2, -1}) + distance - n) * 0.5;
}
Tensor covariance_factor(const State& d) {
  return d.family == &kMultivariateNormal ? d[1] : linalg::cholesky(low_rank_covariance(d));
}
Tensor multivariate_pair(const State& p, const State& q) {
  if (p.event != q.event)
    throw make_error<ShapeError>(where("kl_divergence"), ": vectors ", p.event, " and ", q.event);
  return of_factors(covariance_factor(p), covariance_factor(q), p[0] - q[0]);
}

// From a uniform distribution: the mean of log(q) has the integral of log(x) in it.
Tensor uniform_mean_log(const State& p) {
  return (xlogy(p[1], p[1]) - xlogy(p[0], p[0])) / (p[1] - p[0]) - 1;
}
Tensor if_inside(const State& p, double low, double high, const Tensor& value) {
  return where(ge(p[0], low) & le(p[1], high), value, kInfinite);
}
Tensor uniform_to_beta(const State& p, const State& q) {
  const Tensor low = 1 - p[1], high = 1 - p[0];
  const Tensor mean_log_rest = (xlogy(high, high) - xlogy(low, low)) / (p[1] - p[0]) - 1;
  return if_inside(p, 0, 1,
                   negative_entropy(p) + log_beta(q[0], q[1]) - (q[0] - 1) * uniform_mean_log(p) -
                       (q[1] - 1) * mean_log_rest);
}
Tensor uniform_to_pareto(const State& p, const State& q) {
  const Tensor value =
      negative_entropy(p) - log(q[1]) - q[1] * log(q[0]) + (q[1] + 1) * uniform_mean_log(p);
  return where(ge(p[0], q[0]), value, kInfinite);
}
Tensor uniform_to_gumbel(const State& p, const State& q) {
  const Tensor low = (p[0] - q[0]) / q[1], high = (p[1] - q[0]) / q[1];
  return to_gumbel(p, q, (exp(-low) - exp(-high)) / (high - low));
}
Tensor normal_to_laplace(const State& p, const State& q) {
  const Tensor z = (p[0] - q[0]) / p[1];
  const Tensor distance = p[1] * (exp(square(z) * -0.5) * std::sqrt(2 / std::numbers::pi) +
                                  z * erf(z * std::sqrt(0.5)));
  return negative_entropy(p) + distance / q[1] + log(q[1]) + std::numbers::ln2;
}
Tensor unit_to_uniform(const State& p, const State& q) {
  return where(le(q[0], 0) & ge(q[1], 1), negative_entropy(p) + log(q[1] - q[0]), kInfinite);
}
Tensor pareto_mean_log(const State& p) { return log(p[0]) + 1 / p[1]; }
// A mean that is infinite makes the divergence infinite.
Tensor pareto_to_normal(const State& p, const State& q) {
  const Tensor finite = gt(p[1], 2);
  return where(finite, to_normal(p, q), kInfinite);
}

constexpr KnownPair kPairs[] = {
    {&kBernoulli, &kBernoulli, bernoulli_pair},
    {&kBernoulli, &kPoisson,
     [](const State& p, const State& q) {
       return negative_entropy(p) - (p[0] * log(q[0]) - q[0]);
     }},
    {&kBeta, &kBeta, beta_pair},
    {&kBeta, &kContinuousBernoulli, continuous_bernoulli_pair},
    {&kBeta, &kExponential, to_exponential},
    {&kBeta, &kGamma,
     [](const State& p, const State& q) {
       return to_gamma(p, q, digamma(p[0]) - digamma(p[0] + p[1]));
     }},
    {&kBeta, &kNormal, to_normal},
    {&kBeta, &kUniform, unit_to_uniform},
    {&kBinomial, &kBinomial, binomial_pair},
    {&kCategorical, &kCategorical, category_pair},
    {&kCauchy, &kCauchy, cauchy_pair},
    {&kContinuousBernoulli, &kContinuousBernoulli, continuous_bernoulli_pair},
    {&kContinuousBernoulli, &kExponential, to_exponential},
    {&kContinuousBernoulli, &kNormal, to_normal},
    {&kContinuousBernoulli, &kUniform, unit_to_uniform},
    {&kDirichlet, &kDirichlet, dirichlet_pair},
    {&kExponential, &kExponential,
     [](const State& p, const State& q) {
       const Tensor ratio = q[0] / p[0];
       return ratio - 1 - log(ratio);
     }},
    {&kExponential, &kGamma,
     [](const State& p, const State& q) { return to_gamma(p, q, -log(p[0]) - egamma); }},
    {&kExponential, &kGumbel,
     [](const State& p, const State& q) {
       return to_gumbel(p, q, exp(q[0] / q[1]) * p[0] * q[1] / (p[0] * q[1] + 1));
     }},
    {&kExponential, &kNormal, to_normal},
    {&kGamma, &kExponential, to_exponential},
    {&kGamma, &kGamma, gamma_pair},
    {&kGamma, &kGumbel,
     [](const State& p, const State& q) {
       return to_gumbel(p, q, exp(q[0] / q[1] - log1p(1 / (p[1] * q[1])) * p[0]));
     }},
    {&kGamma, &kNormal, to_normal},
    {&kGeometric, &kGeometric, geometric_pair},
    {&kGumbel, &kGumbel, gumbel_pair},
    {&kGumbel, &kNormal, to_normal},
    {&kHalfNormal, &kHalfNormal,
     [](const State& p, const State& q) {
       const Tensor ratio = square(p[0] / q[0]);
       return (ratio - 1 - log(ratio)) * 0.5;
     }},
    {&kLaplace, &kLaplace, laplace_pair},
    {&kLaplace, &kNormal, to_normal},
    {&kLogNormal, &kLogNormal, normal_pair},
    {&kLowRankMultivariateNormal, &kLowRankMultivariateNormal, multivariate_pair},
    {&kLowRankMultivariateNormal, &kMultivariateNormal, multivariate_pair},
    {&kMultivariateNormal, &kLowRankMultivariateNormal, multivariate_pair},
    {&kMultivariateNormal, &kMultivariateNormal, multivariate_pair},
    {&kNormal, &kGumbel,
     [](const State& p, const State& q) {
       const Tensor mean = (p[0] - q[0]) / q[1], spread = square(p[1] / q[1]);
       return to_gumbel(p, q, exp(spread * 0.5 - mean));
     }},
    {&kNormal, &kLaplace, normal_to_laplace},
    {&kNormal, &kNormal, normal_pair},
    {&kOneHotCategorical, &kOneHotCategorical, category_pair},
    {&kPareto, &kExponential, to_exponential},
    {&kPareto, &kGamma,
     [](const State& p, const State& q) { return to_gamma(p, q, pareto_mean_log(p)); }},
    {&kPareto, &kNormal, pareto_to_normal},
    {&kPareto, &kPareto, pareto_pair},
    {&kPoisson, &kBernoulli,
     [](const State& p, const State&) { return full_like(p[0], kInfinite); }},
    {&kPoisson, &kBinomial,
     [](const State& p, const State&) { return full_like(p[0], kInfinite); }},
    {&kPoisson, &kPoisson, poisson_pair},
    {&kUniform, &kBeta, uniform_to_beta},
    {&kUniform, &kContinuousBernoulli,
     [](const State& p, const State& q) {
       return if_inside(p, 0, 1, continuous_bernoulli_pair(p, q));
     }},
    {&kUniform, &kExponential,
     [](const State& p, const State& q) {
       return if_inside(p, 0, kInfinite, to_exponential(p, q));
     }},
    {&kUniform, &kGamma,
     [](const State& p, const State& q) {
       return if_inside(p, 0, kInfinite, to_gamma(p, q, uniform_mean_log(p)));
     }},
    {&kUniform, &kGumbel, uniform_to_gumbel},
    {&kUniform, &kNormal, to_normal},
    {&kUniform, &kPareto, uniform_to_pareto},
    {&kUniform, &kUniform, uniform_pair},
    {&kWishart, &kWishart, wishart_divergence},
};

// Whether values of p are outside of the support of q with any parameters.
bool never_covered(Support p, Support q) {
  const bool is_long = p == Support::Real || p == Support::Positive;
  switch (q) {
    case Support::Positive:
      return p == Support::Real;
    case Support::Unit:
    case Support::Interval:
      return is_long || p == Support::Above;
    case Support::Above:
      return is_long || p == Support::Unit;
    default:
      return false;
  }
}

Tensor of_independent(const State& p, const State& q) {
  if (p.number != q.number)
    throw make_error<NotSupported>(where("kl_divergence"), ": Independent of ", p.number, " and ",
                                   q.number, " axes");
  return sum_last(kl_divergence(p.parts[0], q.parts[0]), static_cast<int>(p.number));
}
// One transform of both does not change the divergence.
Tensor of_transformed(const State& p, const State& q) {
  if (&p.transforms[0].rule() != &q.transforms[0].rule() || p.event != q.event)
    throw make_error<NotSupported>(
        where("kl_divergence"),
        ": two TransformedDistributions have a closed form if they share one Transform");
  return kl_divergence(p.parts[0], q.parts[0]);
}

Tensor of_pair(const State& p, const State& q) {
  for (const KnownPair& each : kPairs)
    if (each.p == p.family && each.q == q.family) return each.divergence(p, q);
  if (never_covered(p.family->support, q.family->support))
    return full(broadcast_shapes(p.batch, q.batch, where("kl_divergence")), kInfinite,
                dtype_of_parameters(p));
  throw make_error<NotSupported>(where("kl_divergence"), ": there is no closed form for ",
                                 p.family->name, " and ", q.family->name,
                                 ": average p.log_prob(x) - q.log_prob(x) over samples x of p");
}

}  // namespace

Tensor kl_divergence(const Distribution& p, const Distribution& q) {
  const Called called("kl_divergence");
  const State &a = p.state(), &b = q.state();
  if (a.family == &kIndependent && b.family == &kIndependent) return of_independent(a, b);
  if (a.family == &kTransformed && b.family == &kTransformed) return of_transformed(a, b);
  if (a.parameters.empty() || b.parameters.empty()) return of_pair(a, b);
  const Shape batch = broadcast_shapes(a.batch, b.batch, where("kl_divergence"));
  const DType dtype = promote(dtype_of_parameters(a), dtype_of_parameters(b));
  const bool exact = a.family->in_double || b.family->in_double;
  const DType working = exact ? DType::Float64 : (item_size(dtype) == 2 ? DType::Float32 : dtype);
  const Tensor out = of_pair(converted(a, working), converted(b, working));
  return broadcast_to(cast(out, dtype), batch);
}

}  // namespace tenon::distributions
