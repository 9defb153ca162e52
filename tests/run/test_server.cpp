// A server: batches of any size from many threads, and the memory it keeps. Longer runs:
// bench/server.cpp.
#include <doctest/doctest.h>

#include <tenon/eval.h>
#include <tenon/models.h>
#include <tenon/ops.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "run/known_plans.h"

using namespace tenon;

namespace {

using Floats = std::vector<float>;

/// Sets the limit while it lives, with empty caches before and after.
struct Limit {
  explicit Limit(std::int64_t bytes) { clear_caches(), set_cache_limit(bytes); }
  ~Limit() { set_cache_limit(before.limit), clear_caches(); }
  CacheStats before = cache_stats();
};

std::int64_t bytes_kept() {
  const CacheStats stats = cache_stats();
  return stats.programs.bytes + stats.traces.bytes;
}

}  // namespace

TEST_CASE(
    "server: eight threads, batches of 1 to 256: correct answers, few plans, bounded memory") {
  constexpr std::int64_t kMost = 256, kFeatures = 40, kClasses = 10, kMiB = std::int64_t{1} << 20;
  const Limit limit(8 * kMiB);
  const nn::AnyModule net = models::create("mlp:40-60-10");
  net.eval();
  const Floats data = rand({kMost, kFeatures}).to_vector<float>();
  const auto batch = [&](std::int64_t size) {
    return Tensor::from(Floats(data.begin(), data.begin() + size * kFeatures), {size, kFeatures});
  };
  const CompiledFunction serve =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0])}; });
  const Floats expected = serve({batch(kMost)})[0].to_vector<float>();
  const std::int64_t planned = runner_stats().programs_planned, rebound = programs_rebound();
  std::atomic<int> wrong{0}, over{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int k = 0; k < 150; ++k) {
        const auto size = static_cast<std::int64_t>(random() % kMost) + 1;
        const Floats scores = serve({batch(size)})[0].to_vector<float>();
        for (std::size_t c = 0; c < static_cast<std::size_t>(size * kClasses); ++c)
          wrong += std::fabs(scores[c] - expected[c]) > 1e-4f ? 1 : 0;
        over += bytes_kept() > 8 * kMiB + kMiB ? 1 : 0;  // entries in use may exceed the limit
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(over == 0);
  CHECK(runner_stats().programs_planned - planned < 40);  // of 1,200 calls of 250 sizes
  CHECK(programs_rebound() - rebound > 150);              // the others, once each
}

TEST_CASE("server: known graphs are forgotten when caches are cleared, and under a limit") {
  const Limit limit(std::int64_t{1} << 20);
  std::mt19937 random(3);
  for (int k = 0; k < 600; ++k) {
    // Graphs with different structure: a chain of this many ops, each size once.
    Tensor x = Tensor::from(Floats(1 + k % 7, 1), {1 + k % 7});
    for (unsigned depth = random() % 60; depth > 0; --depth)
      x = depth % 3 == 0 ? relu(x) : depth % 3 == 1 ? x * 2.0 : abs(x);
    CHECK(exp(x).to_vector<float>().size() == static_cast<std::size_t>(1 + k % 7));
  }
  CHECK(bytes_kept() <= (std::int64_t{1} << 20) * 9 / 8);
  clear_caches();
  CHECK(cache_stats().programs.count == 0);
  CHECK(bytes_kept() == 0);
}
