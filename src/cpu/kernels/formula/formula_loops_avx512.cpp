// The loops of formulas compiled for AVX-512.
#define TENON_SCALAR_ISA formula_avx512
#define TENON_FORMULA_LOOPS avx512_formula_loops
#include "cpu/kernels/formula/formula_loops.inc"
