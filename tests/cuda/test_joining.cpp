// Steps whose regions share launches, on a card, real or emulated: the bits of those that do not.
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

Course train(bool joined, double clip) {
  set_device("cuda");
  set_pass_enabled("join", joined);
  manual_seed(5);
  const nn::AnyModule net =
      nn::Sequential(nn::Conv2d(1, 3, 3), nn::Tanh(), nn::Flatten(), nn::Linear(3 * 8 * 6, 90),
                     nn::ReLU(), nn::Linear(90, 4));
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

TEST_CASE("card joining: the same bits in fewer launches") {
  if (cuda::card_count() == 0) {
    MESSAGE("skipped: no card");
    return;
  }
  for (const double clip : {0.0, 0.05}) {
    CAPTURE(clip);
    const Course apart = train(false, clip), joined = train(true, clip);
    CHECK(joined.launches + 4 <= apart.launches);
    CHECK(joined.losses == apart.losses);
    CHECK(joined.weights == apart.weights);
    CHECK(joined.losses.back() < joined.losses.front());
  }
}
