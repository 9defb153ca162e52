// Caches stay under their limit whatever shapes come, and evicted entries are recomputed.
#include <doctest/doctest.h>

#include <tenon/compute.h>
#include <tenon/error.h>
#include <tenon/loops.h>
#include <tenon/ops.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "graph/node.h"
#include "run/caches.h"

using namespace tenon;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Tensor filled(const Shape& shape, float value) {
  return Tensor::from(std::vector<float>(static_cast<std::size_t>(shape.numel()), value), shape);
}

/// Sets the limit while it lives, with empty caches before and after.
struct Limit {
  explicit Limit(std::int64_t bytes) { clear_caches(), set_cache_limit(bytes); }
  ~Limit() { set_cache_limit(before.limit), clear_caches(); }
  CacheStats before = cache_stats();
};

/// Numbers that look random but are the same every time.
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
  CHECK(bytes_kept() <= 4 * kMiB + 16 * 1024);  // the newest one grows after room was made for it
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

TEST_CASE("bounded: least recently used entries are evicted, a function's last one stays") {
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

TEST_CASE("bounded: cleared caches are empty, and results in use stay") {
  const Limit limit(512 * kMiB);
  const CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{softmax(matmul(in[0], in[0]))};
  });
  const Outputs held = f({filled({40, 40}, 1)});
  exp(filled({7}, 0)).compute();
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

TEST_CASE("bounded: functions that live for a call leave nothing behind") {
  const Limit limit(512 * kMiB);
  const Tensor x = filled({5, 3}, 1);
  const auto call = [&x] {
    compile([](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{softmax(in[0] * 2.0), sum(exp(in[0]))};
    })({x});
  };
  for (int k = 0; k < 8; ++k) call();  // the number of plans kept per graph
  const std::int64_t settled = bytes_kept();
  for (int k = 0; k < 8; ++k) call();
  CHECK(bytes_kept() == settled);
}

TEST_CASE("bounded: outputs and addresses for a thousand numbers of runs do not accumulate") {
  const Limit limit(512 * kMiB);
  manual_seed(3);
  const CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0] + rand({8, 128})};
  });
  const std::int64_t before = runner_stats().memory_in_use;
  std::int64_t most = 0;
  for (int runs = 1; runs <= 1000; ++runs) {
    f.run_many(runs, {filled({1, 8, 128}, 1)});  // 4 KiB of outputs a run: 2 GiB in all
    most = std::max(most, runner_stats().memory_in_use - before);
  }
  CHECK(most < 32 * kMiB);
  CHECK(cache_stats().traces.bytes < 16 * kMiB);
  // A repeated call finds its outputs again.
  const Tensor x = filled({1, 8, 128}, 1);
  const void* place = f.run_many(999, {x})[0].node();
  CHECK(f.run_many(999, {x})[0].node() == place);
  clear_caches();
  CHECK(f.traced() == 0);
  CHECK(runner_stats().memory_in_use - before < kMiB);
}

TEST_CASE("bounded: of a thousand outputs held at once, few are kept for the next call") {
  const Limit limit(512 * kMiB);
  const CompiledFunction f =
      compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + 1.0}; });
  const Tensor x = filled({64, 256}, 1);
  const std::int64_t before = runner_stats().memory_in_use;
  {
    std::vector<Outputs> held;
    held.reserve(1000);
    for (int k = 0; k < 1000; ++k) held.push_back(f({x}));
    CHECK(runner_stats().memory_in_use - before > 60 * kMiB);
    CHECK(cache_stats().traces.bytes > 60 * kMiB);
  }
  const auto waiting = static_cast<std::int64_t>(2 * std::max(4, num_threads_by_default()) + 1);
  CHECK(runner_stats().memory_in_use - before < waiting * x.numel() * 4 + kMiB);
  CHECK(cache_stats().traces.bytes < waiting * x.numel() * 4 + kMiB);
}

TEST_CASE("bounded: arenas of simultaneous calls are kept for later calls, and cleared") {
  const Limit limit(512 * kMiB);
  const CompiledFunction f = compile([](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{sum(matmul(matmul(in[0], in[0]), in[0]))};
  });
  for (std::int64_t n : {16, 64, 128, 32, 8}) f({filled({n, n}, 0.1f)});
  const std::int64_t alone = cache_stats().arenas.bytes;
  CHECK(alone >= 128 * 128 * 4);
  CHECK(alone < kMiB);  // the largest arena serves all
  std::vector<std::thread> callers;
  for (int k = 0; k < 8; ++k)
    callers.emplace_back([&f] {
      for (int round = 0; round < 50; ++round) f({filled({128, 128}, 0.1f)});
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(cache_stats().arenas.bytes <= std::max(2, num_threads_by_default()) * alone);
  clear_caches();
  CHECK(cache_stats().arenas.bytes == 0);
}

TEST_CASE("bounded: evaluating plain numbers needs no plan") {
  const Tensor rate = variable(scalar(0.5), "rate"), w = variable(filled({4}, 1), "w");
  const std::int64_t before = runner_stats().programs_planned;
  for (int k = 0; k < 1000; ++k) {
    set_value(rate, scalar(1.0 / (k + 1)));
    CHECK(rate.item() == static_cast<float>(1.0 / (k + 1)));
  }
  CHECK(runner_stats().programs_planned == before);
  for (const DType dtype : {DType::Bool, DType::UInt8, DType::Int8, DType::Int32, DType::Int64,
                            DType::Float16, DType::BFloat16, DType::Float32, DType::Float64})
    for (const double number : {0.0, 1.0, 100.0, 0.1, 65536.1}) {
      const bool is_small = dtype == DType::UInt8 || dtype == DType::Int8 || dtype == DType::Bool;
      if (is_small && number > 100) continue;
      const Scalar value = is_floating(dtype) ? Scalar(number) : Scalar(std::int64_t(number));
      CHECK(full({1}, value, dtype).item() == full({2}, value, dtype)[0].item());
    }
}

TEST_CASE("bounded: the body of a loop counts like its program") {
  const Limit limit(64 * kMiB);
  const auto bytes_of = [](int products) {
    const std::int64_t before = bytes_kept();
    const auto step = [products](const Tensor& carry, const Tensor& x) {
      Tensor y = carry;
      for (int k = 0; k < products; ++k) y = matmul(y, x);
      return std::pair(y, y);
    };
    scan(step, filled({8, 8}, 0.1f), filled({5, 8, 8}, 0.1f)).first.compute();
    return bytes_kept() - before;
  };
  const std::int64_t few = bytes_of(2);
  CHECK(bytes_of(42) > few + std::int64_t{40} * 4096);
}

TEST_CASE("bounded: entries are evicted while other threads use the caches") {
  struct Kept final : CacheEntry {
    Kept() : CacheEntry(Kind::Program) { charge(64); }
    void leave(bool) override {}  // the owner keeps it, so the next search finds it again
  };
  const Limit limit(kMiB);
  std::vector<std::shared_ptr<Kept>> kept;
  for (int k = 0; k < 3000; ++k) enter(kept.emplace_back(std::make_shared<Kept>()));
  std::atomic<bool> stop{false};
  std::vector<std::thread> users;
  users.reserve(3);
  for (int t = 0; t < 3; ++t)
    users.emplace_back([&, t] {
      Sequence random{static_cast<std::uint64_t>(t + 1)};
      while (!stop)
        for (int k = 0; k < 64; ++k) kept[static_cast<std::size_t>(random.below(3000))]->touch();
    });
  for (int k = 0; k < 1500; ++k) {
    enter(std::make_shared<Kept>());  // advances the clock of uses
    set_cache_limit(0);
    set_cache_limit(kMiB);
  }
  stop = true;
  for (std::thread& user : users) user.join();
  CHECK(std::all_of(kept.begin(), kept.end(), [](const auto& k) { return k->used() != 0; }));
}
