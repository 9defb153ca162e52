// The loops of formulas compiled for the baseline of the architecture.
#define TENON_SCALAR_ISA formula_base
#define TENON_FORMULA_LOOPS base_formula_loops
#include "cpu/kernels/formula/formula_loops.inc"
