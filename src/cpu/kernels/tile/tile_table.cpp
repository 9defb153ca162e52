// Chooses the table of tile loops at run time.
#include "cpu/kernels/tile/tile_table.h"

#include "cpu/kernels/isa.h"

namespace tenon::cpu {

const TileTable& tile_table() {
#if defined(__x86_64__) || defined(__i386__)
  switch (best_isa()) {
    case Isa::Avx2:
      return tile_table_avx2();
    case Isa::Avx512:
    case Isa::Avx512Bf16:
    case Isa::Amx:
      return tile_table_avx512();
    default:
      break;
  }
#endif
  return tile_table_base();
}

}  // namespace tenon::cpu
