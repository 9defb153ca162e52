// The tile loops compiled for AVX-512.
#define TENON_SCALAR_ISA tile_avx512
#define TENON_TILE_TABLE tile_table_avx512
#include "cpu/kernels/tile/tile_loops.inc"
