// Swaps the operands, and passes each block of the row to the epilogue as a block of the column.
#include "cpu/kernels/gemm/gemm_column.h"

#include <utility>

namespace tenon::cpu {
namespace {

Operand transposed(const Operand& x) {
  Operand out = x;
  std::swap(out.row_stride, out.col_stride);
  return out;
}

void transposed_epilogue(void* context, const ResultBlock& block) {
  const Epilogue& own = *static_cast<const Epilogue*>(context);
  const Rectangle& row = block.place;
  own.fn(own.ctx, {block.worker, {row.batch, row.col0, row.col1, 0, 1}, block.data, 1});
}

}  // namespace

bool is_column(const GemmShape& shape) { return shape.n == 1 && shape.m > 1 && shape.batch == 1; }

GemmShape row_of_column(const GemmShape& shape) {
  GemmShape out = shape;
  std::swap(out.m, out.n);
  return out;
}

void gemm_column(const Gemm& g) {
  Gemm row = g;
  row.shape = row_of_column(g.shape);
  row.a = transposed(g.b), row.b = transposed(g.a);
  row.ldc = row.shape.n;
  Epilogue own = g.epilogue;
  row.epilogue = {};
  if (own.fn != nullptr) row.epilogue.fn = transposed_epilogue, row.epilogue.ctx = &own;
  gemm(row);
}

}  // namespace tenon::cpu
