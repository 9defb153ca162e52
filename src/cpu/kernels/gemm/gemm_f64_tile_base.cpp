// Float64 tiles for any CPU.
#include "cpu/kernels/gemm/gemm_f64_tile_impl.h"

namespace tenon::cpu {

const F64Tile& base_f64_tile() {
  static const F64Tile tile = make_f64_tile<4, 2>();
  return tile;
}

}  // namespace tenon::cpu
