// Masked products compiled for the baseline of the architecture.
#define TENON_MASKED_PRODUCTS base_masked_products
#include "cpu/kernels/conv/conv_small_rows.inc"
