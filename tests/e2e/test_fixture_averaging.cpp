// Averages of weights and accumulated gradients compared with PyTorch's (averaging.safetensors).
#include <tenon/averaging.h>
#include <tenon/data.h>
#include <tenon/nn.h>
#include <tenon/trainer.h>

#include "e2e/fixtures.h"

using namespace tenon;

namespace {

struct Course {
  explicit Course(const std::string& name)
      : stored(fixtures::load("averaging").at(name)),
        net(nn::Linear(4, 6, {.bias = false}), nn::BatchNorm1d(6), nn::Tanh(), nn::Linear(6, 3)) {
    net.load_state_dict(fixtures::part(stored, "start/"));
  }
  std::int64_t steps() const { return stored.at("x").size(0); }
  Tensor loss(std::int64_t k) const {
    return mse_loss(net(select(stored.at("x"), 0, k)), select(stored.at("y"), 0, k));
  }
  void check(const StateDict& state) const {
    const fixtures::Tensors expected = fixtures::part(stored, "end/");
    REQUIRE(state.size() == expected.size());
    for (const auto& entry : expected) {
      const std::string& key = entry.first;
      CAPTURE(key);
      CHECK(fixtures::distance(state.at(key), entry.second) < 2e-5);
    }
  }

  fixtures::Tensors stored;
  nn::Sequential net;
};

}  // namespace

TEST_CASE("fixtures: an exponential average of weights is PyTorch's") {
  const Course course("ema");
  optim::Adam adam(course.net, {.lr = 0.02});
  optim::AveragedModel average(course.net, optim::ema(0.9));
  for (std::int64_t k = 0; k < course.steps(); ++k) {
    adam.step(course.loss(k));
    average.update();
  }
  course.check(average.state_dict());
}

TEST_CASE("fixtures: stochastic weight averaging and its running statistics are PyTorch's") {
  const Course course("swa");
  optim::Adam adam(course.net, {.lr = 0.02});
  optim::AveragedModel average(course.net, optim::swa());
  for (std::int64_t k = 0; k < course.steps(); ++k) {
    adam.step(course.loss(k));
    if (k % 4 == 3) average.update();
  }
  const Tensor rows = flatten(course.stored.at("x"), 0, 1);
  data::Loader loader(data::from_tensors(rows.compute(), zeros({rows.size(0)}).compute()),
                      {.batch = course.stored.at("x").size(1), .shuffle = false});
  train::update_batch_norm(average.net(), loader);
  course.check(average.state_dict());
}

TEST_CASE("fixtures: accumulated and clipped gradients give PyTorch's weights") {
  const Course course("accumulated");
  optim::Adam adam(course.net, {.lr = 0.02});
  optim::GradientAccumulator accumulated(adam, 3);
  for (std::int64_t k = 0; k < course.steps(); ++k) accumulated.step(course.loss(k), {.norm = 0.5});
  course.check(course.net.state_dict());
}
