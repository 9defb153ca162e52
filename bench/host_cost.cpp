// Times the host's share of a training step: a network of many tiny layers, trained by
// sgd.step(loss) without compile() and by a compiled step. Prints times per step and per node.
//
// build/bin/bench_host_cost, of './dev build all'. Arguments: layers (default 800), steps (default
// 30). Layers have 4 units and one sample, so there is little arithmetic; one thread. Rows:
// milliseconds of processor time of the fastest step, so that other load has little influence.
#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>

using namespace tenon;

namespace {

double best_ms(int times, const std::function<void()>& work) {
  double best = 1e30;
  for (int k = 0; k < times; ++k) {
    const std::clock_t start = std::clock();
    work();
    best = std::min(best, 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int layers = argc > 1 ? std::atoi(argv[1]) : 800,
            steps = argc > 2 ? std::atoi(argv[2]) : 30;
  set_threads(1);
  std::vector<nn::AnyModule> modules;
  for (int k = 0; k < layers; ++k) {
    modules.emplace_back(nn::Linear(4, 4));
    modules.emplace_back(nn::Tanh());
  }
  const nn::AnyModule net = nn::Sequential(modules);
  optim::Sgd sgd(net, {.lr = 1e-3, .momentum = 0.9});
  const Tensor x = rand({1, 4}).compute();
  const auto loss = [&] { return mean(square(net(x))); };
  const auto gradients = [&] { return grad(loss(), sgd.parameters()); };
  const CompiledFunction step = compile([&](const std::vector<Tensor>&) {
    const Tensor value = loss();
    std::vector<Tensor> out = sgd.updates(grad(value, sgd.parameters()));
    out.push_back(value);
    return out;
  });
  sgd.step(loss());  // plans
  step({});
  const double forward = best_ms(steps, [&] { loss(); }), backward = best_ms(steps, gradients),
               graph = best_ms(steps, [&] { (void)sgd.updates(gradients()); }),
               plain = best_ms(steps, [&] { sgd.step(loss()); }),
               compiled = best_ms(steps, [&] { step({}); });
  const double nodes = step.plan({}).node_count(), kernels = step.plan({}).step_count();
  std::printf("%d layers: %.0f nodes, %.0f steps in the plan\n", layers, nodes, kernels);
  std::printf("  build the loss           %8.3f ms\n", forward);
  std::printf("  with gradients           %8.3f ms\n", backward);
  std::printf("  with updates             %8.3f ms\n", graph);
  std::printf("  sgd.step(loss)           %8.3f ms  %.2f us a node\n", plain, 1e3 * plain / nodes);
  std::printf("  compiled step            %8.3f ms  %.2f us a step of the plan\n", compiled,
              1e3 * compiled / kernels);
  return 0;
}
