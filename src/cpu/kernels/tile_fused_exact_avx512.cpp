// The fused loops compiled for AVX-512.
#define TENON_FUSED_LOOPS fused_loops_avx512
#include "cpu/kernels/tile_fused.inc"
