// Times a training step of a GRU written with scan(), and planning it.
//
//   c++ -std=c++20 -O2 -Iinclude bench/recurrent_perf.cpp build/lib/libtenon.a -lz -lpng -ljpeg -ldl -lpthread
//   recurrent_perf [cpu|cuda] [steps batch width]
//
// One line: planning and a step in milliseconds (median and least of 60). bench/peer_recurrent.py times
// PyTorch's nn.GRU on the same work: the input's products for all steps at once, mean square of all
// outputs, plain SGD.
#include <tenon/tenon.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

using namespace tenon;
using Tensors = std::vector<Tensor>;

namespace {

double now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string where = argc > 1 ? argv[1] : "cpu";
  set_device(where);
  const std::int64_t steps = argc > 2 ? std::stoll(argv[2]) : 32,
                     batch = argc > 3 ? std::stoll(argv[3]) : 32,
                     width = argc > 4 ? std::stoll(argv[4]) : 128;
  const Tensors weights{variable(randn({3 * width, width}) * 0.1, "weight_ih"),
                        variable(randn({3 * width, width}) * 0.1, "weight_hh"),
                        variable(zeros({3 * width}), "bias_ih"),
                        variable(zeros({3 * width}), "bias_hh")};
  const auto step = compile([&](const Tensors& in) {
    const ScanStep cell = [&](const Tensors& c, const Tensors& x) {
      const Tensors of_x = split(x[0], width, 1),
                    of_h = split(linear(c[0], weights[1], weights[3]), width, 1);
      const Tensor reset = sigmoid(of_x[0] + of_h[0]), update = sigmoid(of_x[1] + of_h[1]);
      const Tensor fresh = tanh(of_x[2] + reset * of_h[2]);
      const Tensor h = fresh + update * (c[0] - fresh);
      return ScanResult{{h}, {h}};
    };
    const Tensor x = linear(in[0], weights[0], weights[2]);
    const Tensor loss = mean(square(scan(cell, {zeros({batch, width})}, {x}).ys[0]));
    const Tensors gradients = grad(loss, weights);
    Tensors out{loss};
    for (std::size_t k = 0; k < weights.size(); ++k)
      out.push_back(assign(weights[k], weights[k] - gradients[k] * 0.01f));
    return out;
  });
  const Tensor x = randn({steps, batch, width}).eval();
  const double planning = step.plan({x}).planning_ms();
  for (int k = 0; k < 5; ++k) step({x})[0].item();
  std::vector<double> times;
  for (int k = 0; k < 60; ++k) {
    const double start = now();
    step({x})[0].item();
    times.push_back(now() - start);
  }
  std::sort(times.begin(), times.end());
  std::printf("gru steps %lld batch %lld width %lld on %s: planned in %.2f ms, step %.3f ms (least %.3f)\n",
              static_cast<long long>(steps), static_cast<long long>(batch),
              static_cast<long long>(width), where.c_str(), planning, times[times.size() / 2],
              times[0]);
}
