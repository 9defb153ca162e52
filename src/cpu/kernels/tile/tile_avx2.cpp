// The tile loops compiled for AVX2 with FMA and F16C.
#define TENON_SCALAR_ISA tile_avx2
#define TENON_TILE_TABLE tile_table_avx2
#include "cpu/kernels/tile/tile_loops.inc"
