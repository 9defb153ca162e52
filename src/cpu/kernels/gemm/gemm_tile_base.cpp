// Kernels for any CPU: tiles up to 6 x 4 and 5 x 8.
#include "cpu/kernels/gemm/gemm_tile_impl.h"
#include "cpu/kernels/gemm/gemm_vector_base.h"

namespace tenon::cpu {

const KernelSet& base_kernels() {
  static const KernelSet set = make_kernels<Base>();
  return set;
}

}  // namespace tenon::cpu
