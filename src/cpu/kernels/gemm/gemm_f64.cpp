// Float64 matrix product: for checks, statistics and linear algebra.
//
// Chunks are blocks of the result. For each chunk and cache-sized piece of the reduction, A is
// packed by rows of a tile and B by its columns. Both are padded with zeros, so that every tile is
// whole.
#include <algorithm>

#include "base/thread_pool.h"
#include "cpu/kernels/contract.h"
#include "cpu/kernels/gemm/gemm_f64_tile.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kF64Rows = 96, kF64Cols = 256, kF64Steps = 128;

struct Matrix {
  const double* data;
  std::int64_t row_stride, col_stride;
};

Matrix batch_of(const Operand& x, std::int64_t batch) {
  const std::int64_t offset =
      x.batch_offsets != nullptr ? x.batch_offsets[batch] : batch * x.batch_stride;
  return {static_cast<const double*>(x.data) + offset, x.row_stride, x.col_stride};
}

/// to[step * width + i] = from[step * step_stride + i * stride] for i < count, zero up to width.
void pack_f64(const double* from, std::int64_t step_stride, std::int64_t stride, std::int64_t steps,
              std::int64_t count, std::int64_t width, double* to) {
  if (count < width) std::fill_n(to, steps * width, 0.0);
  if (stride == 1) {
    for (std::int64_t s = 0; s < steps; ++s)
      std::copy_n(from + s * step_stride, count, to + s * width);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t s = 0; s < steps; ++s) to[s * width + i] = from[s * step_stride + i * stride];
}

struct F64Block {
  std::int64_t row0, row1, col0, col1;
};

// Steps [k0, k0 + steps) of the reduction: overwrites the block of c if k0 is 0, otherwise adds to
// it.
void multiply_steps(const F64Tile& tile, const Matrix& a, const Matrix& b, double* c,
                    std::int64_t ldc, const F64Block& block, std::int64_t k0, std::int64_t steps) {
  alignas(64) double rows[kF64Rows * kF64Steps];
  alignas(64) double columns[kMaxF64Cols * kF64Steps];
  alignas(64) double sums[kMaxF64Rows * kMaxF64Cols];
  const std::int64_t height = tile.rows, width = tile.cols;
  for (std::int64_t i = block.row0; i < block.row1; i += height)
    pack_f64(a.data + i * a.row_stride + k0 * a.col_stride, a.col_stride, a.row_stride, steps,
             std::min(height, block.row1 - i), height, rows + (i - block.row0) * steps);
  for (std::int64_t j = block.col0; j < block.col1; j += width) {
    const std::int64_t cols = std::min(width, block.col1 - j);
    pack_f64(b.data + k0 * b.row_stride + j * b.col_stride, b.row_stride, b.col_stride, steps, cols,
             width, columns);
    for (std::int64_t i = block.row0; i < block.row1; i += height) {
      tile.multiply(steps, rows + (i - block.row0) * steps, columns, sums);
      const std::int64_t end = std::min(height, block.row1 - i);
      for (std::int64_t r = 0; r < end; ++r) {
        double* to = c + (i + r) * ldc + j;
        const double* from = sums + r * width;
        if (k0 == 0) {
          std::copy_n(from, cols, to);
        } else {
          for (std::int64_t n = 0; n < cols; ++n) to[n] += from[n];
        }
      }
    }
  }
}

// A matrix times a vector reads each element once, so nothing is packed. y[i] is the sum over k of
// m(i, k) v[k]. The order of the sums depends on the sizes and strides alone.
struct MatrixTimesVector {
  Matrix m, v;  // v by its row_stride
  std::int64_t steps = 0;

  double dot(std::int64_t row) const {
    constexpr int kLanes = 8;
    const double *x = m.data + row * m.row_stride, *y = v.data;
    double lanes[kLanes] = {}, sum = 0;
    std::int64_t k = 0;
    for (; k + kLanes <= steps; k += kLanes)
      for (int i = 0; i < kLanes; ++i) lanes[i] += x[k + i] * y[k + i];
    for (const double lane : lanes) sum += lane;
    for (; k < steps; ++k) sum += x[k] * y[k];
    return sum;
  }

  // Rows [row0, row1), at most kF64Cols.
  void columns(std::int64_t row0, std::int64_t row1, double* out, std::int64_t stride) const {
    double sums[kF64Cols] = {};
    const std::int64_t rows = row1 - row0;
    for (std::int64_t k = 0; k < steps; ++k) {
      const double* x = m.data + row0 * m.row_stride + k * m.col_stride;
      const double y = v.data[k * v.row_stride];
      if (m.row_stride == 1) {
        for (std::int64_t i = 0; i < rows; ++i) sums[i] += x[i] * y;
      } else {
        for (std::int64_t i = 0; i < rows; ++i) sums[i] += x[i * m.row_stride] * y;
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) out[i * stride] = sums[i];
  }

  void run(std::int64_t rows, double* out, std::int64_t stride) const {
    const bool by_rows = m.col_stride == 1 && v.row_stride == 1;
    const std::int64_t block = by_rows ? 16 : kF64Cols;
    parallel_for((rows + block - 1) / block, [&](std::int64_t chunk, int) {
      const std::int64_t row0 = chunk * block, row1 = std::min(rows, row0 + block);
      if (!by_rows) return columns(row0, row1, out + row0 * stride, stride);
      for (std::int64_t i = row0; i < row1; ++i) out[i * stride] = dot(i);
    });
  }
};

}  // namespace

const F64Tile& f64_tile() {
  switch (best_isa()) {
#if defined(__x86_64__)
    case Isa::Amx:
    case Isa::Avx512Bf16:
    case Isa::Avx512:
      return avx512_f64_tile();
    case Isa::Avx2:
      return avx2_f64_tile();
#elif defined(__aarch64__)
    case Isa::Neon:
      return neon_f64_tile();
#endif
    default:
      return base_f64_tile();
  }
}

void gemm_f64(const GemmShape& shape, const Operand& a, const Operand& b, double* c,
              std::int64_t ldc, std::int64_t c_batch_stride) {
  if (shape.batch <= 0 || shape.m <= 0 || shape.n <= 0) return;
  if (shape.batch == 1 && (shape.m == 1 || shape.n == 1)) {
    const Matrix x = batch_of(a, 0), y = batch_of(b, 0);
    if (shape.n == 1) return MatrixTimesVector{x, y, shape.k}.run(shape.m, c, ldc);
    const Matrix transposed{y.data, y.col_stride, y.row_stride}, row{x.data, x.col_stride, 0};
    return MatrixTimesVector{transposed, row, shape.k}.run(shape.n, c, 1);
  }
  const F64Tile& tile = f64_tile();
  const std::int64_t row_blocks = (shape.m + kF64Rows - 1) / kF64Rows,
                     col_blocks = (shape.n + kF64Cols - 1) / kF64Cols;
  parallel_for(shape.batch * row_blocks * col_blocks, [&](std::int64_t chunk, int) {
    const std::int64_t batch = chunk / (row_blocks * col_blocks),
                       row0 = chunk / col_blocks % row_blocks * kF64Rows,
                       col0 = chunk % col_blocks * kF64Cols;
    const F64Block block{row0, std::min(shape.m, row0 + kF64Rows), col0,
                         std::min(shape.n, col0 + kF64Cols)};
    const Matrix x = batch_of(a, batch), y = batch_of(b, batch);
    std::int64_t k0 = 0;
    do {  // once even for an empty reduction, whose result is zero
      multiply_steps(tile, x, y, c + batch * c_batch_stride, ldc, block, k0,
                     std::min(kF64Steps, shape.k - k0));
      k0 += kF64Steps;
    } while (k0 < shape.k);
  });
}

}  // namespace tenon::cpu
