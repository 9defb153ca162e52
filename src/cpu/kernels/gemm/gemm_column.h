// A matrix times a column is computed as a row times the transposed matrix: tiles have one row or
// more and at least a vector of columns.
#pragma once

#include "cpu/kernels/contract.h"

namespace tenon::cpu {

bool is_column(const GemmShape& shape);
/// The shape of the product that gemm_column() computes instead.
GemmShape row_of_column(const GemmShape& shape);
/// As gemm(), for such a shape; c is null or has contiguous elements.
void gemm_column(const Gemm& product);

}  // namespace tenon::cpu
