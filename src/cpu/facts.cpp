// What the processor is, told to the rooms above in plain strings: they may include cpu/cpu.h only.
#include "cpu/cpu.h"
#include "cpu/kernels/contract.h"
#include "cpu/kernels/isa.h"

namespace tenon::cpu {

Facts facts() {
  const CpuInfo info = cpu_info();
  return {info.model, info.features, name(hardware_isa()), name(best_isa())};
}

double peak_flops(bool bf16, int threads) {
  return measure_fma_peak(bf16 ? Math::Bf16 : Math::F32, threads);
}

}  // namespace tenon::cpu
