// Pooling loops for aarch64.
#if defined(__aarch64__)
#include "cpu/kernels/gemm/gemm_vector_neon.h"

#include "cpu/kernels/pool/pool2d_rows_impl.h"

namespace tenon::cpu {

const PoolRows& neon_pool_rows() {
  static const PoolRows rows = make_pool_rows<Neon>();
  return rows;
}

}  // namespace tenon::cpu
#endif
