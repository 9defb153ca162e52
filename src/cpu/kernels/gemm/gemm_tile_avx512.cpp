// Kernels for AVX-512 (with or without its bfloat16 products): tiles up to 14 x 32.
#include "cpu/kernels/gemm/gemm_vector_avx512.h"

#include "cpu/kernels/gemm/gemm_tile_impl.h"

namespace tenon::cpu {

const KernelSet& avx512_kernels() {
  static const KernelSet set = make_kernels<Avx512>();
  return set;
}

const KernelSet& avx512bf16_kernels() {
  static const KernelSet set = make_kernels<Avx512Bf16>();
  return set;
}

}  // namespace tenon::cpu
