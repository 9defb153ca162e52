// Times a training step of recurrent layers, and planning it.
//
//   ./dev build all
//   build/bin/bench_recurrent_perf [cpu|cuda] [steps batch width] [gru|lstm|rnn|words]
//
// gru, lstm and rnn: one layer, mean square of all outputs, plain SGD. words: the language model
// of WORKLOADS (10,000 words, embedding size `width`, two LSTM layers, dense, cross-entropy at
// every step). One line: planning and a step in milliseconds (median and minimum of 30).
// bench/peer_recurrent.py times PyTorch on the same work.
#include <tenon/tenon.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

using namespace tenon;
using Tensors = std::vector<Tensor>;

namespace {

constexpr std::int64_t kWords = 10'000;

double now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

/// Loss of one batch, by the kind of network; `net` holds its parameters.
struct Work {
  nn::ModuleList net;
  std::function<Tensor(const Tensors& in)> loss;
};

template <class Layer>
Work one_layer(std::int64_t width) {
  const Layer layer(width, width);
  Work work;
  work.net.append(layer);
  work.loss = [layer](const Tensors& in) { return mean(square(layer(in[0]).output)); };
  return work;
}

Work words(std::int64_t width) {
  const nn::Embedding embedding(kWords, width);
  const nn::LSTM lstm(width, width, {.num_layers = 2});
  const nn::Linear head(width, kWords);
  Work work;
  for (const nn::AnyModule& part :
       {nn::AnyModule(embedding), nn::AnyModule(lstm), nn::AnyModule(head)})
    work.net.append(part);
  work.loss = [=](const Tensors& in) {
    const Tensor scores = head(lstm(embedding(in[0])).output);
    return cross_entropy(flatten(scores, 0, 1), flatten(in[1]));
  };
  return work;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string where = argc > 1 ? argv[1] : "cpu", kind = argc > 5 ? argv[5] : "gru";
  set_device(where);
  const std::int64_t steps = argc > 2 ? std::stoll(argv[2]) : 32,
                     batch = argc > 3 ? std::stoll(argv[3]) : 32,
                     width = argc > 4 ? std::stoll(argv[4]) : 128;
  const Work work = kind == "words"  ? words(width)
                    : kind == "lstm" ? one_layer<nn::LSTM>(width)
                    : kind == "rnn"  ? one_layer<nn::RNN>(width)
                                     : one_layer<nn::GRU>(width);
  const Tensors weights = work.net.parameters();
  const auto step = compile([&](const Tensors& in) {
    const Tensor loss = work.loss(in);
    const Tensors gradients = grad(loss, weights);
    Tensors out{loss};
    for (std::size_t k = 0; k < weights.size(); ++k)
      out.push_back(assign(weights[k], weights[k] - gradients[k] * 0.01f));
    return out;
  });
  const Tensors in = kind == "words" ? Tensors{randint(0, kWords, {steps, batch}).compute(),
                                               randint(0, kWords, {steps, batch}).compute()}
                                     : Tensors{randn({steps, batch, width}).compute()};
  const double planning = step.plan(in).planning_ms();
  const int count = kind == "words" ? 10 : 60;
  for (int k = 0; k < 3; ++k) step(in)[0].item();
  std::vector<double> times;
  for (int k = 0; k < count; ++k) {
    const double start = now();
    step(in)[0].item();
    times.push_back(now() - start);
  }
  std::sort(times.begin(), times.end());
  std::printf(
      "%s steps %lld batch %lld width %lld on %s: planned in %.2f ms, step %.3f ms (least %.3f)\n",
      kind.c_str(), static_cast<long long>(steps), static_cast<long long>(batch),
      static_cast<long long>(width), where.c_str(), planning, times[times.size() / 2], times[0]);
}
