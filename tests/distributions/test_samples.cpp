// Samples of distributions: compared with distribution functions (Kolmogorov and Smirnov) and with
// probabilities (Pearson's chi-squared), their moments, gradients, shapes and repeatability.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <tenon/tenon.h>

#include "distributions/family.h"

using namespace tenon;
using namespace tenon::distributions;

namespace {

using Numbers = std::vector<double>;
constexpr std::int64_t kCount = 20000;

Numbers numbers(const Tensor& x) { return cast(x, DType::Float64).to_vector<double>(); }
Tensor wide(double value) { return scalar(value, DType::Float64); }

// The integral of the density up to each of the sorted numbers, by the trapezoidal rule with many
// points between neighbours on a grid.
Numbers integrated(const Distribution& d, const Numbers& sorted) {
  constexpr std::int64_t kPoints = 400001;
  const double low = sorted.front(), high = sorted.back(), step = (high - low) / (kPoints - 1);
  const Numbers density = numbers(exp(d.log_prob(linspace(low, high, kPoints, DType::Float64))));
  Numbers sums(density.size(), 0);
  for (std::size_t k = 1; k < sums.size(); ++k)
    sums[k] = sums[k - 1] + (density[k - 1] + density[k]) * 0.5 * step;
  Numbers out;
  for (const double x : sorted) {
    const auto k = static_cast<std::size_t>((x - low) / step);
    out.push_back(sums[std::min(k, sums.size() - 1)]);
  }
  return out;
}

// sqrt(n) times the largest distance of the two distribution functions; 1.95 is exceeded in 1 of
// 1000 cases.
double ks_distance(const Distribution& d, const Tensor& sample, bool has_cdf) {
  Numbers sorted = numbers(sample);
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<std::int64_t>(sorted.size());
  const Numbers f = has_cdf ? numbers(d.cdf(Tensor::from(sorted, {n}))) : integrated(d, sorted);
  double most = 0;
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    const auto below = static_cast<double>(k), count = static_cast<double>(n);
    most = std::max({most, std::abs(f[k] - below / count), std::abs(f[k] - (below + 1) / count)});
  }
  return most * std::sqrt(static_cast<double>(n));
}

struct Continuous {
  const char* name;
  Distribution distribution;
  bool has_cdf = true;
};

std::vector<Continuous> continuous() {
  return {
      {"normal", Normal(wide(1.5), 2)},
      {"log_normal", LogNormal(wide(0.3), 0.7)},
      {"half_normal", HalfNormal(wide(3))},
      {"cauchy", Cauchy(wide(-1), 0.5)},
      {"half_cauchy", HalfCauchy(wide(2))},
      {"laplace", Laplace(wide(1), 3)},
      {"gumbel", Gumbel(wide(1), 3)},
      {"logistic", Logistic(wide(1), 3)},
      {"uniform", Uniform(wide(-2), 5)},
      {"exponential", Exponential(wide(0.2))},
      {"gamma of 1/20", Gamma(wide(0.05), 3)},
      {"gamma of 1/2", Gamma(wide(0.5), 0.1)},
      {"gamma of 1", Gamma(wide(1), 1)},
      {"gamma of 3", Gamma(wide(3), 2)},
      {"gamma of 1000", Gamma(wide(1000), 1)},
      {"gamma of 1e6", Gamma(wide(1e6), 1)},
      {"chi2", Chi2(wide(5))},
      {"inverse_gamma", InverseGamma(wide(3), 2)},
      {"weibull", Weibull(wide(2), 1.5)},
      {"pareto", Pareto(wide(2), 3)},
      {"continuous_bernoulli", ContinuousBernoulli(Probs{wide(0.9)})},
      {"beta", Beta(wide(2), 3.5), false},
      {"beta of large numbers", Beta(wide(300), 2000), false},
      {"student_t", StudentT(wide(7), 1, 2), false},
      {"kumaraswamy", Kumaraswamy(wide(2), 0.7)},
      {"fisher_snedecor", FisherSnedecor(wide(7), 9), false},
      {"generalized_pareto", GeneralizedPareto(wide(1), 2, 0.3)},
      {"generalized_pareto of a bounded tail", GeneralizedPareto(wide(1), 2, -0.4)},
      {"generalized_pareto of 0", GeneralizedPareto(wide(-1), 2, 0)},
      {"von_mises", VonMises(wide(1), 4), false},
      {"von_mises, wide", VonMises(wide(-2), 0.05), false},
      {"von_mises, narrow", VonMises(wide(0), 500), false},
      {"relaxed_bernoulli", RelaxedBernoulli(1.2, Probs{wide(0.4)}), false},
  };
}

// Pearson's statistic of counts 0, 1, .. against probabilities; values beyond are one more class.
// Divided by its largest value in 999 of 1000 cases.
double chi_squared(const Distribution& d, const Tensor& sample, double low, double high) {
  const auto classes = static_cast<std::int64_t>(high - low) + 1;
  Numbers found(static_cast<std::size_t>(classes), 0);
  double outside = 0;
  for (const double x : numbers(sample)) {
    REQUIRE(x == std::floor(x));
    if (x < low || x > high)
      ++outside;
    else
      ++found[static_cast<std::size_t>(x - low)];
  }
  const auto n = static_cast<double>(sample.numel());
  const Numbers p = numbers(exp(d.log_prob(arange(classes, DType::Float64) + low)));
  double sum = 0, rest = 1, freedom = 0;
  for (std::size_t k = 0; k < p.size(); ++k) {
    rest -= p[k];
    if (n * p[k] < 5) continue;
    sum += (found[k] - n * p[k]) * (found[k] - n * p[k]) / (n * p[k]);
    ++freedom;
  }
  CHECK(std::abs(outside - n * rest) < 5 * std::sqrt(n * std::max(rest, 0.0)) + 5);
  const double t = 1 - 2 / (9 * freedom) + 3.09 * std::sqrt(2 / (9 * freedom));  // Wilson-Hilferty
  return sum / (freedom * t * t * t);
}

// -dP / da / p of Gamma(a, 1) at x, by central differences of the distribution function.
double numeric_slope(double a, double x) {
  const double h = a * 1e-4;
  const double upper = igamma(wide(a + h), wide(x)).item(),
               lower = igamma(wide(a - h), wide(x)).item();
  const double density = exp(Gamma(wide(a), 1).log_prob(wide(x))).item();
  return -(upper - lower) / (2 * h) / density;
}

}  // namespace

TEST_CASE("distributions.samples_of_numbers") {
  for (const Continuous& each : continuous()) {
    INFO(std::string(each.name));
    const Tensor sample = each.distribution.sample({kCount}, Generator(7)).compute();
    CHECK(ks_distance(each.distribution, sample, each.has_cdf) < 1.95);
  }
}

TEST_CASE("distributions.samples_of_numbers_float32") {
  const Tensor one = scalar(1);
  const std::vector<Distribution> all{Normal(one, 2), Gamma(one * 0.3, 2), Gamma(one * 40, 2),
                                      Gumbel(one, 2), Exponential(one),    Laplace(one, 1)};
  for (const Distribution& d : all) {
    INFO(std::string(d.name()));
    const Tensor sample = d.sample({kCount}, Generator(3)).compute();
    CHECK(sample.dtype() == DType::Float32);
    CHECK(ks_distance(d, sample, true) < 1.95);
  }
}

TEST_CASE("distributions.samples_of_counts") {
  struct Counts {
    const char* name;
    Distribution distribution;
    double low, high;
  };
  const std::vector<Counts> all{
      {"bernoulli", Bernoulli(Probs{wide(0.3)}), 0, 1},
      {"geometric", Geometric(Probs{wide(0.2)}), 0, 60},
      {"poisson of 0.1", Poisson(wide(0.1)), 0, 8},
      {"poisson of 3", Poisson(wide(3)), 0, 20},
      {"poisson of 9.99", Poisson(wide(9.99)), 0, 40},
      {"poisson of 10", Poisson(wide(10)), 0, 40},
      {"poisson of 50", Poisson(wide(50)), 15, 100},
      {"poisson of 3000", Poisson(wide(3000)), 2700, 3300},
      {"binomial of 5", Binomial(wide(5), Probs{wide(0.4)}), 0, 5},
      {"binomial of 20, mirrored", Binomial(wide(20), Probs{wide(0.9)}), 0, 20},
      {"binomial of 40", Binomial(wide(40), Probs{wide(0.3)}), 0, 40},
      {"binomial of 40, mirrored", Binomial(wide(40), Probs{wide(0.6)}), 0, 40},
      {"binomial of 5000", Binomial(wide(5000), Probs{wide(0.5)}), 2300, 2700},
      {"binomial of 1e6", Binomial(wide(1e6), Probs{wide(1e-5)}), 0, 40},
      {"negative_binomial", NegativeBinomial(wide(2.5), Probs{wide(0.7)}), 0, 60},
      {"categorical", Categorical(Probs{Tensor::from({0.1, 0.0, 0.5, 0.4}, {4})}), 0, 3},
  };
  for (const Counts& each : all) {
    INFO(std::string(each.name));
    const Tensor sample = each.distribution.sample({kCount}, Generator(5)).compute();
    CHECK(chi_squared(each.distribution, sample, each.low, each.high) < 1);
  }
}

TEST_CASE("distributions.extreme_samples") {
  const auto all_finite = [](const Distribution& d) {
    INFO(std::string(d.name()));
    const Tensor x = d.sample({500}, Generator(1)).compute();
    CHECK(all(isfinite(x)).item() == 1);
    CHECK(all(isfinite(d.log_prob(x))).item() == 1);
    return x;
  };
  for (const double size : {1e-6, 1e-3, 1e3, 1e8, 1e15}) {
    CAPTURE(size);
    all_finite(Gamma(wide(size), 1));
    all_finite(Gamma(scalar(static_cast<float>(size)), 1));
    all_finite(Beta(scalar(static_cast<float>(size)), 0.01));
    all_finite(StudentT(wide(size + 0.1)));
    all_finite(VonMises(wide(0), size));
    const Numbers counts = numbers(all_finite(Poisson(wide(size))));
    for (const double x : counts) CHECK(std::abs(x - size) < 8 * std::sqrt(size) + 1);
  }
  all_finite(Dirichlet(full({5}, 1e-4, DType::Float64)));
  all_finite(Dirichlet(full({5}, 1e-4)));
  all_finite(RelaxedOneHotCategorical(1e-2, Logits{zeros({5})}));
  all_finite(RelaxedBernoulli(1e-2, Logits{zeros({5})}));
  all_finite(Geometric(Probs{wide(1e-9)}));
  all_finite(NegativeBinomial(wide(0.01), Probs{wide(0.999)}));
  for (const double x : numbers(Gamma(scalar(-0.5), 1).sample({20}))) CHECK(std::isnan(x));
  // No elements.
  CHECK(Gamma(zeros({0, 2}), 1).sample({3}).compute().shape() == Shape{3, 0, 2});
  CHECK(Poisson(zeros({0})).sample().compute().shape() == Shape{0});
  CHECK(Categorical(Logits{zeros({0, 3})}).sample({2}).compute().shape() == Shape{2, 0});
  CHECK(Binomial(zeros({0}), Probs{0.5}).sample().compute().shape() == Shape{0});
}

TEST_CASE("distributions.certain_counts") {
  const Generator seed(1);
  const auto only = [&](const Distribution& d, double value) {
    for (const double x : numbers(d.sample({100}, seed))) CHECK(x == value);
  };
  only(Poisson(0.0), 0);
  only(Binomial(7, Probs{0.0}), 0);
  only(Binomial(7, Probs{1.0}), 7);
  only(Binomial(0, Probs{0.5}), 0);
  only(Bernoulli(Probs{1.0}), 1);
  only(Bernoulli(Probs{0.0}), 0);
  only(Geometric(Probs{1.0}), 0);
  only(Categorical(Probs{Tensor::from({0.0F, 1.0F, 0.0F}, {3})}), 1);
}

TEST_CASE("distributions.samples_of_vectors") {
  const auto check_moments = [](const Distribution& d, double tolerance) {
    INFO(std::string(d.name()));
    const Tensor x = d.sample({40000}, Generator(2)).compute();
    CHECK(allclose(mean(x, 0), d.mean(), tolerance, tolerance));
    CHECK(allclose(var(x, 0), d.variance(), 4 * tolerance, 4 * tolerance));
  };
  const Tensor logits = Tensor::from({0.5, -1.0, 1.5}, {3});
  check_moments(OneHotCategorical(Logits{logits}), 0.01);
  check_moments(Multinomial(20, Logits{logits}), 0.02);
  check_moments(Dirichlet(Tensor::from({0.3, 2.0, 5.0}, {3})), 0.01);
  check_moments(Dirichlet(Tensor::from({1e-3, 2e-3}, {2})), 0.02);
  const Tensor factor = Tensor::from({1.0, 0.0, 0.0, 0.5, 2.0, 0.0, -1.0, 0.3, 0.2}, {3, 3});
  check_moments(MultivariateNormal(Tensor::from({1.0, 2.0, 3.0}, {3}), ScaleTril{factor}), 0.03);
  check_moments(
      LowRankMultivariateNormal(0, slice(factor, 1, 0, 2), Tensor::from({0.1, 0.2, 3.0}, {3})),
      0.03);
  // Small and large means side by side.
  const Tensor rates = Tensor::from({0.5, 9.0, 11.0, 200.0}, {4});
  check_moments(Poisson(rates), 0.04);
  check_moments(Binomial(Tensor::from({3.0, 40.0, 400.0, 0.0}, {4}), Probs{0.4}), 0.04);
  check_moments(Wishart(wide(7.5), ScaleTril{tril(factor)}), 0.06);
  // Correlations of 4 variables: the mean of a squared one is 1 / (n + 2 concentration - 1), and
  // samples have no preferred sign.
  const Tensor l = LKJCholesky(4, wide(1.5)).sample({40000}, Generator(2)).compute();
  const Tensor correlations = matmul(l, transpose(l));
  CHECK(allclose(diagonal(correlations, 0, -2, -1), ones({40000, 4}, DType::Float64)));
  const Tensor apart = 1 - eye(4, {}, DType::Float64);
  CHECK(allclose(mean(correlations * apart, 0), zeros({4, 4}, DType::Float64), 0, 0.01));
  CHECK(allclose(mean(square(correlations) * apart, 0), apart / 6.0, 0, 0.01));
  // The covariance, not only its diagonal.
  const MultivariateNormal normal(0, ScaleTril{factor});
  const Tensor x = normal.sample({40000}, Generator(2)).compute();
  CHECK(allclose(cov(transpose(x, 0, 1)), normal.covariance_matrix(), 0.05, 0.05));
  const Tensor relaxed =
      RelaxedOneHotCategorical(0.05, Logits{logits}).sample({40000}, Generator(4)).compute();
  CHECK(
      allclose(mean(one_hot(argmax(relaxed, -1), 3, DType::Float64), 0), softmax(logits), 0, 0.01));
}

TEST_CASE("distributions.gradients_of_gamma_samples") {
  for (const double a : {0.02, 0.3, 0.9, 1.0, 2.5, 30.0}) {
    const Tensor concentration = variable(wide(a));
    const Tensor x = Gamma(concentration, 1).rsample({50}, Generator(11));
    for (std::int64_t k = 0; k < 50; ++k) {
      const Tensor one = x[k];
      if (one.item() < 1e-250) continue;
      CAPTURE(a);
      CAPTURE(one.item());
      const double expected = numeric_slope(a, one.item());
      const double found = grad(one, concentration).item();
      CHECK(std::abs(found - expected) <= 1e-5 * std::abs(expected) + 1e-9);
    }
  }
}

TEST_CASE("distributions.slopes_of_gamma_samples") {
  struct Slope {
    double a, log_sample, slope;
  };
  constexpr Slope kSlopes[] = {
#include "distributions/gamma_slopes.inc"
  };
  Numbers a, log_samples;
  for (const Slope& each : kSlopes) a.push_back(each.a), log_samples.push_back(each.log_sample);
  const auto count = static_cast<std::int64_t>(a.size());
  const Tensor all = Tensor::from(a, {count}), at = Tensor::from(log_samples, {count});
  const Numbers found = numbers(log_gamma_slope(all, at));
  const Numbers rounded =
      numbers(log_gamma_slope(cast(all, DType::Float32), cast(at, DType::Float32)));
  for (std::size_t k = 0; k < found.size(); ++k) {
    CAPTURE(a[k]);
    CAPTURE(log_samples[k]);
    CAPTURE(found[k] / kSlopes[k].slope - 1);
    // The rounding of log(x) counts as often as e^y fits into the spread.
    CHECK(std::abs(found[k] / kSlopes[k].slope - 1) < 1e-9 + a[k] * 1e-16);
    CHECK(std::isfinite(rounded[k]));
  }
}

TEST_CASE("distributions.second_gradients_of_gamma_samples") {
  // With one uniform number at each concentration, samples are a smooth function of it.
  const auto slope = [](const Tensor& a) {
    const Tensor x = Gamma(a, 1).rsample({20}, Generator(11));
    return std::pair{x, sum(grad(sum(x), a))};
  };
  for (const double at : {0.4, 3.0, 80.0}) {
    const Tensor a = variable(wide(at));
    const auto [x, first] = slope(a);
    const double second = grad(first, a).item();
    // d²x / da² by the slope at x + h dx / da and a + h.
    double expected = 0;
    for (std::int64_t k = 0; k < 20; ++k) {
      const double here = x[k].item(), h = at * 1e-3;
      const double along = numeric_slope(at, here);
      expected +=
          (numeric_slope(at + h, here + h * along) - numeric_slope(at - h, here - h * along)) /
          (2 * h);
    }
    CHECK(std::abs(second - expected) < 1e-2 * std::abs(expected) + 1e-4);
  }
}

TEST_CASE("distributions.gradients_of_means") {
  // The gradient of a sample's mean is that of the mean.
  const Tensor a = wide(2.5), b = wide(1.5);
  const auto check = [&](const Distribution& d, double tolerance) {
    INFO(std::string(d.name()));
    const Tensor sampled = mean(d.rsample({100000}, Generator(9)));
    for (const Tensor& parameter : {a, b}) {
      const double found = grad(sampled, parameter).item();
      const double expected = grad(d.mean(), parameter).item();
      CHECK(std::abs(found - expected) < tolerance * (1 + std::abs(expected)));
    }
  };
  check(Normal(a, b), 0.02);
  check(Gamma(a, b), 0.02);
  check(InverseGamma(a + 2, b), 0.02);
  check(Beta(a, b), 0.02);
  check(Weibull(a, b), 0.02);
  check(LogNormal(a, b * 0.3), 0.03);
  check(Gumbel(a, b), 0.02);
  check(StudentT(a + 5, b, 1), 0.05);
}

TEST_CASE("distributions.samples_are_repeated") {
  const Gamma d(Tensor::from({0.5F, 3.0F}, {2}), 2);
  const Generator seed(4);
  const Tensor first = d.sample({3}, Generator(4)).compute();
  CHECK(first.shape() == Shape{3, 2});
  CHECK(equal(first, d.sample({3}, Generator(4))));
  CHECK(!equal(first, d.sample({3}, Generator(5))));
  // One generator gives new numbers at each call.
  Generator shared(4);
  const Tensor a = d.sample({3}, shared).compute(), b = d.sample({3}, shared).compute();
  CHECK(equal(first, a));
  CHECK(!equal(a, b));
}

TEST_CASE("distributions.samples_inside_of_compile") {
  const auto step = compile([](const Tensor& a) {
    const Gamma d(a, 1);
    const Poisson counts(a);
    const Tensor x = d.rsample({1000});
    return std::vector<Tensor>{x, grad(mean(x), a), counts.sample({1000}), d.log_prob(x)};
  });
  manual_seed(3);
  const std::vector<Tensor> first = step(scalar(4.0));
  const std::vector<Tensor> second = step(scalar(4.0));
  CHECK(!equal(first[0], second[0]));
  manual_seed(3);
  const std::vector<Tensor> again = step(scalar(4.0));
  for (std::size_t k = 0; k < first.size(); ++k) CHECK(equal(first[k], again[k]));
  CHECK(mean(first[0]).item() == doctest::Approx(4).epsilon(0.1));
  CHECK(first[1].item() == doctest::Approx(1).epsilon(0.1));
  CHECK(mean(first[2]).item() == doctest::Approx(4).epsilon(0.1));
}

TEST_CASE("distributions.samples_inside_of_a_loop") {
  const auto walk = [](std::uint64_t seed) {
    Generator generator(seed);
    return scan(
        [&](const Tensor& carry, const Tensor&) {
          const Tensor next = carry + Gamma(scalar(2.0), 1).sample({}, generator);
          return std::pair{next, next};
        },
        scalar(0.0), zeros({20}));
  };
  const auto [last, all] = walk(8);
  CHECK(equal(all, walk(8).second));
  const Numbers steps = numbers(slice(all, 0, 1, 20) - slice(all, 0, 0, 19));
  CHECK(*std::min_element(steps.begin(), steps.end()) > 0);
  CHECK(std::adjacent_find(steps.begin(), steps.end()) == steps.end());
}

TEST_CASE("gumbel_softmax") {
  const Tensor logits = Tensor::from({1.0F, 0.0F, -1.0F}, {3});
  const Tensor many = broadcast_to(logits, {50000, 3});
  const Tensor hard = gumbel_softmax(many, 0.7, true, -1, Generator(1)).compute();
  CHECK(allclose(mean(hard, 0), softmax(logits), 0, 0.01));
  CHECK(equal(sum(hard, -1), ones({50000})));
  CHECK(equal(hard * hard, hard));
  const Tensor soft = gumbel_softmax(many, 0.7, false, -1, Generator(1)).compute();
  CHECK(equal(argmax(soft, -1), argmax(hard, -1)));
  // Both have the gradient of the soft sample.
  const Tensor weights = Tensor::from({1.0F, 2.0F, 3.0F}, {3});
  const auto slope = [&](bool is_hard) {
    return grad(sum(gumbel_softmax(many, 0.7, is_hard, -1, Generator(1)) * weights), logits);
  };
  CHECK(allclose(slope(true), slope(false)));
  CHECK(gumbel_softmax(transpose(many), 1, true, 0, Generator(1)).shape() == Shape{3, 50000});
  CHECK_THROWS_AS(gumbel_softmax(logits, 0), ValueError);
  CHECK_THROWS_AS(gumbel_softmax(logits, 1, false, 1), ShapeError);
}
