// Masked products compiled for AVX2 with FMA.
#define TENON_MASKED_PRODUCTS avx2_masked_products
#include "cpu/kernels/conv/conv_small_rows.inc"
