// Optimizers, L-BFGS and parametrized layers on a GPU, real or emulated: the values of the CPU.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include <tenon/compute.h>
#include <tenon/lbfgs.h>
#include <tenon/optimizers.h>
#include <tenon/parametrizations.h>

#include "base/distance.h"
#include "gpu.h"

using namespace tenon;
using test::distance;
using test::has_gpu;

namespace {

/// The results of `run` on the CPU and on the GPU, brought to the CPU.
void compare(const std::function<std::vector<Tensor>()>& run, double tolerance) {
  std::vector<Tensor> results[2];
  for (const bool on_gpu : {false, true}) {
    set_device(on_gpu ? "cuda" : "cpu");
    manual_seed(5);
    for (const Tensor& t : run()) results[on_gpu ? 1 : 0].push_back(to(t, Device{}).compute());
  }
  set_device("cpu");
  for (std::size_t k = 0; k < results[0].size(); ++k)
    CHECK(distance(results[1][k], results[0][k]) < tolerance);
}

}  // namespace

TEST_CASE("optimizers on a GPU: each takes the steps of the CPU") {
  if (!has_gpu()) return;
  for (const std::string& name : optim::names()) {
    CAPTURE(name);
    compare(
        [&] {
          const Tensor w = variable(Tensor::from<float>({1, -2, 3, 0.5, 2, -1}, {2, 3}), "w"),
                       b = variable(Tensor::from<float>({0.5, 1, -1}, {3}), "b");
          const auto optimizer =
              optim::create(name, {w, b}, {.lr = name == "levenberg" ? 1e-4 : 0.01});
          for (int k = 0; k < 4; ++k) optimizer->step(sum(square(square(w) - 1)) + sum(square(b)));
          return std::vector<Tensor>{w, b};
        },
        1e-5);
  }
}

TEST_CASE("optimizers on a GPU: L-BFGS finds the minimum that it finds on the CPU") {
  if (!has_gpu()) return;
  compare(
      [] {
        const Tensor p = variable(Tensor::from<double>({-0.5, 0.3, 0.8}, {3}), "p");
        optim::Lbfgs lbfgs({p}, {.max_iter = 5, .strong_wolfe = true});
        for (int k = 0; k < 3; ++k)
          lbfgs.step([&] {
            const Tensor a = narrow(p, 0, 1, 2), b = narrow(p, 0, 0, 2);
            return sum(100 * square(a - square(b)) + square(1 - b));
          });
        return std::vector<Tensor>{p, lbfgs.state_dict().at("old_dirs")};
      },
      1e-6);
}

TEST_CASE(
    "parametrizations on a GPU: training changes weights and singular vectors as on the CPU") {
  if (!has_gpu()) return;
  compare(
      [] {
        nn::Sequential net(nn::WeightNorm(nn::Linear(4, 6)), nn::Tanh(),
                           nn::SpectralNorm(nn::Linear(6, 2)));
        const Tensor x = randn({5, 4}).compute();
        optim::Sgd sgd(net, {.lr = 0.1});
        for (int k = 0; k < 3; ++k) sgd.step(mean(square(net(x) - 1)));
        std::vector<Tensor> out;
        for (const auto& [key, t] : net.state_dict()) out.push_back(t);
        return out;
      },
      1e-5);
}
