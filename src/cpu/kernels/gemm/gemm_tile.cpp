// Chooses the kernel set.
#include "cpu/kernels/gemm/gemm_tile.h"

namespace tenon::cpu {

const KernelSet& kernel_set() {
  switch (best_isa()) {
#if defined(__x86_64__)
    case Isa::Amx:
    case Isa::Avx512Bf16:
      return fast_bf16_products() ? avx512bf16_kernels() : avx512_kernels();
    case Isa::Avx512:
      return avx512_kernels();
    case Isa::Avx2:
      return avx2_kernels();
#elif defined(__aarch64__)
    case Isa::Neon:
      return neon_kernels();
#endif
    default:
      return base_kernels();
  }
}

const KernelSet* block_kernel_set() {
#if defined(__x86_64__)
  if (best_isa() == Isa::Amx) return &amx_kernels();
#endif
  return nullptr;
}

}  // namespace tenon::cpu
