// Steps whose regions share launches, on a GPU, real or emulated: the same bits as with separate
// launches.
#include <doctest/doctest.h>

#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <string>
#include <vector>

#include "cuda/cuda.h"

using namespace tenon;

namespace {

struct Course {
  std::vector<float> weights;  // all of them, one after another
  std::vector<double> losses;
  int launches = 0;
};

nn::AnyModule small_network() {
  return nn::Sequential(nn::Conv2d(1, 3, 3), nn::Tanh(), nn::Flatten(), nn::Linear(3 * 8 * 6, 90),
                        nn::ReLU(), nn::Linear(90, 4));
}

/// A network with so many parameters that their updates take more than 4 KB of arguments.
nn::AnyModule deep_network() {
  nn::Sequential net{nn::Flatten()};
  for (int k = 0; k < 30; ++k) {
    net.append(nn::Linear(k == 0 ? 80 : 16, 16));
    net.append(nn::Tanh());
  }
  net.append(nn::Linear(16, 4));
  return net;
}

Course train(nn::AnyModule (*make)(), bool joined, double clip) {
  set_device("cuda");
  set_pass_enabled("join", joined);
  manual_seed(5);
  const nn::AnyModule net = make();
  optim::Adam adam(net, {.lr = 0.01});
  const Tensor x = randn({6, 1, 10, 8}).eval(), y = randint(0, 4, {6}).eval();
  CompiledFunction step = compile([&](const std::vector<Tensor>& in) {
    const Tensor loss = cross_entropy(net(in[0]), in[1]);
    std::vector<Tensor> grads = grad(loss, adam.parameters());
    if (clip > 0) grads = optim::clip_grad_norm(grads, clip).grads;
    std::vector<Tensor> out = adam.updates(grads);
    out.insert(out.begin(), loss);
    return out;
  });
  Course course;
  for (int k = 0; k < 4; ++k) course.losses.push_back(step({x, y})[0].item());
  course.launches = step.plan({x, y}).step_count();
  for (const Tensor& p : adam.parameters())
    for (float w : p.to_vector<float>()) course.weights.push_back(w);
  set_pass_enabled("join", true);
  set_device("cpu");
  return course;
}

}  // namespace

TEST_CASE("GPU joining: the same bits in fewer launches") {
  if (cuda::gpu_count() == 0) {
    MESSAGE("skipped: no GPU");
    return;
  }
  for (const double clip : {0.0, 0.05}) {
    CAPTURE(clip);
    const Course apart = train(small_network, false, clip),
                 joined = train(small_network, true, clip);
    CHECK(joined.launches + 4 <= apart.launches);
    CHECK(joined.losses == apart.losses);
    CHECK(joined.weights == apart.weights);
    CHECK(joined.losses.back() < joined.losses.front());
  }
}

TEST_CASE("GPU joining: a deep network's updates") {
  if (cuda::gpu_count() == 0) {
    MESSAGE("skipped: no GPU");
    return;
  }
  for (const double clip : {0.0, 0.05}) {
    CAPTURE(clip);
    const Course apart = train(deep_network, false, clip), joined = train(deep_network, true, clip);
    CHECK(joined.launches + 60 <= apart.launches);
    CHECK(joined.losses == apart.losses);
    CHECK(joined.weights == apart.weights);
  }
}
