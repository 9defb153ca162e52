// A server of eight threads with training beside it, for a while: correct answers, constant memory.
// TENON_SOAK_SECONDS makes it longer (default 2).
#include <doctest/doctest.h>

#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/optim.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>

using namespace tenon;
using Floats = std::vector<float>;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_to_run() {
  const char* text = std::getenv("TENON_SOAK_SECONDS");
  return text == nullptr ? 2 : std::atof(text);
}

Tensor filled(const Shape& shape, float value) {
  return Tensor::from(Floats(static_cast<std::size_t>(shape.numel()), value), shape);
}

}  // namespace

TEST_CASE("soak: eight threads serve two networks while one of them is trained") {
  constexpr std::int64_t kIn = 24, kMiB = std::int64_t{1} << 20;
  clear_caches();
  const CacheStats before = cache_stats();
  set_cache_limit(2 * kMiB);
  const nn::AnyModule fixed = nn::Sequential(nn::Linear(kIn, 16), nn::Tanh(), nn::Linear(16, 4)),
                      trained = nn::Sequential(nn::Linear(kIn, 16), nn::ReLU(), nn::Linear(16, 4));
  const CompiledFunction serve =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{fixed(in[0])}; });
  const CompiledFunction live = compile([&](const std::vector<Tensor>& in) {
    const Tensor y = trained(in[0]);
    return std::vector<Tensor>{y, trained(in[0] * 1.0)};  // equal if both are from one step
  });
  // An answer depends on its sample alone, whatever else is in the batch.
  const Floats expected = fixed(filled({1, kIn}, 0.25f)).to_vector<float>();
  optim::Sgd sgd(trained, {.lr = 0.05});
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> wrong{0}, answers{0}, steps{0};

  std::thread training([&] {
    const Tensor x = filled({8, kIn}, 0.5f), y = filled({8, 4}, 1);
    while (!stop) sgd.step(mean(square(trained(x) - y))), ++steps;
  });
  std::vector<std::thread> servers;
  for (unsigned t = 0; t < 8; ++t)
    servers.emplace_back([&, t] {
      unsigned state = 12345 + t;
      while (!stop) {
        state = state * 1664525u + 1013904223u;
        const std::int64_t rows = 1 + (state >> 16) % 48;
        const Tensor x = filled({rows, kIn}, 0.25f);
        const Floats seen =
            t % 2 == 0 ? serve({x})[0].to_vector<float>() : fixed(x).to_vector<float>();
        for (std::size_t k = 0; k < seen.size(); ++k)
          wrong += std::abs(seen[k] - expected[k % 4]) > 1e-5f;
        const Outputs now = live({x});
        const Floats a = now[0].to_vector<float>(), b = now[1].to_vector<float>();
        for (std::size_t k = 0; k < a.size(); ++k) wrong += std::abs(a[k] - b[k]) > 1e-5f;
        ++answers;
      }
    });
  const auto wait = [](double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  wait(seconds_to_run() / 2);
  const std::int64_t half = runner_stats().memory_in_use;
  wait(seconds_to_run() / 2);
  const std::int64_t end = runner_stats().memory_in_use;
  stop = true;
  training.join();
  for (std::thread& server : servers) server.join();
  CHECK(wrong == 0);
  CHECK(answers > 8);
  CHECK(steps > 0);
  CHECK(end < half + 4 * kMiB);
  const CacheStats after = cache_stats();
  CHECK(after.programs.bytes + after.traces.bytes < 3 * kMiB);
  set_cache_limit(before.limit);
}
