// Caches: what is kept stays under its limit whatever shapes come, and what goes is made again.
#include <doctest/doctest.h>

#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/ops.h>

#include <cstdint>
#include <vector>

using namespace tenon;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Tensor filled(const Shape& shape, float value) {
  return Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel()), value), shape);
}

/// The limit while it lives, with caches empty before and after.
struct Limit {
  explicit Limit(std::int64_t bytes) { clear_caches(), set_cache_limit(bytes); }
  ~Limit() { set_cache_limit(before.limit), clear_caches(); }
  CacheStats before = cache_stats();
};

/// Numbers that look random, the same every time.
struct Sequence {
  std::uint64_t state = 1;
  std::int64_t below(std::int64_t end) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>(state >> 33) % end;
  }
};

std::int64_t bytes_kept() {
  const CacheStats stats = cache_stats();
  return stats.programs.bytes + stats.traces.bytes;
}

}  // namespace

TEST_CASE("bounded: a thousand shapes through one compiled function") {
  const Limit limit(4 * kMiB);
  const Tensor w = variable(filled({64, 64}, 0.01f), "w");
  const CompiledFunction f = compile([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{matmul(relu(matmul(in[0], w)), w)};
  });
  const std::int64_t before = runner_stats().memory_in_use;
  for (int round = 0; round < 2; ++round)
    for (std::int64_t rows = 1; rows <= 500; ++rows) {
      const Outputs out = f({filled({rows, 64}, 1)});
      if (rows % 100 == 0) CHECK(out[0].to_vector<float>()[0] == doctest::Approx(0.4096));
    }
  CHECK(bytes_kept() <= 4 * kMiB);
  CHECK(f.traced() > 1);
  CHECK(f.traced() < 500);
  CHECK(cache_stats().arenas.bytes < 4 * kMiB);  // one for all shapes
  CHECK(runner_stats().memory_in_use - before < 8 * kMiB);
}

TEST_CASE("bounded: ever-changing shapes, evaluated and compiled, reach a steady state") {
  const Limit limit(2 * kMiB);
  const CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{sum(in[0] * 2.0), in[0] + 1.0};
  });
  Sequence random;
  int wrong = 0;
  std::int64_t after_some = 0;
  for (int k = 0; k < 6000; ++k) {
    const Shape shape{1 + random.below(100), 1 + random.below(100)};
    const auto count = static_cast<double>(shape.numel());
    const Tensor x = filled(shape, 1);
    if (k % 2 == 0)
      wrong += f({x})[0].item() != 2 * count;
    else
      wrong += sum(x + 1.0).item() != 2 * count;
    wrong += bytes_kept() > 2 * kMiB + kMiB / 8;  // outputs come after their trace
    if (k == 2000) after_some = runner_stats().memory_in_use;
  }
  CHECK(wrong == 0);
  CHECK(runner_stats().memory_in_use < after_some + kMiB);
}

TEST_CASE("bounded: what was used least recently goes, and what a function ran last stays") {
  const Limit limit(512 * kMiB);
  const CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{exp(in[0]), in[0] * in[0]};
  });
  const CompiledFunction g =
      compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + 3.0}; });
  for (std::int64_t n : {3, 4, 5, 6}) f({filled({n}, 1)});
  g({filled({9}, 1)});
  CHECK(f.traced() == 4);
  const CacheStats all = cache_stats();
  CHECK(all.traces.count == 5);
  f({filled({3}, 1)});
  set_cache_limit(all.traces.bytes * 3 / 5);
  CHECK(f.traced() < 4);
  const std::int64_t planned = runner_stats().programs_planned;
  f({filled({3}, 1)}), g({filled({9}, 1)});
  CHECK(runner_stats().programs_planned == planned);
  set_cache_limit(0);
  CHECK(f.traced() == 1);
  CHECK(g.traced() == 1);
  f({filled({3}, 1)}), g({filled({9}, 1)});
  CHECK(runner_stats().programs_planned == planned);
  CHECK_THROWS_AS(set_cache_limit(-1), ValueError);
}

TEST_CASE("bounded: cleared caches hold nothing, and results that are held stay") {
  const Limit limit(512 * kMiB);
  const CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{softmax(matmul(in[0], in[0]))};
  });
  const Outputs held = f({filled({40, 40}, 1)});
  exp(filled({7}, 0)).eval();
  clear_caches();
  const CacheStats stats = cache_stats();
  CHECK(stats.programs.count == 0);
  CHECK(stats.traces.count == 1);  // of what is held
  CHECK(stats.arenas.bytes == 0);
  CHECK(f.traced() == 0);
  CHECK(held[0].to_vector<float>()[0] == doctest::Approx(1.0 / 40));
  CHECK(f({filled({40, 40}, 2)})[0].to_vector<float>()[0] == doctest::Approx(1.0 / 40));
  CHECK(f.traced() == 1);
}
