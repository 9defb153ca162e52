// The fused loops compiled for AVX2.
#define TENON_FUSED_LOOPS fused_loops_avx2
#include "cpu/kernels/tile_fused.inc"
