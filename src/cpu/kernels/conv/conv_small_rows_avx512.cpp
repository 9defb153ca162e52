// Masked products compiled for AVX-512.
#define TENON_MASKED_PRODUCTS avx512_masked_products
#include "cpu/kernels/conv/conv_small_rows.inc"
