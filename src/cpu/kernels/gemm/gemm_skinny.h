// Products of a few rows with a matrix stored by columns, as in serving one request. Memory-bound
// by reading the matrix once, so the matrix is not packed.
#pragma once

#include "cpu/kernels/gemm/gemm_tile.h"

namespace tenon::cpu {

/// True if gemm_skinny takes these operands: float32, both contiguous along the reduction, few
/// rows.
bool is_skinny(const GemmShape& shape, const Operand& a, const Operand& b, Math math);
/// As gemm(); batch is 1. workspace: skinny_floats floats.
void gemm_skinny(const Gemm& product);
/// The workspace of gemm_skinny for operands that it takes; their strides need not be known.
std::int64_t skinny_floats(const GemmShape& shape, Math math);

}  // namespace tenon::cpu
