// Times single CPU operations that move or reduce across the memory order, or compute in float64.
//
//   ./dev build all
//   build/bin/bench_ops_perf [rounds threads]
//
// A row: name, minimum time of a call over all rounds in microseconds. bench/peer_ops.py runs this
// program and PyTorch in turn and prints both with their ratio.
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
  for (Tensor& x : inputs) x = x.compute();
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

// About one million elements: a matrix of numbers, its bool mask, indices, rows and classes.
void rearrangements(const Tensor& table, const Tensor& places, const Tensor& some) {
  const Tensor mask = table > 0;
  const Tensor flat = reshape(table, {1000000}), order = reshape(places, {1000000}) * 1000;
  const Tensor halves = randn({1000, 500}), row = randn({1000});
  const auto one = [](const char* name, Tensor (*body)(const Tensor&), const Tensor& x) {
    time_of(name, [body](const Tensors& in) { return body(in[0]); }, {x});
  };
  one(
      "flip axis 0 [1000,1000]", [](const Tensor& x) { return flip(x, {0}); }, table);
  one(
      "flip axis 1 [1000,1000]", [](const Tensor& x) { return flip(x, {1}); }, table);
  one(
      "roll both [1000,1000]",
      [](const Tensor& x) {
        return roll(x, {5, 7}, {0, 1});
      },
      table);
  one(
      "repeat [1000,1000] of [1000,500]",
      [](const Tensor& x) {
        return repeat(x, {1, 2});
      },
      halves);
  one(
      "repeat_interleave axis 1 [1000,1000]",
      [](const Tensor& x) { return repeat_interleave(x, 2, 1); }, halves);
  one(
      "pad [1000,1000] by 3",
      [](const Tensor& x) {
        return pad(x, {3, 3, 3, 3});
      },
      table);
  one(
      "transposed copy [1000,1000]", [](const Tensor& x) { return transpose(x, 0, 1); }, table);
  one(
      "permuted copy [100,100,100]",
      [](const Tensor& x) {
        return permute(x, {2, 0, 1});
      },
      reshape(table, {100, 100, 100}));
  one(
      "tril [1000,1000]", [](const Tensor& x) { return tril(x); }, table);
  one(
      "cumsum axis 0 [1000,1000]", [](const Tensor& x) { return cumsum(x, 0); }, table);
  one(
      "cumsum axis 1 [1000,1000]", [](const Tensor& x) { return cumsum(x, 1); }, table);
  one(
      "cumprod axis 1 [1000,1000]", [](const Tensor& x) { return cumprod(x, 1); }, table);
  one(
      "sort axis 0 [1000,1000]", [](const Tensor& x) { return sort(x, 0).values; }, table);
  one(
      "argsort of 1,000,000", [](const Tensor& x) { return argsort(x, 0); }, flat);
  one(
      "topk 5 of axis 0 [1000,1000]", [](const Tensor& x) { return topk(x, 5, 0).values; }, table);
  one(
      "topk 100 of 1,000,000", [](const Tensor& x) { return topk(x, 100, 0).values; }, flat);
  one(
      "one_hot [1000] of 1,000", [](const Tensor& x) { return one_hot(x, 1000); },
      randint(0, 1000, {1000}, DType::Int64));
  one(
      "sum axis 0 [1000,1000]", [](const Tensor& x) { return sum(x, {0}); }, table);
  one(
      "amax axis 0 [1000,1000]", [](const Tensor& x) { return amax(x, {0}); }, table);
  one(
      "var axis 0 [1000,1000]", [](const Tensor& x) { return var(x, {0}); }, table);
  one(
      "logsumexp axis 0 [1000,1000]", [](const Tensor& x) { return logsumexp(x, {0}); }, table);
  time_of("concat axis 1 [1000,1000]",
          [](const Tensors& in) {
            return concat({in[0], in[0]}, 1);
          },
          {halves});
  time_of("where [1000,1000]", [](const Tensors& in) { return where(in[0], in[1], in[2]); },
          {mask, table, row});
  time_of("index_select rows [500,1000]",
          [](const Tensors& in) { return index_select(in[0], 0, in[1]); }, {table, some});
  time_of("scatter_add axis 0 [1000,1000]",
          [](const Tensors& in) { return scatter_add(in[0], 0, in[1], in[0]); }, {table, places});
  time_of("scatter axis 1 [1000,1000]",
          [](const Tensors& in) { return scatter(in[0], 1, in[1], in[0]); }, {table, places});
  time_of("index_add rows [1000,1000] of 500",
          [](const Tensors& in) { return index_add(in[0], 0, in[1], slice(in[0], 0, 0, 500)); },
          {table, some});
  time_of("index_put of 1,000,000 places",
          [](const Tensors& in) { return in[0].index_put({in[1]}, in[2]); }, {flat, order, flat});
  time_of("index_put columns [1000,500]",
          [](const Tensors& in) {
            return in[0].index_put({Slice(), in[1]}, in[2]);
          },
          {table, some, halves});
  time_of("gradient of gather axis 1 [1000,1000]",
          [](const Tensors& in) { return grad(sum(gather(in[0], 1, in[1]) * in[0]), in[0]); },
          {table, places});
  time_of("gradient of index_select columns [1000,500]",
          [](const Tensors& in) { return grad(sum(square(index_select(in[0], 1, in[1]))), in[0]); },
          {table, some});
}

// Indexing by a mask reads values at the call, so these cases cannot be compiled.
void selection(const Tensor& table) {
  const Tensor mask = (table > 0).compute();
  double best = 1e30;
  for (int k = 0; k < rounds + 3; ++k) {
    const double start = now();
    const Tensor out = table[mask].compute();
    if (k >= 3) best = std::min(best, now() - start);
  }
  std::printf("masked selection [1000,1000]\t%.1f\n", best);
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
  rearrangements(table, places, some);
  selection(table.compute());
  return 0;
}
