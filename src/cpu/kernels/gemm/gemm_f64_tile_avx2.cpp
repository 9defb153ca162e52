// Float64 tiles for AVX2 with FMA.
#include "cpu/kernels/gemm/gemm_f64_tile_impl.h"

namespace tenon::cpu {

const F64Tile& avx2_f64_tile() {
  static const F64Tile tile = make_f64_tile<6, 4>();
  return tile;
}

}  // namespace tenon::cpu
