// Pooling loops for AVX-512.
#include "cpu/kernels/gemm/gemm_vector_avx512.h"

#include "cpu/kernels/pool/pool2d_rows_impl.h"

namespace tenon::cpu {

const PoolRows& avx512_pool_rows() {
  static const PoolRows rows = make_pool_rows<Avx512>();
  return rows;
}

}  // namespace tenon::cpu
