// Distributions: shapes, broadcasting, dtypes, values outside of the support, compositions,
// transforms, refusals.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <tenon/tenon.h>

using namespace tenon;
using namespace tenon::distributions;

namespace {

constexpr double kLimitless = std::numeric_limits<double>::infinity();

Tensor draw(const Shape& shape, std::uint64_t seed, DType dtype = DType::Float64) {
  return randn(shape, dtype, Generator(seed)).compute();
}

template <class E, class F>
std::string message(const F& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A distribution of each family, with the batch shape [2].
std::vector<Distribution> all_families(DType dtype = DType::Float32) {
  const Tensor a = cast(Tensor::from({0.7, 2.5}, {2}), dtype);
  const Tensor p = cast(Tensor::from({0.3, 0.6}, {2}), dtype);
  const Tensor rows = cast(Tensor::from({0.2, 0.3, 0.5, 0.1, 0.8, 0.1}, {2, 3}), dtype);
  return {Normal(a, a),
          LogNormal(a, a),
          HalfNormal(a),
          Cauchy(a, a),
          HalfCauchy(a),
          Laplace(a, a),
          Gumbel(a, a),
          Logistic(a, a),
          Uniform(a, a + 1),
          Exponential(a),
          Gamma(a, a),
          Chi2(a),
          InverseGamma(a, a),
          Beta(a, a),
          StudentT(a, a, a),
          Weibull(a, a),
          Pareto(a, a),
          VonMises(a, a),
          ContinuousBernoulli(Probs{p}),
          RelaxedBernoulli(a, Probs{p}),
          Bernoulli(Logits{a}),
          Binomial(4, Probs{p}),
          Geometric(Probs{p}),
          Poisson(a),
          NegativeBinomial(a, Probs{p}),
          Categorical(Probs{rows}),
          OneHotCategorical(Probs{rows}),
          Multinomial(5, Probs{rows}),
          RelaxedOneHotCategorical(0.5, Probs{rows}),
          Dirichlet(rows),
          Kumaraswamy(a, a),
          FisherSnedecor(a * 4, a * 4),
          GeneralizedPareto(a, a, 0.2),
          LKJCholesky(3, a),
          LogisticNormal(rows, 1),
          Independent(Normal(rows, 1), 1),
          MixtureSameFamily(Categorical(Probs{rows}), Normal(rows, 1)),
          TransformedDistribution(Normal(a, 1), sigmoid_transform())};
}

struct Wave final : TransformRule {
  const char* name() const override { return "wave"; }
  Tensor forward(const Tensor& x) const override { return x + sin(x) * 0.5; }
  Tensor inverse(const Tensor& y) const override {
    Tensor x = y;
    for (int k = 0; k < 60; ++k) x = y - sin(x) * 0.5;
    return x;
  }
  Tensor log_abs_det_jacobian(const Tensor& x, const Tensor&) const override {
    return log(cos(x) * 0.5 + 1);
  }
};

}  // namespace

TEST_CASE("distributions.shapes") {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16}) {
    for (const Distribution& d : all_families(dtype)) {
      INFO(std::string(d.name()), " ", std::string(tenon::name(dtype)));
      CHECK(d.batch_shape() == Shape{2});
      const Tensor x = d.sample({5, 3}, Generator(1)).compute();
      Shape expected{5, 3, 2};
      for (const std::int64_t size : d.event_shape()) expected.push_back(size);
      CHECK(x.shape() == expected);
      const bool is_class = std::string(d.name()) == "Categorical";
      CHECK(x.dtype() == (is_class ? DType::Int64 : dtype));
      const Tensor density = d.log_prob(x);
      CHECK(density.shape() == Shape{5, 3, 2});
      CHECK(density.dtype() == dtype);
      if (item_size(dtype) > 2) CHECK(all(isfinite(density)).item() == 1);
      // One element of the batch, and no elements.
      CHECK(d.sample({0}).compute().shape()[0] == 0);
      CHECK(d.log_prob(slice(x, 0, 0, 0)).compute().shape() == Shape{0, 3, 2});
      CHECK(d.has_rsample() == (message<NotSupported>([&] { d.rsample(); }) == "no error"));
    }
  }
}

TEST_CASE("distributions.expand") {
  for (const Distribution& d : all_families(DType::Float64)) {
    INFO(std::string(d.name()));
    const Distribution wide = d.expand({3, 2});
    CHECK(wide.batch_shape() == Shape{3, 2});
    CHECK(wide.event_shape() == d.event_shape());
    const Tensor x = wide.sample({4}, Generator(1)).compute();
    CHECK(x.rank() == 3 + d.event_shape().rank());
    CHECK(equal(wide.log_prob(x), d.log_prob(x)));
    CHECK_THROWS_AS(d.expand({3}), ShapeError);
  }
}

TEST_CASE("distributions.numbers_and_integers") {
  CHECK(Normal(0, 1).batch_shape() == Shape{});
  CHECK(Normal(0, 1).sample({2}).dtype() == DType::Float32);
  CHECK(Normal(Tensor::from({1, 2}, {2}), 1).loc().dtype() == DType::Float32);
  CHECK(Normal(draw({3}, 1), 1).scale().dtype() == DType::Float64);
  CHECK(Normal(draw({3}, 1), draw({1}, 2, DType::Float32)).scale().dtype() == DType::Float64);
  CHECK(Normal(draw({4, 1}, 1), exp(draw({3}, 2))).batch_shape() == Shape{4, 3});
  CHECK(Binomial(Tensor::from({3, 4}, {2}), Probs{0.5}).mean().to_vector<float>()[0] ==
        doctest::Approx(1.5));
  CHECK(Poisson(2.0).log_prob(Tensor::from({1, 2}, {2})).dtype() == DType::Float32);
  CHECK(Multinomial(3, Logits{draw({2}, 1)}).total_count() == 3);
  CHECK(Chi2(4).df().item() == doctest::Approx(4));
  CHECK(Bernoulli(Logits{0.0}).probs().item() == doctest::Approx(0.5));
}

TEST_CASE("distributions.outside_of_the_support") {
  const auto density = [](const Distribution& d, double x) {
    return d.log_prob(scalar(x, DType::Float64)).item();
  };
  CHECK(density(Exponential(1), -0.5) == -kLimitless);
  CHECK(density(Exponential(1), 0) == 0);
  CHECK(density(Gamma(2, 1), -1) == -kLimitless);
  CHECK(density(LogNormal(0, 1), 0) == -kLimitless);
  CHECK(density(Uniform(0, 1), 1) == -kLimitless);
  CHECK(density(Uniform(0, 1), 0) == 0);
  CHECK(density(Pareto(2, 1), 1) == -kLimitless);
  CHECK(density(Beta(2, 2), 1.5) == -kLimitless);
  CHECK(density(Bernoulli(Probs{0.5}), 0.5) == -kLimitless);
  CHECK(density(Poisson(1), 0.5) == -kLimitless);
  CHECK(density(Poisson(1), -1) == -kLimitless);
  CHECK(density(Binomial(3, Probs{0.5}), 4) == -kLimitless);
  CHECK(density(Categorical(Probs{ones({3})}), 3) == -kLimitless);
  CHECK(density(Categorical(Probs{ones({3})}), -1) == -kLimitless);
  CHECK(std::isnan(density(Exponential(1), std::nan(""))));
  CHECK(std::isnan(density(Normal(0, 1), std::nan(""))));
  CHECK(std::isnan(density(Poisson(1), std::nan(""))));
  CHECK(Dirichlet(ones({2})).log_prob(Tensor::from({0.4F, 0.4F}, {2})).item() == -kLimitless);
  CHECK(Multinomial(2, Probs{ones({2})}).log_prob(ones({2}) * 3).item() == -kLimitless);
  CHECK(OneHotCategorical(Probs{ones({2})}).log_prob(ones({2})).item() == -kLimitless);
  // The gradient of the others stays finite.
  const Tensor rate = variable(scalar(2.0)), x = Tensor::from({-1.0F, 0.5F}, {2});
  const Tensor densities = Gamma(rate, rate).log_prob(x);
  CHECK(std::isfinite(grad(sum(where(isfinite(densities), densities, 0)), rate).item()));
  CHECK(Exponential(1).cdf(scalar(-1.0)).item() == 0);
  CHECK(LogNormal(0, 1).cdf(scalar(-1.0)).item() == 0);
  CHECK(Pareto(2, 1).cdf(scalar(1.0)).item() == 0);
  CHECK(Poisson(2).cdf(scalar(-1.0)).item() == 0);
  CHECK(Poisson(2).cdf(scalar(1.5)).item() == doctest::Approx(3 * std::exp(-2)));
}

TEST_CASE("distributions.wishart") {
  const Tensor factor = tril(draw({2, 3, 3}, 1)) * 0.3 + eye(3, 3, DType::Float64);
  const Tensor covariance = matmul(factor, transpose(factor)), df = Tensor::from({5.0, 8.0}, {2});
  const Wishart by_factor(df, ScaleTril{factor}), by_covariance(df, CovarianceMatrix{covariance}),
      by_precision(df, PrecisionMatrix{linalg::inv(covariance)});
  CHECK(allclose(by_covariance.scale_tril(), factor));
  CHECK(allclose(by_precision.scale_tril(), factor));
  CHECK(allclose(by_factor.covariance_matrix(), covariance));
  CHECK(allclose(by_factor.precision_matrix(), linalg::inv(covariance)));
  CHECK(by_factor.batch_shape() == Shape{2});
  CHECK(by_factor.event_shape() == Shape{3, 3});
  const Tensor x = by_factor.sample({4}, Generator(1)).compute();
  CHECK(x.shape() == Shape{4, 2, 3, 3});
  CHECK(all(isfinite(by_factor.log_prob(x))).item() == 1);
  CHECK(by_factor.expand({6, 2}).sample({}, Generator(1)).shape() == Shape{6, 2, 3, 3});
  CHECK(by_factor.sample({0}).compute().shape() == Shape{0, 2, 3, 3});
  // Of one row, it is a gamma distribution.
  const Wishart one(7.0, CovarianceMatrix{full({1, 1}, 2.0, DType::Float64)});
  const Tensor numbers = exp(draw({5}, 2));
  CHECK(allclose(one.log_prob(reshape(numbers, {5, 1, 1})),
                 Gamma(scalar(3.5, DType::Float64), 0.25).log_prob(numbers)));
  // Samples have gradients: the mean is df times the scale matrix.
  const Tensor v = variable(select(factor, 0, 0));
  const Tensor mean_of = mean(Wishart(6.0, ScaleTril{v}).rsample({200000}, Generator(3)), 0);
  const Tensor weight = draw({3, 3}, 4);
  const Tensor found = grad(sum(mean_of * weight), v),
               expected = grad(sum(matmul(v, transpose(v)) * 6.0 * weight), v);
  CHECK(allclose(tril(found), tril(expected), 0.02, 0.15));
  // Outside of the support.
  const Wishart d(df, ScaleTril{factor});
  const auto density = [&](const std::vector<double>& m) {
    return select(d.log_prob(Tensor::from(m, {3, 3})), 0, 0).item();
  };
  CHECK(density({1, 0, 0, 0, 1, 0, 0, 0, -1}) == -kLimitless);
  CHECK(density({0, 0, 0, 0, 0, 0, 0, 0, 0}) == -kLimitless);
  CHECK(density({2, 1, 0, 0, 2, 0, 0, 0, 2}) == -kLimitless);
  CHECK(std::isfinite(density({2, 1, 0, 1, 2, 0, 0, 0, 2})));
  const Tensor both = variable(stack({eye(3, {}, DType::Float64), zeros({3, 3}, DType::Float64)}));
  const Tensor densities = d.log_prob(both);
  CHECK(all(isfinite(grad(sum(where(isfinite(densities), densities, 0)), both))).item() == 1);
  CHECK_THROWS_AS(Wishart(2.0, CovarianceMatrix{eye(3)}), ValueError);
  CHECK_THROWS_AS(Wishart(5.0, CovarianceMatrix{zeros({3, 2})}), ShapeError);
  CHECK_THROWS_AS(Wishart(5.0, ScaleTril{Tensor()}), ValueError);
  CHECK_THROWS_AS(Wishart(zeros({3}), ScaleTril{factor}), ShapeError);
  CHECK_THROWS_AS(d.log_prob(zeros({4, 4})), ShapeError);
  CHECK_THROWS_AS(kl_divergence(d, Wishart(5.0, CovarianceMatrix{eye(2)})), ShapeError);
}

TEST_CASE("distributions.lkj_cholesky") {
  // Two variables: the correlation r has the density (1 - r²)^(concentration - 1) / constant. With
  // a concentration of 1 the density of the factor [1, 0; r, sqrt(1 - r²)] is uniform in r.
  const LKJCholesky d(2, scalar(1.0, DType::Float64));
  CHECK(d.dim() == 2);
  CHECK(d.event_shape() == Shape{2, 2});
  const Tensor at = Tensor::from({1.0, 0.0, 0.6, 0.8}, {2, 2});
  CHECK(d.log_prob(at).item() == doctest::Approx(std::log(0.5)));
  const auto density = [&](const std::vector<double>& m) {
    return d.log_prob(Tensor::from(m, {2, 2})).item();
  };
  CHECK(density({1, 0, 0.6, -0.8}) == -kLimitless);
  CHECK(density({1, 0.1, 0.6, 0.8}) == -kLimitless);
  CHECK(density({1, 0, 0.6, 0.9}) == -kLimitless);
  CHECK_THROWS_AS(LKJCholesky(1), ValueError);
  CHECK_THROWS_AS(LKJCholesky(3, 0.0), ValueError);
  CHECK_THROWS_AS(LKJCholesky(3).rsample(), NotSupported);
  CHECK_THROWS_AS(LKJCholesky(3).entropy(), NotSupported);
}

TEST_CASE("distributions.more_families_of_numbers") {
  // Entropies are means of -log_prob; the mode has the largest density.
  const auto check_entropy = [](const Distribution& d) {
    INFO(std::string(d.name()));
    const Tensor x = d.sample({100000}, Generator(5)).compute();
    CHECK(d.entropy().item() == doctest::Approx(-mean(d.log_prob(x)).item()).epsilon(0.02));
  };
  const Tensor a = scalar(3.5, DType::Float64);
  check_entropy(FisherSnedecor(a, 9));
  check_entropy(Kumaraswamy(a, 2));
  check_entropy(GeneralizedPareto(a, 2, 0.3));
  const auto check_mode = [](const Distribution& d) {
    const double best = d.log_prob(d.mode()).item();
    for (const double off : {-1e-3, 1e-3}) CHECK(d.log_prob(d.mode() + off).item() < best);
  };
  check_mode(Kumaraswamy(a, 2));
  check_mode(FisherSnedecor(a, 9));
  CHECK(std::isnan(Kumaraswamy(a, 0.5).mode().item()));
  CHECK(std::isnan(FisherSnedecor(2, 9).mode().item()));
  // Near a concentration of 0, where the density is that of an exponential distribution.
  const Tensor x = Tensor::from({0.0, 0.5, 3.0, 20.0}, {4});
  for (const double c : {0.0, 1e-12, -1e-12, 1e-5}) {
    const Tensor concentration = variable(scalar(c, DType::Float64));
    const GeneralizedPareto d(0.0, 2, concentration);
    CHECK(
        allclose(d.log_prob(x), Exponential(scalar(0.5, DType::Float64)).log_prob(x), 1e-3, 1e-3));
    CHECK(allclose(d.icdf(d.cdf(x)), x, 1e-6, 1e-9));
    // d log p / dc at 0 is z²/2 - z, and the second derivative 2 (z²/2 - z³/3).
    const Tensor z = x / 2.0, first = grad(sum(d.log_prob(x)), concentration);
    CHECK(first.item() == doctest::Approx(sum(square(z) / 2.0 - z).item()).epsilon(1e-2));
    const double second = sum(square(z) - square(z) * z * (2.0 / 3)).item();
    CHECK(grad(first, concentration).item() == doctest::Approx(second).epsilon(1e-2));
  }
  const GeneralizedPareto bounded(1.0, 2, scalar(-0.5, DType::Float64));  // up to 5
  CHECK(bounded.cdf(scalar(6.0)).item() == 1);
  CHECK(bounded.cdf(scalar(0.0)).item() == 0);
  CHECK(bounded.log_prob(scalar(5.5)).item() == -kLimitless);
  CHECK(bounded.log_prob(scalar(0.5)).item() == -kLimitless);
  CHECK(GeneralizedPareto(1.0, 2, 1).mean().item() == kLimitless);
  CHECK(GeneralizedPareto(1.0, 2, 0.5).variance().item() == kLimitless);
  CHECK_THROWS_AS(GeneralizedPareto(0, -1, 0), ValueError);
  CHECK_THROWS_AS(FisherSnedecor(0, 1), ValueError);
  CHECK_THROWS_AS(Kumaraswamy(1, -1), ValueError);
  const Tensor loc = draw({3}, 6);
  const LogisticNormal d(loc, 0.5);
  CHECK(d.event_shape() == Shape{4});
  CHECK(equal(d.loc(), loc));
  CHECK(allclose(d.scale(), full({3}, 0.5, DType::Float64)));
  const TransformedDistribution same(Normal(loc, 0.5), stick_breaking_transform());
  const Tensor y = d.sample({5}, Generator(1)).compute();
  CHECK(equal(d.log_prob(y), same.log_prob(y)));
  CHECK(LogisticNormal(0, 1).event_shape() == Shape{2});
}

TEST_CASE("distributions.transforms_to_matrices") {
  const Transform factor = corr_cholesky_transform();
  for (const std::int64_t n : {1, 2, 3, 5}) {
    CAPTURE(n);
    const std::int64_t below = n * (n - 1) / 2;
    const Tensor x = variable(draw({2, below}, 3)), y = factor(x);
    CHECK(y.shape() == Shape{2, n, n});
    CHECK(allclose(sum(square(y), -1), ones({2, n}, DType::Float64)));
    CHECK(equal(triu(y, 1), zeros_like(y)));
    CHECK(all(gt(diagonal(y, 0, -2, -1), 0)).item() == 1);
    CHECK(allclose(factor.inv()(y), x, 1e-9, 1e-9));
    if (below == 0) continue;
    // The Jacobian of the elements below the diagonal.
    std::vector<Tensor> rows;
    for (std::int64_t i = 1; i < n; ++i)
      for (std::int64_t j = 0; j < i; ++j)
        rows.push_back(grad(sum(select(select(y, 1, i), 1, j)), x));
    CHECK(allclose(factor.log_abs_det_jacobian(x, y), linalg::slogdet(stack(rows, -2)).logabsdet,
                   1e-9, 1e-9));
  }
  CHECK_THROWS_AS(factor(zeros({4})), ShapeError);
  // A prior over correlation matrices.
  const TransformedDistribution d(Normal(zeros({2, 3}), 1), factor);
  CHECK(d.batch_shape() == Shape{2});
  CHECK(d.event_shape() == Shape{3, 3});
  const Tensor drawn = d.sample({4}, Generator(1)).compute();
  CHECK(d.log_prob(drawn).shape() == Shape{4, 2});
  CHECK(all(isfinite(d.log_prob(drawn))).item() == 1);
  // Correlations that are rounded to 1 have a density, and large numbers leave rows of length 1.
  const TransformedDistribution narrow_one(Normal(full({3}, 12), 1), factor);
  CHECK(std::isfinite(narrow_one.log_prob(narrow_one.sample({}, Generator(1))).item()));
  CHECK(all(isfinite(factor(full({3}, 40)))).item() == 1);

  const Tensor x = draw({2, 3, 3}, 5);
  const Tensor lower = lower_cholesky_transform()(x), definite = positive_definite_transform()(x);
  CHECK(equal(tril(lower, -1), tril(x, -1)));
  CHECK(allclose(log(diagonal(lower, 0, -2, -1)), diagonal(x, 0, -2, -1)));
  CHECK(equal(triu(lower, 1), zeros_like(x)));
  CHECK(allclose(definite, matmul(lower, transpose(lower))));
  CHECK(allclose(lower_cholesky_transform().inv()(lower), tril(x), 1e-9, 1e-9));
  CHECK(allclose(positive_definite_transform().inv()(definite), tril(x), 1e-9, 1e-9));
  CHECK(allclose(softmax_transform().inv()(softmax_transform()(x)), log_softmax(x, -1)));
  CHECK(equal(abs_transform()(x), abs(x)));
  for (const Transform& each : {abs_transform(), softmax_transform(), lower_cholesky_transform(),
                                positive_definite_transform()})
    CHECK_THROWS_AS(each.log_abs_det_jacobian(x, each(x)), NotSupported);
  CHECK_THROWS_AS(lower_cholesky_transform()(zeros({2, 3})), ShapeError);
}

TEST_CASE("distributions.transforms_made_of_others") {
  const Tensor x = variable(draw({5, 4}, 3));
  const auto slopes_of = [&](const Tensor& y) { return log(abs(grad(sum(y), x))); };
  const Transform probability = cumulative_distribution_transform(Normal(0.5, 2));
  const Transform parts = concat_transform({exp_transform(), affine_transform(1, -2)}, {1, 3});
  const Transform slices = stack_transform(
      {exp_transform(), tanh_transform(), sigmoid_transform(), affine_transform(0, 3)});
  for (const Transform& each : {probability, parts, slices}) {
    INFO(std::string(each.rule().name()));
    const Tensor y = each(x);
    CHECK(y.shape() == x.shape());
    CHECK(allclose(each.inv()(y), x, 1e-8, 1e-8));
    CHECK(allclose(each.log_abs_det_jacobian(x, y), slopes_of(y), 1e-9, 1e-9));
  }
  CHECK(equal(select(parts(x), -1, 0), exp(select(x, -1, 0))));
  CHECK(equal(select(parts(x), -1, 3), 1 + select(x, -1, 3) * -2));
  // A probability of one's own distribution is uniform.
  const TransformedDistribution uniform(Normal(0.5, 2), probability);
  CHECK(uniform.log_prob(scalar(0.3)).item() == doctest::Approx(0).epsilon(1e-5));
  CHECK(uniform.cdf(scalar(0.3)).item() == doctest::Approx(0.3));
  const Transform flat = reshape_transform({2, 2}, {4});
  const Tensor square_x = draw({3, 2, 2}, 4);
  CHECK(flat(square_x).shape() == Shape{3, 4});
  CHECK(equal(flat.inv()(flat(square_x)), square_x));
  CHECK(equal(flat.log_abs_det_jacobian(square_x, flat(square_x)), zeros({3}, DType::Float64)));
  CHECK(TransformedDistribution(Normal(zeros({3, 2, 2}), 1), flat).event_shape() == Shape{4});
  CHECK_THROWS_AS(reshape_transform({2, 2}, {5}), ShapeError);
  CHECK_THROWS_AS(flat(zeros({3, 2})), ShapeError);
  CHECK_THROWS_AS(cumulative_distribution_transform(Beta(1, 1)), NotSupported);
  CHECK_THROWS_AS(cumulative_distribution_transform(Dirichlet(ones({3}))), NotSupported);
  CHECK_THROWS_AS(parts(zeros({2, 3})), ShapeError);
  CHECK_THROWS_AS(concat_transform({exp_transform()}, {1, 2}), ValueError);
  CHECK_THROWS_AS(concat_transform({exp_transform()}, {-1}), ValueError);
  CHECK_THROWS_AS(concat_transform({}, {}), ValueError);
  CHECK_THROWS_AS(stack_transform({exp_transform()}, 0), ValueError);
  CHECK_THROWS_AS(stack_transform({stick_breaking_transform()}), ValueError);
}

TEST_CASE("distributions.refusals") {
  CHECK_THROWS_AS(Normal(draw({3}, 1), draw({4}, 1)), ShapeError);
  CHECK_THROWS_AS(Normal(Tensor(), 1), ValueError);
  CHECK_THROWS_AS(Normal(0, -1), ValueError);
  CHECK_THROWS_AS(Normal(0, std::nan("")), ValueError);
  CHECK_THROWS_AS(Uniform(2, 1), ValueError);
  CHECK_THROWS_AS(Bernoulli(Probs{1.5}), ValueError);
  CHECK_THROWS_AS(Geometric(Probs{0.0}), ValueError);
  CHECK_THROWS_AS(Categorical(Logits{1.0}), ShapeError);
  CHECK_THROWS_AS(Categorical(Logits{zeros({2, 0})}), ShapeError);
  CHECK_THROWS_AS(Categorical(Logits{Tensor()}), ValueError);
  CHECK_THROWS_AS(Dirichlet(1.0), ShapeError);
  CHECK_THROWS_AS(Multinomial(-1, Logits{zeros({2})}), ValueError);
  CHECK_THROWS_AS(MultivariateNormal(zeros({3}), ScaleTril{zeros({3, 2})}), ShapeError);
  CHECK_THROWS_AS(MultivariateNormal(zeros({3}), CovarianceMatrix{eye(2)}), ShapeError);
  CHECK_THROWS_AS(MultivariateNormal(zeros({3}), CovarianceMatrix{Tensor()}), ValueError);
  CHECK_THROWS_AS(LowRankMultivariateNormal(0, zeros({3, 2}), ones({2})), ShapeError);
  CHECK_THROWS_AS(Independent(Normal(zeros({3}), 1), 2), ValueError);
  CHECK_THROWS_AS(MixtureSameFamily(Normal(0, 1), Normal(0, 1)), ValueError);
  CHECK_THROWS_AS(MixtureSameFamily(Categorical(Logits{zeros({3})}), Normal(zeros({2}), 1)),
                  ShapeError);
  CHECK_THROWS_AS(TransformedDistribution(Normal(0, 1), stick_breaking_transform()), ShapeError);
  CHECK_THROWS_AS(Normal(zeros({3}), 1).log_prob(zeros({4})), ShapeError);
  CHECK_THROWS_AS(Normal(zeros({3}), 1).log_prob(Tensor()), ValueError);
  CHECK_THROWS_AS(Dirichlet(ones({3})).log_prob(ones({4})), ShapeError);
  CHECK_THROWS_AS(Dirichlet(ones({3})).log_prob(scalar(1.0)), ShapeError);
  CHECK_THROWS_AS(Poisson(1).rsample(), NotSupported);
  CHECK_THROWS_AS(Poisson(1).entropy(), NotSupported);
  CHECK_THROWS_AS(Beta(1, 1).cdf(scalar(0.5)), NotSupported);
  CHECK_THROWS_AS(Normal(0, 1).enumerate_support(), NotSupported);
  CHECK_THROWS_AS(Normal(0, 1).parameter("rate"), ValueError);
  const std::string text = message<ShapeError>([] { Normal(draw({3}, 1), draw({4}, 1)); });
  CHECK_MESSAGE((holds(text, "Normal") && holds(text, "[3]") && holds(text, "[4]")), text);
  const std::string pair = message<NotSupported>([] { kl_divergence(Normal(0, 1), Cauchy(0, 1)); });
  CHECK_MESSAGE((holds(pair, "Normal") && holds(pair, "Cauchy")), pair);
  const std::string names = message<ValueError>([] { Normal(0, 1).parameter("rate"); });
  CHECK_MESSAGE((holds(names, "loc") && holds(names, "scale")), names);
}

TEST_CASE("distributions.enumerate_support") {
  const Categorical d(Logits{draw({2, 3}, 1)});
  const Tensor all = d.enumerate_support();
  CHECK(all.shape() == Shape{3, 2});
  CHECK(d.enumerate_support(false).shape() == Shape{3, 1});
  CHECK(allclose(logsumexp(d.log_prob(all), 0), zeros({2}, DType::Float64), 0, 1e-12));
  const OneHotCategorical one_hot(Logits{draw({2, 3}, 1)});
  CHECK(one_hot.enumerate_support().shape() == Shape{3, 2, 3});
  CHECK(allclose(one_hot.log_prob(one_hot.enumerate_support()), d.log_prob(all)));
  CHECK(Bernoulli(Probs{draw({4}, 1) * 0 + 0.5}).enumerate_support().shape() == Shape{2, 4});
  const Binomial counts(Tensor::from({3.0, 5.0}, {2}), Probs{0.3});
  CHECK(allclose(sum(exp(counts.log_prob(counts.enumerate_support())), 0),
                 ones({2}, DType::Float64)));
}

TEST_CASE("distributions.independent") {
  const Tensor loc = draw({4, 3, 2}, 1), scale = exp(draw({4, 3, 2}, 2));
  const Normal base(loc, scale);
  const Independent d(base, 2);
  CHECK(d.batch_shape() == Shape{4});
  CHECK(d.event_shape() == Shape{3, 2});
  const Tensor x = d.rsample({5}, Generator(1));
  CHECK(allclose(d.log_prob(x), sum(base.log_prob(x), {-1, -2})));
  CHECK(allclose(d.entropy(), sum(base.entropy(), {-1, -2})));
  CHECK(equal(d.mean(), loc));
  CHECK(equal(d.stddev(), scale));
  const Independent other(Normal(zeros({4, 3, 2}, DType::Float64), 1), 2);
  CHECK(kl_divergence(d, other).shape() == Shape{4});
  CHECK(allclose(kl_divergence(d, other), sum(kl_divergence(base, Normal(0, 1)), {-1, -2})));
  CHECK_THROWS_AS(kl_divergence(d, Independent(base, 1)), NotSupported);
  CHECK_THROWS_AS(kl_divergence(d, base), NotSupported);
  CHECK(!Independent(Bernoulli(Logits{loc}), 1).has_rsample());
  CHECK(Independent(Bernoulli(Logits{loc}), 1).sample().shape() == Shape{4, 3, 2});
}

TEST_CASE("distributions.mixture") {
  const Tensor weights = Tensor::from({0.2, 0.5, 0.3}, {3});
  const Tensor loc = Tensor::from({-3.0, 0.0, 4.0}, {3}),
               scale = Tensor::from({0.5, 1.0, 2.0}, {3});
  const MixtureSameFamily d(Categorical(Probs{weights}), Normal(loc, scale));
  CHECK(d.batch_shape() == Shape{});
  const Tensor x = linspace(-8, 12, 5, DType::Float64);
  const Tensor density = sum(exp(Normal(loc, scale).log_prob(unsqueeze(x, -1))) * weights, -1);
  CHECK(allclose(exp(d.log_prob(x)), density));
  CHECK(d.mean().item() == doctest::Approx(0.6));
  CHECK(d.variance().item() == doctest::Approx(0.2 * 9.25 + 0.5 * 1 + 0.3 * 20 - 0.36));
  CHECK(d.cdf(scalar(100.0)).item() == doctest::Approx(1));
  const Tensor sample = d.sample({50000}, Generator(3)).compute();
  CHECK(mean(sample).item() == doctest::Approx(0.6).epsilon(0.05));
  CHECK(var(sample).item() == doctest::Approx(d.variance().item()).epsilon(0.05));
  CHECK(mean(cast(lt(sample, -2), DType::Float64)).item() ==
        doctest::Approx(d.cdf(scalar(-2.0)).item()).epsilon(0.03));
  // Vectors: events keep their axes.
  const MixtureSameFamily vectors(Categorical(Probs{ones({2, 3})}),
                                  Independent(Normal(draw({2, 3, 4}, 1), 1), 1));
  CHECK(vectors.batch_shape() == Shape{2});
  CHECK(vectors.event_shape() == Shape{4});
  CHECK(vectors.sample({5}).shape() == Shape{5, 2, 4});
  CHECK(vectors.log_prob(zeros({5, 2, 4})).shape() == Shape{5, 2});
  CHECK(vectors.mean().shape() == Shape{2, 4});
  CHECK(vectors.variance().shape() == Shape{2, 4});
}

TEST_CASE("distributions.transforms") {
  struct Case {
    const char* name;
    Transform transform;
    Tensor x;
  };
  const Tensor x = draw({7}, 3), rows = draw({5, 4}, 4);
  const std::vector<Case> cases{
      {"affine", affine_transform(0.5, -2), x},
      {"affine of tensors", affine_transform(draw({7}, 1), exp(draw({7}, 2))), x},
      {"exp", exp_transform(), x},
      {"power", power_transform(-1.5), exp(x)},
      {"sigmoid", sigmoid_transform(), x},
      {"tanh", tanh_transform(), x},
      {"softplus", softplus_transform(), x},
      {"composed", compose({affine_transform(1, 0.5), tanh_transform(), exp_transform()}), x},
      {"none", compose({}), x},
      {"inverse", exp_transform().inv(), exp(x)},
      {"own", Transform(std::make_shared<Wave>()), x},
  };
  for (const Case& each : cases) {
    INFO(std::string(each.name));
    const Tensor in = variable(each.x);
    const Tensor y = each.transform(in);
    CHECK(allclose(each.transform.inv()(y), in, 1e-9, 1e-9));
    CHECK(allclose(each.transform.inv().inv()(in), y));
    const Tensor slope = log(abs(grad(sum(y), in)));
    const Tensor claimed = each.transform.log_abs_det_jacobian(in, y);
    CHECK(allclose(claimed + zeros_like(slope), slope, 1e-9, 1e-9));
    CHECK(allclose(each.transform.inv().log_abs_det_jacobian(y, in), -claimed));
  }
  // Breaking sticks: the determinant of the first n results.
  const Transform sticks = stick_breaking_transform();
  const Tensor in = variable(rows), y = sticks(in);
  CHECK(y.shape() == Shape{5, 5});
  CHECK(allclose(sum(y, -1), ones({5}, DType::Float64)));
  CHECK(allclose(sticks.inv()(y), in, 1e-9, 1e-9));
  std::vector<Tensor> columns;
  for (std::int64_t k = 0; k < 4; ++k) columns.push_back(grad(sum(select(y, -1, k)), in));
  const Tensor jacobian = stack(columns, -2);
  CHECK(allclose(sticks.log_abs_det_jacobian(in, y), linalg::slogdet(jacobian).logabsdet, 1e-9,
                 1e-9));
  // Axes of events.
  const Transform three = independent_transform(exp_transform(), 1);
  CHECK(allclose(three.log_abs_det_jacobian(rows, exp(rows)), sum(rows, -1)));
  CHECK(three.rule().domain_axes() == 1);
  CHECK(compose({exp_transform(), three}).rule().domain_axes() == 1);
  CHECK(affine_transform(0, 2, 1).log_abs_det_jacobian(rows, rows * 2).shape() == Shape{5});
}

TEST_CASE("distributions.transformed") {
  const Tensor loc = draw({3}, 1), scale = exp(draw({3}, 2)) * 0.3;
  const TransformedDistribution d(Normal(loc, scale), exp_transform());
  const LogNormal expected(loc, scale);
  const Tensor x = d.rsample({4}, Generator(1));
  CHECK(allclose(d.log_prob(x), expected.log_prob(x)));
  CHECK(allclose(d.cdf(x), expected.cdf(x)));
  CHECK(allclose(d.icdf(full({3}, 0.3, DType::Float64)),
                 expected.icdf(full({3}, 0.3, DType::Float64))));
  // A falling transform.
  const TransformedDistribution falling(Exponential(2), affine_transform(0, -1));
  CHECK(falling.cdf(scalar(-1.0)).item() == doctest::Approx(std::exp(-2)));
  CHECK(falling.icdf(scalar(0.25)).item() == doctest::Approx(std::log(0.25) / 2));
  CHECK_THROWS_AS(
      TransformedDistribution(Normal(0, 1), Transform(std::make_shared<Wave>())).cdf(scalar(0.0)),
      NotSupported);
  // Parameters of the transform make the batch larger.
  const TransformedDistribution wide(Normal(0, 1), affine_transform(zeros({5}), ones({5})));
  CHECK(wide.batch_shape() == Shape{5});
  CHECK(wide.sample({2}).shape() == Shape{2, 5});
  // Numbers become vectors.
  const TransformedDistribution simplex(Normal(zeros({2, 3}), 1), stick_breaking_transform());
  CHECK(simplex.batch_shape() == Shape{2});
  CHECK(simplex.event_shape() == Shape{4});
  const Tensor y = simplex.sample({6}, Generator(2)).compute();
  CHECK(y.shape() == Shape{6, 2, 4});
  CHECK(simplex.log_prob(y).shape() == Shape{6, 2});
  CHECK(all(isfinite(simplex.log_prob(y))).item() == 1);
  // The same transform of two distributions does not change their divergence.
  const Transform shared = tanh_transform();
  const TransformedDistribution p(Normal(loc, scale), shared), q(Normal(0, 1), shared);
  CHECK(allclose(kl_divergence(p, q), kl_divergence(Normal(loc, scale), Normal(0, 1))));
  CHECK_THROWS_AS(kl_divergence(p, d), NotSupported);
  // Results that are rounded to 1: of a value that is known, the argument is taken, otherwise a
  // number near it.
  const Tensor far = variable(full({}, 12, DType::Float32));
  const TransformedDistribution squashed(Normal(far, 1), shared);
  const Tensor drawn = squashed.rsample({}, Generator(1));
  const double by_hand = (Normal(12, 1).log_prob(Normal(12, 1).sample({}, Generator(1))) -
                          2 * std::log(2.0) + 2 * Normal(12, 1).sample({}, Generator(1)))
                             .item();
  CHECK(squashed.log_prob(drawn).item() == doctest::Approx(by_hand).epsilon(1e-4));
  CHECK(std::isfinite(squashed.log_prob(ones({})).item()));
  // tanh of a normal number is the policy of soft actor-critic: finite also for large actions.
  const Tensor action = variable(scalar(8.0));
  CHECK(
      std::isfinite(grad(sum(shared.log_abs_det_jacobian(action, shared(action))), action).item()));
}

TEST_CASE("distributions.kl_by_samples") {
  // Against the mean of log p - log q over samples.
  const auto check = [](const Distribution& p, const Distribution& q) {
    INFO(std::string(p.name()), " ", std::string(q.name()));
    const Tensor x = p.sample({100000}, Generator(6)).compute();
    const double found = kl_divergence(p, q).item();
    CHECK(found == doctest::Approx(mean(p.log_prob(x) - q.log_prob(x)).item()).epsilon(0.03));
  };
  const Tensor a = scalar(1.7, DType::Float64);
  check(Normal(a, 1), Normal(0, 2));
  check(Gamma(a, 2), Gamma(1, 1));
  check(Chi2(a), Gamma(1, 1));
  check(Beta(a, 2), Uniform(0, 1));
  check(Gamma(a, 2), Normal(0, 3));
  check(Binomial(a * 0 + 9, Probs{0.3}), Binomial(9, Probs{0.6}));
  check(Wishart(a + 4, ScaleTril{eye(3, 3, DType::Float64) * 0.5}),
        Wishart(a + 6, ScaleTril{eye(3, 3, DType::Float64)}));
  check(MultivariateNormal(0, ScaleTril{draw({3, 3}, 1) + eye(3, 3, DType::Float64) * 3}),
        MultivariateNormal(1, ScaleTril{eye(3, 3, DType::Float64) * 2}));
}

TEST_CASE("distributions.multivariate_normal") {
  const Tensor factor = tril(draw({2, 3, 3}, 1)) * 0.3 + eye(3, 3, DType::Float64);
  const Tensor covariance = matmul(factor, transpose(factor)), loc = draw({3}, 2);
  const MultivariateNormal by_factor(loc, ScaleTril{factor}),
      by_covariance(loc, CovarianceMatrix{covariance});
  const MultivariateNormal by_precision(loc, PrecisionMatrix{linalg::inv(covariance)});
  CHECK(allclose(by_covariance.scale_tril(), factor));
  CHECK(allclose(by_precision.scale_tril(), factor));
  CHECK(allclose(by_factor.covariance_matrix(), covariance));
  CHECK(allclose(by_factor.precision_matrix(), linalg::inv(covariance)));
  CHECK(by_factor.batch_shape() == Shape{2});
  const Tensor x = draw({5, 1, 3}, 3);
  CHECK(by_factor.log_prob(x).shape() == Shape{5, 2});
  // One distribution for many values takes another path.
  const MultivariateNormal first(loc, ScaleTril{select(factor, 0, 0)});
  CHECK(allclose(first.log_prob(draw({5, 3}, 3)), select(by_factor.log_prob(x), 1, 0)));
  // The upper triangle is not read.
  const MultivariateNormal full_matrix(loc,
                                       ScaleTril{factor + triu(ones({3, 3}, DType::Float64), 1)});
  CHECK(allclose(full_matrix.log_prob(x), by_factor.log_prob(x)));
  const Tensor low = draw({3, 2}, 4), diagonal = exp(draw({3}, 5));
  const LowRankMultivariateNormal low_rank(loc, low, diagonal);
  const MultivariateNormal same(loc, CovarianceMatrix{low_rank.covariance_matrix()});
  CHECK(allclose(low_rank.log_prob(x), same.log_prob(x)));
  CHECK(allclose(low_rank.entropy(), same.entropy()));
  CHECK(allclose(low_rank.variance(), same.variance()));
  CHECK(std::abs(kl_divergence(low_rank, same).item()) < 1e-9);
}

TEST_CASE("distributions.handles") {
  Distribution d = Normal(1, 2);
  const Distribution copy = d, moved = std::move(d);
  CHECK(std::string(d.name()) == "Normal");  // NOLINT: a moved-from handle stays valid
  CHECK(moved.mean().item() == 1);
  d = Poisson(3);
  CHECK(std::string(d.name()) == "Poisson");
  CHECK(std::string(copy.name()) == "Normal");
}

TEST_CASE("distributions.gradients_of_parameters") {
  // Of a policy and of the bound of a variational autoencoder.
  const Tensor logits = variable(draw({4, 3}, 1));
  const Categorical policy(Logits{logits});
  const Tensor actions = policy.sample({}, Generator(1)).compute();
  const Tensor slope = grad(sum(policy.log_prob(actions)), logits);
  CHECK(allclose(slope, one_hot(actions, 3, DType::Float64) - softmax(logits)));
  const Tensor mu = variable(draw({4}, 1)), log_scale = variable(draw({4}, 2));
  const Normal q(mu, exp(log_scale));
  const Tensor loss =
      sum(kl_divergence(q, Normal(0, 1)) - Normal(0, 1).log_prob(q.rsample({}, Generator(3))));
  const std::vector<Tensor> both{mu, log_scale};
  for (const Tensor& each : grad(loss, both)) CHECK(all(isfinite(each)).item() == 1);
  // At the ends of the support.
  const Tensor one = variable(scalar(1.0, DType::Float64));
  const Tensor at_0 = Gamma(one, one).log_prob(scalar(0.0, DType::Float64));
  CHECK(at_0.item() == doctest::Approx(0));
  CHECK(Bernoulli(Logits{scalar(kLimitless)}).log_prob(scalar(1.0)).item() == 0);
  CHECK(Categorical(Logits{Tensor::from({0.0, -kLimitless}, {2})}).entropy().item() ==
        doctest::Approx(0));
  // Actions that are masked out.
  const Tensor mask = Tensor::from({0.0, -kLimitless, 0.0}, {3});
  const Categorical masked(Logits{logits + mask}), other(Logits{logits * 2 + mask});
  const Tensor terms = masked.entropy() + kl_divergence(masked, other) +
                       masked.log_prob(masked.sample({}, Generator(1)));
  const Tensor of_masked = grad(sum(terms), logits);
  CHECK(all(isfinite(terms)).item() == 1);
  CHECK(all(isfinite(of_masked)).item() == 1);
  CHECK(equal(select(of_masked, 1, 1), zeros({4}, DType::Float64)));
}
