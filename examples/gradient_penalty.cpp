// A gradient penalty (second derivatives) while other threads use the network. The gradient of a
// critic with respect to its input is part of the loss, so the step differentiates a gradient.
// During training two threads evaluate the same network.
#include <tenon/tenon.h>

#include <atomic>
#include <thread>

#include "check.h"

using namespace tenon;

int main() {
  manual_seed(5);
  nn::Sequential critic(nn::Linear(2, 32), nn::Softplus(), nn::Linear(32, 32), nn::Softplus(),
                        nn::Linear(32, 1));
  optim::Adam adam(critic, {.lr = 2e-3});

  // Other threads see the weights after the last finished step, never a mixture of two steps.
  const CompiledFunction serve = compile(
      [critic](const std::vector<Tensor>& in) { return std::vector<Tensor>{critic(in[0])}; });
  const Tensor question = randn({16, 2}).compute();
  std::atomic<bool> stop = false;
  std::atomic<int> answers = 0;
  std::atomic<bool> finite = true;
  std::vector<std::thread> servers;
  servers.reserve(2);
  for (int k = 0; k < 2; ++k)
    servers.emplace_back([&] {
      while (!stop) {
        for (const float y : serve({question})[0].to_vector<float>())
          if (!std::isfinite(y)) finite = false;
        ++answers;
        std::this_thread::yield();
      }
    });

  // The critic separates points of a ring (high) from points of a disc (low). The penalty keeps the
  // norm of its gradient near 1.
  double penalty = 0, distance = 0;
  for (int k = 0; k < 200; ++k) {
    const Tensor angle = 6.2831853 * rand({128, 1});
    const Tensor ring = (concat({cos(angle), sin(angle)}, 1) * 2).compute();
    const Tensor disc = (randn({128, 2}) * 0.3).compute();
    const Tensor between = ring + rand({128, 1}) * (disc - ring);
    const Tensor slope = grad(critic(between).sum(), between);
    const Tensor cost = (slope.norm(1) - 1).square().mean();
    const Tensor gap = critic(ring).mean() - critic(disc).mean();
    adam.step(10 * cost - gap);
    penalty = cost.item();
    distance = gap.item();
    if (k % 50 == 0) std::printf("step %3d  distance %.3f  penalty %.4f\n", k, distance, penalty);
  }
  stop = true;
  for (std::thread& server : servers) server.join();
  std::printf("distance %.3f, penalty %.4f; %d answers were given meanwhile\n", distance, penalty,
              answers.load());
  check(distance > 0.5 && penalty < 0.5, "the critic separates them with gradients of norm near 1");
  check(answers > 0 && finite, "the server answered while the network learned");
}
