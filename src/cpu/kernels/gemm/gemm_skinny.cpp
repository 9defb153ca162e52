// Dot products of every row of A with every column of B, three columns at a time: B is streamed
// from memory once, A stays in cache. a [m, k] and b [k, n] are contiguous along k, c [m, n] is
// row-major and overwritten. Memory-bound. A long reduction is summed in stretches, so that a dot
// product of 10^6 has the error of 10^4. If there are too few columns to share among threads,
// stretches are shared and added in the same order.
#include "cpu/kernels/gemm/gemm_skinny.h"

#include <algorithm>

#include "base/index.h"
#include "base/thread_pool.h"
#include "device/cpu_model.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kMaxRows = 8;
constexpr std::int64_t kChunkCols = 48;
constexpr std::int64_t kStretch = 512;  // vectors that are added up one after another, at most
constexpr std::int64_t kChunkBytes = kCpu.second_cache / 8;  // least bytes of B for another thread

struct Skinny {
  const KernelSet& kernels;
  GemmShape shape;
  const float* a = nullptr;
  const float* b = nullptr;
  std::int64_t a_row = 0, b_col = 0;

  std::int64_t steps() const { return shape.k / kernels.lanes; }
  std::int64_t stretches() const { return divide_up(steps(), kStretch); }

  // The lanes of one stretch of rows [i0, i0 + rows) times columns [j0, j0 + cols), at most a dot
  // tile: sums[(j * rows + i) * lanes + lane].
  void add_up(std::int64_t stretch, std::int64_t i0, int rows, std::int64_t j0, int cols,
              float* sums) const {
    std::fill_n(sums, cols * rows * kernels.lanes, 0.0f);
    std::int64_t taps[kMaxDotTaps];
    for (int j = 0; j < cols; ++j) taps[j] = j * b_col;
    const std::int64_t done = stretch * kStretch;
    DotArgs args;
    args.steps = std::min(steps() - done, kStretch);
    args.a = a + i0 * a_row + done * kernels.lanes;
    args.a_row = a_row;
    args.b = b + j0 * b_col + done * kernels.lanes;
    args.taps = taps;
    args.c = sums;
    args.c_tap = rows * kernels.lanes;
    kernels.dot[0][rows][cols](args);
  }

  // The results of such a tile, from the lanes of all stretches.
  void finish(const float* sums, std::int64_t i0, int rows, std::int64_t j0, int cols, float* c,
              std::int64_t ldc) const {
    for (int i = 0; i < rows; ++i) {
      const float *own_a = a + (i0 + i) * a_row, *own_b = b + j0 * b_col;
      for (int j = 0; j < cols; ++j, own_b += b_col) {
        float sum = 0;
        for (int lane = 0; lane < kernels.lanes; ++lane)
          sum += sums[(j * rows + i) * kernels.lanes + lane];
        for (std::int64_t k = steps() * kernels.lanes; k < shape.k; ++k) sum += own_a[k] * own_b[k];
        c[(i0 + i) * ldc + j] = sum;
      }
    }
  }

  // Calls f(i0, rows, j0, cols) for the dot tiles of columns [j0, j1).
  template <class F>
  void each_tile(std::int64_t j0, std::int64_t j1, F f) const {
    const std::int64_t rows = divide_up(shape.m, divide_up(shape.m, kernels.max_dot_rows));
    for (std::int64_t j = j0; j < j1; j += kMaxDotTaps) {
      const int cols = static_cast<int>(std::min<std::int64_t>(kMaxDotTaps, j1 - j));
      for (std::int64_t i = 0; i < shape.m; i += rows)
        f(i, static_cast<int>(std::min(rows, shape.m - i)), j, cols);
    }
  }

  void columns(std::int64_t j0, std::int64_t j1, float* c, std::int64_t ldc) const {
    each_tile(j0, j1, [&](std::int64_t i, int rows, std::int64_t j, int cols) {
      float total[kMaxDotTaps * kMaxDotRows * kMaxNr], sums[kMaxDotTaps * kMaxDotRows * kMaxNr];
      add_up(0, i, rows, j, cols, total);
      for (std::int64_t stretch = 1; stretch < stretches(); ++stretch) {
        add_up(stretch, i, rows, j, cols, sums);
        kernels.add(total, sums, cols * rows * kernels.lanes);
      }
      finish(total, i, rows, j, cols, c + j - j0, ldc);
    });
  }

  // Floats of one stretch's lanes for all results; a tile's lanes begin at place(i, j, cols).
  std::int64_t stretch_floats() const { return shape.m * shape.n * kernels.lanes; }
  std::int64_t place(std::int64_t i, std::int64_t j, int cols) const {
    return (j * shape.m + i * cols) * kernels.lanes;
  }

  // The same results, with stretches shared among threads.
  void all_by_stretches(float* lanes, float* c, std::int64_t ldc) const {
    const std::int64_t bytes = kStretch * kernels.lanes * shape.n * 4;
    const std::int64_t each = divide_up(kChunkBytes, bytes), count = stretches();
    parallel_for(divide_up(count, each), [&](std::int64_t chunk, int) {
      const std::int64_t end = std::min(count, (chunk + 1) * each);
      for (std::int64_t stretch = chunk * each; stretch < end; ++stretch)
        each_tile(0, shape.n, [&](std::int64_t i, int rows, std::int64_t j, int cols) {
          add_up(stretch, i, rows, j, cols, lanes + stretch * stretch_floats() + place(i, j, cols));
        });
    });
    for (std::int64_t stretch = 1; stretch < count; ++stretch)
      kernels.add(lanes, lanes + stretch * stretch_floats(), stretch_floats());
    each_tile(0, shape.n, [&](std::int64_t i, int rows, std::int64_t j, int cols) {
      finish(lanes + place(i, j, cols), i, rows, j, cols, c + j, ldc);
    });
  }
};

std::int64_t start_of(const Operand& x) {
  return x.batch_offsets != nullptr ? x.batch_offsets[0] : 0;
}

bool has_few_rows(const GemmShape& shape, Math math) {
  return math == Math::F32 && shape.batch == 1 && shape.m <= kMaxRows && shape.k >= 64;
}

// True for a single chunk of columns and a reduction of several stretches that is worth sharing.
bool shares_stretches(const GemmShape& shape, int lanes) {
  return shape.n <= kChunkCols && shape.k >= 2 * kStretch * lanes &&
         shape.n * shape.k * 4 >= 2 * kChunkBytes;
}

}  // namespace

bool is_skinny(const GemmShape& shape, const Operand& a, const Operand& b, Math math) {
  return has_few_rows(shape, math) && a.dtype == DType::Float32 && b.dtype == DType::Float32 &&
         a.col_stride == 1 && b.row_stride == 1;
}

std::int64_t skinny_floats(const GemmShape& shape, Math math) {
  const KernelSet& kernels = kernel_set();
  if (!has_few_rows(shape, math) || !shares_stretches(shape, kernels.lanes)) return 0;
  const Skinny product{kernels, shape};
  return product.stretches() * product.stretch_floats();
}

void gemm_skinny(const Gemm& g) {
  const GemmShape& shape = g.shape;
  const Skinny product{kernel_set(),
                       shape,
                       static_cast<const float*>(g.a.data) + start_of(g.a),
                       static_cast<const float*>(g.b.data) + start_of(g.b),
                       g.a.row_stride,
                       g.b.col_stride};
  const bool by_stretches = shares_stretches(shape, product.kernels.lanes);
  const auto run = [&](std::int64_t chunk, int worker) {
    const std::int64_t j0 = chunk * kChunkCols, j1 = std::min(shape.n, j0 + kChunkCols);
    float scratch[kMaxRows * kChunkCols];
    float* block = g.c != nullptr ? g.c + j0 : scratch;
    const std::int64_t ld = g.c != nullptr ? g.ldc : kChunkCols;
    if (by_stretches) {
      product.all_by_stretches(static_cast<float*>(g.workspace), block, ld);
    } else {
      product.columns(j0, j1, block, ld);
    }
    if (g.epilogue.fn == nullptr) return;
    g.epilogue.fn(g.epilogue.ctx, {worker, {0, 0, shape.m, j0, j1}, block, ld});
  };
  if (by_stretches) return run(0, 0);  // one chunk, which shares its own work
  parallel_for(divide_up(shape.n, kChunkCols), run);
}

}  // namespace tenon::cpu
