// Dot products of every row of A with every column of B, three columns at a time: B is streamed
// from memory once, A stays in cache. a [m, k] and b [k, n] contiguous along k, c [m, n] row-major,
// overwritten. Bound by memory bandwidth. A long reduction is summed in stretches: the error of a
// dot of 10^6 is that of 10^4.
#include "cpu/kernels/gemm_skinny.h"

#include <algorithm>

#include "base/thread_pool.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kMaxRows = 8;
constexpr std::int64_t kChunkCols = 48;
constexpr std::int64_t kStretch = 512;  // vectors that are added up one after another, at most

struct Skinny {
  const KernelSet& kernels;
  GemmShape shape;
  const float *a, *b;
  std::int64_t a_row, b_col;

  // Rows [i0, i0 + rows) times columns [j0, j0 + cols), at most a dot tile.
  void tile(std::int64_t i0, int rows, std::int64_t j0, int cols, float* c,
            std::int64_t ldc) const {
    float sums[kMaxDotTaps * kMaxDotRows * kMaxNr] = {};
    std::int64_t taps[kMaxDotTaps];
    for (int j = 0; j < cols; ++j) taps[j] = j * b_col;
    const std::int64_t steps = shape.k / kernels.lanes;
    DotArgs args;
    args.steps = std::min(steps, kStretch);
    args.a = a + i0 * a_row;
    args.a_row = a_row;
    args.b = b + j0 * b_col;
    args.taps = taps;
    args.c = sums;
    args.c_tap = rows * kernels.lanes;
    kernels.dot[0][rows][cols](args);
    if (steps > kStretch) add_stretches(args, steps, rows, cols);
    for (int i = 0; i < rows; ++i) {
      const float *own_a = a + (i0 + i) * a_row, *own_b = b + j0 * b_col;
      for (int j = 0; j < cols; ++j, own_b += b_col) {
        float sum = 0;
        for (int lane = 0; lane < kernels.lanes; ++lane)
          sum += sums[j * args.c_tap + i * kernels.lanes + lane];
        for (std::int64_t k = steps * kernels.lanes; k < shape.k; ++k) sum += own_a[k] * own_b[k];
        c[(i0 + i) * ldc + j] = sum;
      }
    }
  }

  // Adds the stretches behind the one that `args` has done to its sums.
  void add_stretches(DotArgs args, std::int64_t steps, int rows, int cols) const {
    float* const total = args.c;
    for (std::int64_t done = kStretch; done < steps; done += kStretch) {
      float sums[kMaxDotTaps * kMaxDotRows * kMaxNr] = {};
      args.a += kStretch * kernels.lanes;
      args.b += kStretch * kernels.lanes;
      args.steps = std::min(steps - done, kStretch);
      args.c = sums;
      kernels.dot[0][rows][cols](args);
      for (std::int64_t k = 0; k < cols * args.c_tap; ++k) total[k] += sums[k];
    }
  }

  void columns(std::int64_t j0, std::int64_t j1, float* c, std::int64_t ldc) const {
    const std::int64_t groups = (shape.m + kernels.max_dot_rows - 1) / kernels.max_dot_rows;
    const std::int64_t rows = (shape.m + groups - 1) / groups;
    for (std::int64_t j = j0; j < j1; j += kMaxDotTaps) {
      const int cols = static_cast<int>(std::min<std::int64_t>(kMaxDotTaps, j1 - j));
      for (std::int64_t i = 0; i < shape.m; i += rows) {
        tile(i, static_cast<int>(std::min(rows, shape.m - i)), j, cols, c + j - j0, ldc);
      }
    }
  }
};

std::int64_t start_of(const Operand& x) {
  return x.batch_offsets != nullptr ? x.batch_offsets[0] : 0;
}

}  // namespace

bool is_skinny(const GemmShape& shape, const Operand& a, const Operand& b, Math math) {
  return math == Math::F32 && a.dtype == DType::Float32 && b.dtype == DType::Float32 &&
         a.col_stride == 1 && b.row_stride == 1 && shape.batch == 1 && shape.m <= kMaxRows &&
         shape.k >= 64;
}

void gemm_skinny(const GemmShape& shape, const Operand& a, const Operand& b, float* c,
                 std::int64_t ldc, const Epilogue& epilogue) {
  const Skinny product{kernel_set(),
                       shape,
                       static_cast<const float*>(a.data) + start_of(a),
                       static_cast<const float*>(b.data) + start_of(b),
                       a.row_stride,
                       b.col_stride};
  parallel_for((shape.n + kChunkCols - 1) / kChunkCols, [&](std::int64_t chunk, int worker) {
    const std::int64_t j0 = chunk * kChunkCols, j1 = std::min(shape.n, j0 + kChunkCols);
    float scratch[kMaxRows * kChunkCols];
    float* block = c != nullptr ? c + j0 : scratch;
    const std::int64_t ld = c != nullptr ? ldc : kChunkCols;
    product.columns(j0, j1, block, ld);
    if (epilogue.fn != nullptr) epilogue.fn(epilogue.ctx, worker, 0, 0, shape.m, j0, j1, block, ld);
  });
}

}  // namespace tenon::cpu
