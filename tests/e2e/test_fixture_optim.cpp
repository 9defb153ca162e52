// Optimizers and schedules compared with torch.optim, step by step.
#include <functional>
#include <memory>

#include <tenon/eval.h>
#include <tenon/optim.h>

#include "e2e/fixtures.h"

using namespace tenon;
using fixtures::distance;

namespace {

using Make = std::function<std::unique_ptr<optim::Optimizer>(const optim::Parameters&)>;

template <class O, class Options>
Make make(const Options& options) {
  return [options](const optim::Parameters& parameters) {
    return std::make_unique<O>(parameters, options);
  };
}

/// The optimizers of OPTIMIZERS in make_fixtures.py.
std::map<std::string, Make> optimizers() {
  optim::RmsPropOptions centered;
  centered.lr = 0.01, centered.alpha = 0.9, centered.eps = 1e-4, centered.momentum = 0.5,
  centered.centered = true;
  centered.weight_decay = 0.01;
  optim::RmsPropOptions rmsprop;
  rmsprop.lr = 0.01;
  return {
      {"sgd", make<optim::Sgd>(optim::SgdOptions{.lr = 0.1})},
      {"sgd_decay", make<optim::Sgd>(optim::SgdOptions{.lr = 0.1, .weight_decay = 0.05})},
      {"sgd_momentum",
       make<optim::Sgd>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01})},
      {"sgd_dampening",
       make<optim::Sgd>(optim::SgdOptions{.lr = 0.1, .momentum = 0.8, .dampening = 0.3})},
      {"sgd_nesterov",
       make<optim::Sgd>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true})},
      {"adam", make<optim::Adam>(optim::AdamOptions{.lr = 0.02})},
      {"adam_decay",
       make<optim::Adam>(optim::AdamOptions{
           .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-5, .weight_decay = 0.1})},
      {"adamw", make<optim::AdamW>(optim::AdamWOptions{.lr = 0.02, .weight_decay = 0.1})},
      {"sgd_maximize", make<optim::Sgd>(optim::SgdOptions{
                           .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .maximize = true})},
      {"adam_amsgrad",
       make<optim::Adam>(optim::AdamOptions{
           .lr = 0.02, .beta1 = 0.8, .beta2 = 0.7, .weight_decay = 0.1, .amsgrad = true})},
      {"adamw_maximize", make<optim::AdamW>(optim::AdamWOptions{.lr = 0.02,
                                                                .beta1 = 0.8,
                                                                .beta2 = 0.7,
                                                                .weight_decay = 0.1,
                                                                .amsgrad = true,
                                                                .maximize = true})},
      {"rmsprop", make<optim::RmsProp>(rmsprop)},
      {"rmsprop_maximize",
       make<optim::RmsProp>(optim::RmsPropOptions{.lr = 0.01, .maximize = true})},
      {"rmsprop_centered", make<optim::RmsProp>(centered)},
  };
}

}  // namespace

TEST_CASE("fixtures: optimizers follow torch.optim, states included") {
  const auto stored = fixtures::load("optim");
  const Tensor start = stored.at("start").at(""), grads = stored.at("grads").at("");
  for (const auto& entry : optimizers()) {
    const auto& name = entry.first;
    const auto& build = entry.second;
    CAPTURE(name);
    const Tensor p = variable(start, "p");
    const auto optimizer = build(optim::Parameters({{{{"p", p}}, {}, {}}}));
    for (std::int64_t step = 0; step < grads.size(0); ++step) {
      CAPTURE(step);
      eval(optimizer->updates({select(grads, 0, step)}));
      const StateDict state = optimizer->state_dict();
      for (const auto& key_entry : stored.at(name)) {
        const auto& key = key_entry.first;
        const auto& trail = key_entry.second;
        CAPTURE(key);
        const Tensor& mine = key == "parameter" ? p : state.at("p." + key);
        CHECK(distance(mine, select(trail, 0, step)) < 3e-6);
      }
    }
    CHECK(optimizer->steps() == grads.size(0));
  }
}

TEST_CASE("fixtures: the common norm of gradients is clipped as in torch.nn.utils") {
  const auto stored = fixtures::load("optim");
  const Tensor grads = stored.at("grads").at("");
  const auto clipped =
      optim::clip_grad_norm({select(grads, 0, 0), select(select(grads, 0, 1), 0, 0)}, 1.5);
  const auto& expected = stored.at("clip_norm");
  CHECK(distance(clipped.norm, expected.at("norm")) < 1e-6);
  CHECK(distance(clipped.grads[0], expected.at("0")) < 2e-6);
  CHECK(distance(clipped.grads[1], expected.at("1")) < 2e-6);
}

TEST_CASE("fixtures: schedules follow torch.optim.lr_scheduler") {
  const auto stored = fixtures::load("optim").at("schedule");
  std::map<std::string, std::unique_ptr<optim::Schedule>> schedules;
  schedules["step"] = optim::step(3, 0.5);
  schedules["multistep"] = optim::multistep({2, 5, 9}, 0.3);
  schedules["exponential"] = optim::exponential(0.8);
  schedules["cosine"] = optim::cosine(15, 0.05);
  schedules["linear"] = optim::linear(10, 0.2);
  schedules["polynomial"] = optim::polynomial(10, 2.5);
  schedules["cosine_restarts"] = optim::cosine_restarts(3, 2, 0.1);
  schedules["cosine_repeated"] = optim::cosine_restarts(4);
  schedules["warmup_cosine"] = optim::warmup(5, optim::cosine(20, 0.1));
  schedules["one_cycle"] = optim::one_cycle(20);
  schedules["plateau"] = optim::plateau(0.5, 2, 1e-4, 0.1);
  const std::vector<double> figures = fixtures::numbers(stored.at("plateau_figures"));
  for (const auto& entry : schedules) {
    const auto& name = entry.first;
    const auto& schedule = entry.second;
    CAPTURE(name);
    const std::vector<double> curve = fixtures::numbers(stored.at(name));
    for (std::size_t step = 0; step < curve.size(); ++step) {
      CAPTURE(step);
      CHECK(schedule->factor(static_cast<std::int64_t>(step)) ==
            doctest::Approx(curve[step]).epsilon(1e-9));
      if (name == "plateau") schedule->observe(figures[step]);
    }
  }
}
