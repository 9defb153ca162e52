// Times single operations on the CPU that move or reduce against the order of memory, or compute in
// float64.
//
//   ./dev build all
//   build/bin/bench_ops_perf [rounds threads]
//
// A row: name, least microseconds of a call over all rounds. bench/peer_ops.py runs this program
// and PyTorch in turn and prints both with their ratio.
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

double now() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

int rounds = 30;

void time_of(const char* name, const std::function<Tensor(const Tensors&)>& body, Tensors inputs) {
  for (Tensor& x : inputs) x = x.eval();
  const CompiledFunction f = compile([&](const Tensors& in) { return Tensors{body(in)}; });
  double best = 1e30;
  for (int k = 0; k < rounds + 3; ++k) {
    const double start = now();
    const Outputs out = f(inputs);
    if (k >= 3) best = std::min(best, now() - start);
  }
  std::printf("%s\t%.1f\n", name, best);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) rounds = std::stoi(argv[1]);
  set_threads(argc > 2 ? std::stoi(argv[2]) : 2);
  const Tensor table = randn({1000, 1000}), places = randint(0, 1000, {1000, 1000}, DType::Int64);
  const Tensor some = randint(0, 1000, {500}, DType::Int64);
  time_of("gather axis 1 [1000,1000]", [](const Tensors& in) { return gather(in[0], 1, in[1]); },
          {table, places});
  time_of("gather axis 0 [1000,1000]", [](const Tensors& in) { return gather(in[0], 0, in[1]); },
          {table, places});
  time_of("index_select columns [1000,500]",
          [](const Tensors& in) { return index_select(in[0], 1, in[1]); }, {table, some});
  time_of("scatter_add axis 1 [1000,1000]",
          [](const Tensors& in) { return scatter_add(in[0], 1, in[1], in[0]); }, {table, places});
  time_of("softmax axis 0 [1000,1000]", [](const Tensors& in) { return softmax(in[0], 0); },
          {table});
  time_of("softmax axis 1 [1000,1000]", [](const Tensors& in) { return softmax(in[0], 1); },
          {table});
  time_of("argmax axis 0 [1000,1000]", [](const Tensors& in) { return argmax(in[0], 0); }, {table});
  time_of("argmax axis 1 [1000,1000]", [](const Tensors& in) { return argmax(in[0], 1); }, {table});
  time_of("sort axis 1 [1000,1000]", [](const Tensors& in) { return sort(in[0], 1).values; },
          {table});
  time_of("topk 5 of axis 1 [1000,1000]",
          [](const Tensors& in) { return topk(in[0], 5, 1).values; }, {table});
  time_of("pad [32,384]",
          [](const Tensors& in) {
            return pad(in[0], {1, 1, 1, 1});
          },
          {randn({32, 384})});
  const Tensor wide = cast(randn({512, 512}), DType::Float64);
  time_of("matmul float64 512", [](const Tensors& in) { return matmul(in[0], in[1]); },
          {wide, wide});
  time_of("matmul float64 512 transposed",
          [](const Tensors& in) { return matmul(in[0], transpose(in[1], 0, 1)); }, {wide, wide});
  time_of("matmul float32 512", [](const Tensors& in) { return matmul(in[0], in[1]); },
          {randn({512, 512}), randn({512, 512})});
  time_of("exp float64 [512,512]", [](const Tensors& in) { return exp(in[0]); }, {wide});
  time_of("tanh float64 [512,512]", [](const Tensors& in) { return tanh(in[0]); }, {wide});
  const auto embedding_gradient = [](const Tensors& in) {
    return grad(sum(square(index_select(in[0], 0, in[1]))), in[0]);
  };
  const Tensor picked = randint(0, 100000, {256}, DType::Int64);
  time_of("embedding gradient [100000,64] of 256", embedding_gradient,
          {randn({100000, 64}), picked});
  time_of("embedding gradient [100000,256] of 256", embedding_gradient,
          {randn({100000, 256}), picked});
  return 0;
}
