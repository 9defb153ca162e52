// Float64 matrix product: for checks, small statistics and linear algebra, not for training's inner
// loop.
//
// Rows of the result are the chunks; B is copied, a cache-sized block at a time, into rows of kCols
// contiguous columns that the compiler's own vectors run over.
#include <algorithm>

#include "base/thread_pool.h"
#include "cpu/kernels/contract.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kRows = 32, kCols = 64, kSteps = 64;

struct Matrix {
  const double* data;
  std::int64_t row_stride, col_stride;
};

Matrix batch_of(const Operand& x, std::int64_t batch) {
  const std::int64_t offset =
      x.batch_offsets != nullptr ? x.batch_offsets[batch] : batch * x.batch_stride;
  return {static_cast<const double*>(x.data) + offset, x.row_stride, x.col_stride};
}

// Rows [i0, i1) of c in columns [j0, j0 + cols).
void multiply_block(const Matrix& a, const Matrix& b, double* c, std::int64_t ldc, std::int64_t i0,
                    std::int64_t i1, std::int64_t j0, std::int64_t cols, std::int64_t k) {
  double sums[kRows][kCols] = {};
  double panel[kSteps][kCols] = {};
  for (std::int64_t k0 = 0; k0 < k; k0 += kSteps) {
    const std::int64_t steps = std::min(kSteps, k - k0);
    for (std::int64_t s = 0; s < steps; ++s) {
      const double* row = b.data + (k0 + s) * b.row_stride + j0 * b.col_stride;
      for (std::int64_t j = 0; j < cols; ++j) panel[s][j] = row[j * b.col_stride];
    }
    for (std::int64_t i = i0; i < i1; ++i) {
      double* sum = sums[i - i0];
      const double* row = a.data + i * a.row_stride + k0 * a.col_stride;
      for (std::int64_t s = 0; s < steps; ++s) {
        const double value = row[s * a.col_stride];
        for (std::int64_t j = 0; j < kCols; ++j) sum[j] += value * panel[s][j];
      }
    }
  }
  for (std::int64_t i = i0; i < i1; ++i) std::copy_n(sums[i - i0], cols, c + i * ldc + j0);
}

}  // namespace

void gemm_f64(const GemmShape& shape, const Operand& a, const Operand& b, double* c,
              std::int64_t ldc, std::int64_t c_batch_stride) {
  if (shape.batch <= 0 || shape.m <= 0 || shape.n <= 0) return;
  const std::int64_t blocks = (shape.m + kRows - 1) / kRows;
  parallel_for(shape.batch * blocks, [&](std::int64_t chunk, int) {
    const std::int64_t batch = chunk / blocks, i0 = chunk % blocks * kRows,
                       i1 = std::min(shape.m, i0 + kRows);
    const Matrix x = batch_of(a, batch), y = batch_of(b, batch);
    for (std::int64_t j0 = 0; j0 < shape.n; j0 += kCols) {
      multiply_block(x, y, c + batch * c_batch_stride, ldc, i0, i1, j0,
                     std::min(kCols, shape.n - j0), shape.k);
    }
  });
}

}  // namespace tenon::cpu
