// The fused loops compiled for the baseline.
#define TENON_FUSED_LOOPS fused_loops_base
#include "cpu/kernels/tile_fused.inc"
