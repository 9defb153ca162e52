// Kernels for AVX2 with FMA and F16C: tiles up to 6 x 16.
#include "cpu/kernels/gemm/gemm_tile_impl.h"
#include "cpu/kernels/gemm/gemm_vector_avx2.h"

namespace tenon::cpu {

const KernelSet& avx2_kernels() {
  static const KernelSet set = make_kernels<Avx2>();
  return set;
}

}  // namespace tenon::cpu
