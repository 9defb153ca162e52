// Pooling loops for any CPU.
#include "cpu/kernels/gemm/gemm_vector_base.h"

#include "cpu/kernels/pool/pool2d_rows_impl.h"

namespace tenon::cpu {

const PoolRows& base_pool_rows() {
  static const PoolRows rows = make_pool_rows<Base>();
  return rows;
}

}  // namespace tenon::cpu
