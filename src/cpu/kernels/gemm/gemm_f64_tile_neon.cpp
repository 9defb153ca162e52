// Float64 tiles for aarch64.
#if defined(__aarch64__)
#include "cpu/kernels/gemm/gemm_f64_tile_impl.h"

namespace tenon::cpu {

const F64Tile& neon_f64_tile() {
  static const F64Tile tile = make_f64_tile<8, 2>();
  return tile;
}

}  // namespace tenon::cpu
#endif
