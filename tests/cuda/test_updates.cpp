// State that steps carry on a GPU, real or emulated: batch norm as in PyTorch, and the trainer's
// steps with several steps per launch.
#include <doctest/doctest.h>

#include <memory>

#include <tenon/data.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/train.h>

#include "e2e/batch_norm_course.h"
#include "gpu.h"

using namespace tenon;
using test::has_gpu;

TEST_CASE("updates on a GPU: batch norm follows PyTorch for fifty steps") {
  if (!has_gpu()) return;
  set_device("cuda");
  batch_norm_course::run(
      [](batch_norm_course::Course& course, const Tensor& x, const Tensor& target) {
        return course.sgd.step(course.loss(x, target));
      });
  set_device("cpu");
}

namespace {

/// On the host, and on the GPU by launches of one step and of four.
template <class Activation>
void check_launches(Activation activation, std::int64_t batch) {
  StateDict states[3];
  for (const int launch : {0, 1, 4}) {
    set_device(launch == 0 ? "cpu" : "cuda");
    manual_seed(3);
    const nn::Sequential net(nn::Linear(6, 8), nn::BatchNorm1d(8), activation, nn::Linear(8, 2));
    manual_seed(4);
    const Tensor x = randn({6 * batch, 6}), y = remainder(arange(0, 6 * batch), 2);
    optim::Sgd sgd(net, {.lr = 0.1});
    data::Loader loader(data::from_tensors(to(x, Device{}).eval(), to(y, Device{}).eval(), 2),
                        {.batch = batch});
    train::TrainOptions options;
    options.epochs = 2;
    options.keep_best = false;
    options.steps_per_launch = launch;
    train::Trainer(net, nn::CrossEntropyLoss(), sgd, options).fit(loader);
    CHECK(net.state_dict().at("1.num_batches_tracked").item() == 12);
    for (const auto& [name, t] : net.state_dict())
      states[launch == 4 ? 2 : launch].emplace(name, to(t, Device{}).eval());
  }
  set_device("cpu");
  for (const auto& [name, t] : states[1]) {
    CAPTURE(name);
    CHECK(fixtures::distance(states[2].at(name), t) == 0);
    CHECK(fixtures::distance(t, states[0].at(name)) < 1e-4);
  }
}

}  // namespace

TEST_CASE("updates on a GPU: steps that share a launch update the same state as single steps") {
  if (!has_gpu()) return;
  check_launches(nn::Tanh(), 8);
  // The gradients recompute the mask from the normalised value and the bias, which the step
  // updates.
  check_launches(nn::ReLU(), 512);
}
