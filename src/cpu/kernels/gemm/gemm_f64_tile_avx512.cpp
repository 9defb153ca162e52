// Float64 tiles for AVX-512.
#include "cpu/kernels/gemm/gemm_f64_tile_impl.h"

namespace tenon::cpu {

const F64Tile& avx512_f64_tile() {
  static const F64Tile tile = make_f64_tile<8, 8>();
  return tile;
}

}  // namespace tenon::cpu
