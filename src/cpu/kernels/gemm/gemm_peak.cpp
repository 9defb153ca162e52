// Measures the multiply-add peak of this machine, the reference for efficiencies.
#include <algorithm>
#include <chrono>

#include "base/thread_pool.h"
#include "cpu/kernels/gemm/gemm_plan.h"

namespace tenon::cpu {

double measure_fma_peak(Math math, int threads) {
  const GemmShape shape{1, 1024, 1024, 1024};
  const KernelSet& kernels = gemm_kernels(shape, math);
  const bool pairs = kernels.pairs && math == Math::Bf16;
  const ThreadCount count(threads);
  double best = 0;
  for (int repeat = 0; repeat < 8; ++repeat) {
    double flop[1024] = {};
    const auto start = std::chrono::steady_clock::now();
    parallel_for(threads,
                 [&](std::int64_t chunk, int) { flop[chunk] = kernels.burn(100000, pairs); });
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    double total = 0;
    for (int chunk = 0; chunk < threads; ++chunk) total += flop[chunk];
    best = std::max(best, total / time.count());
  }
  return best;
}

}  // namespace tenon::cpu
