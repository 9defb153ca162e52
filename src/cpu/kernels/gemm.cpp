// Matrix multiplication, portable form.
#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/kernels/contract.h"

namespace tenon::cpu {
namespace {
float load(const void* p, DType t, std::int64_t i, Math math) {
  float v = 0;
  if (t == DType::Float32) v = static_cast<const float*>(p)[i];
  if (t == DType::BFloat16) v = static_cast<float>(static_cast<const bfloat16*>(p)[i]);
  if (t == DType::Float16) v = static_cast<float>(static_cast<const float16*>(p)[i]);
  return math == Math::Bf16 ? static_cast<float>(bfloat16(v)) : v;
}
std::int64_t offset(const Operand& o, std::int64_t b) { return o.batch_offsets ? o.batch_offsets[b] : b * o.batch_stride; }
}  // namespace

void gemm(const GemmShape& s, const Operand& a, const Operand& b, float* c, std::int64_t ldc, std::int64_t cs, Math math,
          const Epilogue& e, void* workspace) {
  const std::int64_t rows = 16, blocks = (s.m + rows - 1) / rows;
  parallel_for(s.batch * blocks, [&](std::int64_t chunk, int worker) {
    const std::int64_t bi = chunk / blocks, i0 = chunk % blocks * rows, i1 = std::min(s.m, i0 + rows);
    float* block = c ? c + bi * cs + i0 * ldc : static_cast<float*>(workspace) + worker * rows * s.n;
    const std::int64_t ld = c ? ldc : s.n;
    const std::int64_t ao = offset(a, bi), bo = offset(b, bi);
    for (std::int64_t i = i0; i < i1; ++i) {
      float* row = block + (i - i0) * ld;
      for (std::int64_t j = 0; j < s.n; ++j) row[j] = 0;
      for (std::int64_t k = 0; k < s.k; ++k) {
        const float x = load(a.data, a.dtype, ao + i * a.row_stride + k * a.col_stride, math);
        for (std::int64_t j = 0; j < s.n; ++j) row[j] += x * load(b.data, b.dtype, bo + k * b.row_stride + j * b.col_stride, math);
      }
    }
    if (e.fn) e.fn(e.ctx, worker, bi, i0, i1, 0, s.n, block, ld);
  });
}

std::size_t gemm_workspace(const GemmShape& s, Math, int threads, bool c_is_null) {
  return c_is_null ? static_cast<std::size_t>(threads) * 16 * static_cast<std::size_t>(s.n) * 4 + 64 : 64;
}

void gemm_f64(const GemmShape& s, const Operand& a, const Operand& b, double* c, std::int64_t ldc, std::int64_t cs) {
  parallel_for(s.batch * s.m, [&](std::int64_t chunk, int) {
    const std::int64_t bi = chunk / s.m, i = chunk % s.m;
    const double* x = static_cast<const double*>(a.data) + offset(a, bi) + i * a.row_stride;
    const double* y = static_cast<const double*>(b.data) + offset(b, bi);
    double* row = c + bi * cs + i * ldc;
    std::fill(row, row + s.n, 0.0);
    for (std::int64_t k = 0; k < s.k; ++k) {
      for (std::int64_t j = 0; j < s.n; ++j) row[j] += x[k * a.col_stride] * y[k * b.row_stride + j * b.col_stride];
    }
  });
}

double measure_fma_peak(Math, int threads) { return 1e9 * threads; }

}  // namespace tenon::cpu
