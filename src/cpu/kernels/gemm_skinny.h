// Products of a few rows with a matrix stored by columns, as in serving one request: bound by
// reading that matrix once, so it is not packed.
#pragma once

#include "cpu/kernels/gemm_tile.h"

namespace tenon::cpu {

/// Whether gemm_skinny takes these operands: float32, both contiguous along the reduction, few
/// rows.
bool is_skinny(const GemmShape& shape, const Operand& a, const Operand& b, Math math);
/// As gemm(); batch is 1. workspace: skinny_floats floats.
void gemm_skinny(const GemmShape& shape, const Operand& a, const Operand& b, float* c,
                 std::int64_t ldc, const Epilogue& epilogue, void* workspace);
/// What gemm_skinny needs where it takes the operands, whose strides need not be known.
std::int64_t skinny_floats(const GemmShape& shape, Math math);

}  // namespace tenon::cpu
