// Counts of plans and runs, for runner_stats().
#include "run/counts.h"

#include <atomic>
#include <cstdint>

#include <tenon/compute.h>

#include "device/host_pool.h"

namespace tenon {
namespace {

// Counters since the start, over all threads.
struct Counts {
  std::atomic<std::int64_t> planned{0}, run{0};
  std::atomic<double> planning_ms{0};
};
Counts& counts() {
  static Counts* const instance = new Counts;
  return *instance;
}

}  // namespace

void count_planned(const Program& program) {
  counts().planned.fetch_add(1, std::memory_order_relaxed);
  counts().planning_ms.fetch_add(program.planning_ms, std::memory_order_relaxed);
}

void count_run() { counts().run.fetch_add(1, std::memory_order_relaxed); }

RunnerStats runner_stats() {
  const PoolStats pool = host_pool_stats();
  return {counts().planned.load(std::memory_order_relaxed),
          counts().run.load(std::memory_order_relaxed),
          counts().planning_ms.load(std::memory_order_relaxed), pool.peak, pool.in_use};
}

}  // namespace tenon
