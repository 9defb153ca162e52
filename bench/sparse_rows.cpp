// Times a training step of a sparse embedding: 10^6 rows of 64 float32, 256 indices, two threads.
// bench/peer_sparse_rows.py is the same step in PyTorch.
//
// build/bin/bench_sparse_rows, of './dev build all'. Arguments: rows (default 1000000), columns
// (64), indices (256), steps (200). Rows: milliseconds of the median step.
#include <tenon/compute.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

using namespace tenon;

namespace {

double median_ms(int times, const std::function<void()>& work) {
  std::vector<double> all;
  for (int k = 0; k < times; ++k) {
    const auto start = std::chrono::steady_clock::now();
    work();
    synchronize();
    all.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

struct Sizes {
  std::int64_t rows, columns, indices;
  int steps;
};

void time_step(const std::string& optimizer, bool sparse, const Sizes& sizes) {
  const nn::Embedding table(sizes.rows, sizes.columns, {.sparse = sparse});
  const auto rule = optim::create(optimizer, table, {.lr = 0.01});
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(sizes.indices));
  std::uint64_t state = 1;
  const auto batch = [&] {
    for (std::int64_t& number : numbers) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      number = static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(sizes.rows));
    }
    return Tensor::from(numbers, {sizes.indices});
  };
  const auto loss = [&](const Tensor& index) { return sum(square(table(index))); };
  const CompiledFunction compiled = compile([&](const std::vector<Tensor>& in) {
    const Tensor value = loss(in[0]);
    std::vector<Tensor> out = rule->updates(grad(value, rule->parameters()));
    out.push_back(value);
    return out;
  });
  for (int k = 0; k < 5; ++k) rule->step(loss(batch())), compiled({batch()});
  const double step = median_ms(sizes.steps, [&] { rule->step(loss(batch())); }),
               once = median_ms(sizes.steps, [&] { compiled({batch()}); });
  std::printf("%-12s %-7s %10.3f %14.3f\n", optimizer.c_str(), sparse ? "sparse" : "dense", step,
              once);
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int k, std::int64_t usual) {
    return argc > k ? std::int64_t{std::atoll(argv[k])} : usual;
  };
  const Sizes sizes{argument(1, 1000000), argument(2, 64), argument(3, 256),
                    static_cast<int>(argument(4, 200))};
  set_threads(2);
  std::printf("%-12s %-7s %10s %14s\n", "optimizer", "", "step() ms", "compiled ms");
  for (const char* optimizer : {"sgd", "adagrad", "sparse_adam"}) time_step(optimizer, true, sizes);
  const Sizes few{sizes.rows, sizes.columns, sizes.indices, std::min(sizes.steps, 20)};
  for (const char* optimizer : {"sgd", "adam"}) time_step(optimizer, false, few);
  return 0;
}
