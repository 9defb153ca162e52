// The loops of formulas compiled for AVX2 with FMA.
#define TENON_SCALAR_ISA formula_avx2
#define TENON_FORMULA_LOOPS avx2_formula_loops
#include "cpu/kernels/formula/formula_loops.inc"
