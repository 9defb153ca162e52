// Distributions on a GPU, real or emulated: the same samples, log-probabilities and gradients as on
// the CPU.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/creation.h>
#include <tenon/distributions.h>
#include <tenon/functional.h>
#include <tenon/grad.h>

#include "gpu.h"
#include "made_on.h"

using namespace tenon;
using namespace tenon::distributions;

namespace {

// A distribution of each kind of sampler, by parameters [3] above 0.
std::vector<Distribution> all_kinds(const Tensor& a) {
  const Tensor rows = unsqueeze(a, 0);
  return {Normal(a, a),
          Gumbel(a, a),
          Gamma(a, 2),
          Beta(a, 0.5),
          StudentT(a),
          VonMises(a, a),
          ContinuousBernoulli(Logits{a}),
          Bernoulli(Logits{a}),
          Poisson(a * 4),
          Binomial(20, Logits{a}),
          NegativeBinomial(a, Logits{a}),
          Categorical(Logits{rows}),
          Multinomial(5, Logits{rows}),
          RelaxedOneHotCategorical(0.5, Logits{rows}),
          Dirichlet(rows),
          Kumaraswamy(a, 2),
          FisherSnedecor(a * 2, 3),
          GeneralizedPareto(0, a, 0.2),
          Wishart(a + 3, ScaleTril{eye(3)}),
          LKJCholesky(3, a),
          TransformedDistribution(Normal(rows * 0.1, 0.5), corr_cholesky_transform()),
          MixtureSameFamily(Categorical(Logits{rows}), Normal(rows, 1)),
          TransformedDistribution(Normal(a, 1), tanh_transform())};
}

std::vector<Tensor> results(std::size_t k) {
  const Tensor a = variable(Tensor::from({0.6F, 1.8F, 7.5F}, {3}));
  const Distribution d = all_kinds(a)[k];
  const Generator seed(5);
  const Tensor x = d.has_rsample() ? d.rsample({200}, seed) : d.sample({200}, seed);
  const Tensor density = d.log_prob(x);
  return {cast(x, DType::Float32), density, grad(sum(density), a)};
}

}  // namespace

TEST_CASE("cuda distributions: samples, log-probabilities and gradients") {
  if (!test::has_gpu()) return;
  const std::vector<Distribution> all = all_kinds(ones({3}));
  for (std::size_t k = 0; k < all.size(); ++k) {
    INFO(std::string(all[k].name()));
    const auto make = [k] { return results(k); };
    const test::Values on_cpu = test::made_on("cpu", Precision::Fp32, make);
    const test::Values on_gpu = test::made_on("cuda", Precision::Fp32, make);
    const std::string name = all[k].name();
    const bool draws_numbers =
        name == "MixtureSameFamily" || name == "VonMises" || name == "LKJCholesky";
    if (!all[k].has_rsample() && !draws_numbers)
      CHECK(on_gpu[0] == on_cpu[0]);  // counts and classes
    test::check_near(on_gpu, on_cpu, 1e-4);
  }
}

TEST_CASE("cuda distributions: gumbel_softmax and divergences") {
  if (!test::has_gpu()) return;
  const auto make = [] {
    const Tensor a = variable(Tensor::from({0.6F, 1.8F, 7.5F}, {3}));
    const Tensor hard = gumbel_softmax(broadcast_to(a, {50, 3}), 0.5, true, -1, Generator(2));
    const Tensor divergence =
        kl_divergence(Gamma(a, 1), Gamma(2, a)) + kl_divergence(Normal(a, a), Normal(0, 1));
    return std::vector<Tensor>{hard, divergence, grad(sum(divergence), a)};
  };
  test::check_near(test::made_on("cuda", Precision::Fp32, make),
                   test::made_on("cpu", Precision::Fp32, make), 1e-5);
}
