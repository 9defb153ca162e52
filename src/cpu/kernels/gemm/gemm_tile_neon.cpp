// Kernels for aarch64: tiles up to 12 x 8 and 6 x 16.
#if defined(__aarch64__)
#include "cpu/kernels/gemm/gemm_tile_impl.h"
#include "cpu/kernels/gemm/gemm_vector_neon.h"

namespace tenon::cpu {

const KernelSet& neon_kernels() {
  static const KernelSet set = make_kernels<Neon>();
  return set;
}

}  // namespace tenon::cpu
#endif
