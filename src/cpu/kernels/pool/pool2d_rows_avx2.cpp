// Pooling loops for AVX2.
#include "cpu/kernels/gemm/gemm_vector_avx2.h"

#include "cpu/kernels/pool/pool2d_rows_impl.h"

namespace tenon::cpu {

const PoolRows& avx2_pool_rows() {
  static const PoolRows rows = make_pool_rows<Avx2>();
  return rows;
}

}  // namespace tenon::cpu
