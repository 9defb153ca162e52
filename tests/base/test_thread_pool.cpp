// The thread pool: every chunk runs once, worker indices are in range and never shared; nested and
// simultaneous calls, exceptions, changing thread counts.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

using namespace tenon;

namespace {

struct Threads {
  int before = num_threads();
  explicit Threads(int count) { set_num_threads(count); }
  ~Threads() { set_num_threads(before); }
};

}  // namespace

TEST_CASE("parallel_for runs every chunk once, whatever the number of threads") {
  for (const int count : {1, 2, 3, 8}) {
    const Threads threads(count);
    for (const std::int64_t chunks : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(chunks));
      std::atomic<bool> in_range{true};
      parallel_for(chunks, [&](std::int64_t chunk, int worker) {
        seen[static_cast<std::size_t>(chunk)]++;
        if (worker < 0 || worker >= count) in_range = false;
      });
      CHECK(in_range);
      for (const std::atomic<int>& times : seen) REQUIRE(times == 1);
    }
  }
}

TEST_CASE("a worker index is held by one thread at a time") {
  const Threads threads(4);
  std::vector<std::atomic<int>> busy(4);
  std::atomic<bool> shared{false};
  for (int repeat = 0; repeat < 50; ++repeat) {
    parallel_for(40, [&](std::int64_t, int worker) {
      if (busy[static_cast<std::size_t>(worker)].fetch_add(1) != 0) shared = true;
      std::this_thread::yield();
      busy[static_cast<std::size_t>(worker)].fetch_sub(1);
    });
  }
  CHECK(!shared);
}

TEST_CASE("writes of chunks are visible after the call") {
  const Threads threads(4);
  std::vector<std::int64_t> values(1000);
  for (std::int64_t repeat = 1; repeat <= 200; ++repeat) {
    parallel_for(
        1000, [&](std::int64_t chunk, int) { values[static_cast<std::size_t>(chunk)] += chunk; });
  }
  for (std::int64_t i = 0; i < 1000; ++i) REQUIRE(values[static_cast<std::size_t>(i)] == 200 * i);
}

TEST_CASE("a nested call runs inline under its worker's index") {
  const Threads threads(3);
  std::atomic<int> runs{0};
  std::atomic<bool> same{true};
  parallel_for(10, [&](std::int64_t, int outer) {
    const std::thread::id self = std::this_thread::get_id();
    parallel_for(5, [&](std::int64_t, int inner) {
      if (inner != outer || std::this_thread::get_id() != self) same = false;
      ++runs;
    });
  });
  CHECK(runs == 50);
  CHECK(same);
}

TEST_CASE("a nested call uses no more threads than its chunk has set") {
  const Threads threads(4);
  std::atomic<bool> inside{true}, restored{true};
  std::atomic<int> beyond{0};  // chunks on workers beyond the lowered number
  parallel_for(40, [&](std::int64_t, int worker) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(1));  // gives the other workers time to start
    {
      const ThreadCount one(1);
      if (worker > 0) ++beyond;
      parallel_for(3, [&](std::int64_t, int nested) {
        if (nested >= num_threads()) inside = false;
      });
    }
    parallel_for(3, [&](std::int64_t, int nested) {
      if (nested != worker) restored = false;
    });
  });
  CHECK(beyond > 0);
  CHECK(inside);
  CHECK(restored);
}

TEST_CASE("more simultaneous callers than the pool has slots") {
  const Threads threads(3);
  std::atomic<std::int64_t> total{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 24; ++caller) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        std::int64_t sums[16] = {};
        parallel_for(16, [&](std::int64_t chunk, int) { sums[chunk] = chunk; });
        for (const std::int64_t sum : sums) total += sum;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(total == 24 * 50 * 120);
}

TEST_CASE("an exception reaches the caller after all chunks have ended, the lowest chunk's first") {
  const Threads threads(3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::atomic<int> runs{0};
    std::string message;
    try {
      parallel_for(30, [&](std::int64_t chunk, int) {
        ++runs;
        if (chunk % 10 == 3) throw std::runtime_error(std::to_string(chunk));
      });
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    REQUIRE(runs == 30);
    REQUIRE(message == "3");
  }
  std::atomic<int> runs{0};
  parallel_for(8, [&](std::int64_t, int) { ++runs; });
  CHECK(runs == 8);
}

TEST_CASE("the number of threads may change between calls, and each thread has its own") {
  const Threads threads(1);
  for (const int count : {4, 1, 6, 2, 5}) {
    set_num_threads(count);
    std::thread([] {
      CHECK(num_threads() == available_cpus());
      set_num_threads(3);
    }).join();
    CHECK(num_threads() == count);
    std::atomic<int> highest{0};
    std::atomic<bool> told{true};
    parallel_for(100, [&](std::int64_t, int worker) {
      if (num_threads() != count) told = false;
      int seen = highest;
      while (worker > seen && !highest.compare_exchange_weak(seen, worker)) {
      }
    });
    CHECK(highest < count);
    CHECK(told);
  }
  {
    const ThreadCount inner(2);
    CHECK(num_threads() == 2);
  }
  CHECK(num_threads() == 5);
  CHECK(set_num_threads(0) == 5);
  CHECK(num_threads() == available_cpus());
}

TEST_CASE("sleeping workers are woken") {
  const Threads threads(2);
  std::atomic<int> helped{0};
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    parallel_for(2, [&](std::int64_t, int worker) {
      if (worker != 0) ++helped;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
  }
  CHECK(helped > 0);
}

TEST_CASE("available_cpus is positive and no more than the machine has") {
  CHECK(available_cpus() >= 1);
  CHECK(available_cpus() <= static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

TEST_CASE("inside OnlyThread calls run inline as worker 0; afterwards they use all workers again") {
  const Threads threads(4);
  std::atomic<bool> alone{true}, restored{true};
  parallel_for(40, [&](std::int64_t, int worker) {
    {
      const OnlyThread only;
      if (num_threads() != 1) alone = false;
      const std::thread::id mine = std::this_thread::get_id();
      parallel_for(5, [&](std::int64_t, int nested) {
        if (nested != 0 || std::this_thread::get_id() != mine) alone = false;
        const OnlyThread again;
        if (num_threads() != 1) alone = false;
      });
      if (num_threads() != 1) alone = false;
    }
    if (num_threads() != 4) restored = false;
    parallel_for(3, [&](std::int64_t, int nested) {
      if (nested != worker) restored = false;
    });
  });
  CHECK(alone);
  CHECK(restored);
  const OnlyThread only;
  std::atomic<bool> inline_here{true};
  const std::thread::id mine = std::this_thread::get_id();
  parallel_for(100, [&](std::int64_t, int worker) {
    if (worker != 0 || std::this_thread::get_id() != mine) inline_here = false;
  });
  CHECK(inline_here);
}
