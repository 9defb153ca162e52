// The interface of the CPU's contraction kernels: matrix multiplication and the three passes of a
// 2-d convolution.
//
// Pure functions on pointers: they do not know the graph and allocate nothing. They cut their work
// by shape alone, so the number of threads does not change the bits. Strides count elements.
// Results must not alias operands or workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <tenon/dtype.h>

#include "cpu/kernels/isa.h"

namespace tenon::cpu {

/// A matrix of the result's size that an epilogue will read: element (i, j) of the first batch is
/// at data + i * row_bytes + j * item_bytes.
struct EpilogueRead {
  const std::byte* data = nullptr;
  std::int64_t row_bytes = 0, item_bytes = 0;
};
constexpr int kMaxEpilogueReads = 4;

/// Rows [row0, row1) and columns [col0, col1) of one batch of a result.
struct Rectangle {
  std::int64_t batch = 0, row0 = 0, row1 = 0, col0 = 0, col1 = 0;
};

/// A rectangle of a contraction's result. Rows are `ld` floats apart.
struct ResultBlock {
  int worker = 0;  ///< the worker that computed it
  Rectangle place{};
  float* data = nullptr;  ///< element (row0, col0)
  std::int64_t ld = 0;
};

/// Called when a block of the result is final (the whole reduction is summed) and still in cache.
/// The callee may overwrite the block in place. Blocks are disjoint and cover the result; their
/// order is undefined, and several workers call concurrently.
struct Epilogue {
  void (*fn)(void* ctx, const ResultBlock& block) = nullptr;
  void* ctx = nullptr;
  int reads = 0;  ///< matrices to prefetch before the call, if there is one batch
  EpilogueRead read[kMaxEpilogueReads] = {};
};

/// F32: float32 products and sums. Bf16: operands rounded to bfloat16 (nearest even), products
/// summed in float32.
enum class Math { F32, Bf16 };

/// Element (i, j) of batch b is at data[offset(b) + i * row_stride + j * col_stride], where
/// offset(b) is batch_offsets[b] if given, otherwise b * batch_stride. Any strides: transposed,
/// zero (broadcast), negative.
struct Operand {
  const void* data = nullptr;
  DType dtype = DType::Float32;  ///< Float32, BFloat16 or Float16 (gemm_f64: Float64).
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 0;
  std::int64_t batch_stride = 0;
  const std::int64_t* batch_offsets = nullptr;
};

struct GemmShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};

struct GemmPlan;

/// A plan for a product that runs often. It depends only on the operands' strides and types.
std::shared_ptr<const GemmPlan> prepared_gemm(const GemmShape& shape, Math math, const Operand& b);

/// A batched product: c[i] (m x n) = a[i] (m x k) * b[i] (k x n).
struct Gemm {
  GemmShape shape{};
  Operand a{}, b{};
  float* c = nullptr;    ///< null: blocks exist only for the epilogue, in scratch in the workspace
  std::int64_t ldc = 0;  ///< elements between rows of c
  std::int64_t c_batch_stride = 0;  ///< elements between batches of c
  Math math = Math::F32;
  Epilogue epilogue{};
  /// 64-byte aligned, at least gemm_workspace() bytes for num_threads() at the time of the call.
  void* workspace = nullptr;
  const GemmPlan* prepared = nullptr;  ///< the plan, if the caller keeps one
};

/// Overwrites c; k = 0 writes zeros.
void gemm(const Gemm& product);
std::size_t gemm_workspace(const GemmShape& shape, Math math, int threads, bool c_is_null);

/// The same in float64, for checks and small statistics: blocked for cache, no epilogue, no
/// workspace.
void gemm_f64(const GemmShape& shape, const Operand& a, const Operand& b, double* c,
              std::int64_t ldc, std::int64_t c_batch_stride);

/// x [n, c, h, w], w [k, c / groups, r, s], y [n, k, p, q], all contiguous; y is the
/// cross-correlation, as in PyTorch: y(i, j) = sum w(a, b) * x(i * stride_h - pad_h + a * dil_h, j
/// * stride_w - pad_w + b * dil_w).
struct ConvShape {
  std::int64_t n = 0, c = 0, h = 0, w = 0, k = 0, r = 0, s = 0, p = 0, q = 0;
  int stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1, dil_w = 1, groups = 1;
};

struct ConvOperand {
  const void* data = nullptr;
  DType dtype = DType::Float32;  ///< Float32, BFloat16 or Float16.
};

enum class ConvPass { Forward, InputGrad, WeightGrad };

/// Overwrites y. Epilogue: batch = image, rows = output channels, cols = pixels of p * q.
void conv2d_forward(const ConvShape& shape, ConvOperand x, ConvOperand w, float* y, Math math,
                    const Epilogue& epilogue, void* workspace);
/// Overwrites dx. Epilogue: batch = image, rows = input channels, cols = pixels of h * w.
void conv2d_input_grad(const ConvShape& shape, ConvOperand dy, ConvOperand w, float* dx, Math math,
                       const Epilogue& epilogue, void* workspace);
/// Overwrites dw. Epilogue: batch = 0, rows = output channels, cols = (c / groups) * r * s.
void conv2d_weight_grad(const ConvShape& shape, ConvOperand x, ConvOperand dy, float* dw, Math math,
                        const Epilogue& epilogue, void* workspace);
/// Bytes of the workspace (64-byte aligned) of one pass with `threads` threads.
std::size_t conv2d_workspace(const ConvShape& shape, ConvPass pass, Math math, int threads);

/// Multiply-add throughput of `threads` threads with operands in registers, in FLOP/s: the peak
/// that efficiencies are measured against. Takes about 50 ms.
double measure_fma_peak(Math math, int threads);

}  // namespace tenon::cpu
