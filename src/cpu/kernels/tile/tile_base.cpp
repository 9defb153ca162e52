// The tile loops compiled for the baseline of the architecture.
#define TENON_SCALAR_ISA tile_base
#define TENON_TILE_TABLE tile_table_base
#include "cpu/kernels/tile/tile_loops.inc"
