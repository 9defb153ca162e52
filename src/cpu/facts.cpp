// Facts about the processor as plain strings, for the code outside cpu/, which may include
// cpu/cpu.h only.
#include "cpu/cpu.h"
#include "cpu/kernels/contract.h"
#include "cpu/kernels/isa.h"

#if defined(__linux__)
#include <unistd.h>
#endif

namespace tenon::cpu {

namespace {

std::vector<std::int64_t> caches() {
  std::vector<std::int64_t> sizes;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  for (const int level : {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE}) {
    const long bytes = sysconf(level);
    if (bytes <= 0) break;
    sizes.push_back(bytes);
  }
#endif
  return sizes;
}

}  // namespace

Facts facts() {
  const CpuInfo info = cpu_info();
  return {info.model, info.features, name(hardware_isa()), name(best_isa()), caches()};
}

double peak_flops(bool bf16, int threads) {
  return measure_fma_peak(bf16 ? Math::Bf16 : Math::F32, threads);
}

}  // namespace tenon::cpu
