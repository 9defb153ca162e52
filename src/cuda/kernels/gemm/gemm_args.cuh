// Run-time arguments of contraction kernels; host and device share these structs. Sizes and strides
// are arguments and never part of a kernel's source.
//
// A contraction is C(m, n) = sum over k of A(m, k) * B(k, n), besides batches. Each axis of an
// operand is a mixed-radix number of up to three digits (a pixel is image, row, column; a filter
// tap is channel, row, column), and each digit has a stride. In a convolution's window the u and v
// coordinates of both axes are added and checked against the image's bounds. This is all that
// implicit GEMM needs; the lowered matrix exists only in the tiles on chip.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

/// index = (d0 * size1 + d1) * size2 + d2 is at the sum of digit * stride, in elements, and at the
/// window coordinates u = u0 + d1 * u_step, v = v0 + d2 * v_step.
struct GemmAxis {
  long long stride[3] = {};
  Divisor size1, size2;
  int u0 = 0, u_step = 0, v0 = 0, v_step = 0;
};

/// outer: m or n; inner: k. In a window one axis is pixels and the other is taps. An element counts
/// if 0 <= u < limit_u and 0 <= v < limit_v, where u and v are summed over both axes. Window 1: the
/// outer axis is the pixels. Window 2: the inner axis is the pixels. Window 3 (input gradients of
/// strided convolutions): the outer axis is the pixels, u and v must be multiples of step, and
/// their quotients are checked and have strides of their own.
struct GemmOperand {
  const void* data = nullptr;
  GemmAxis outer, inner;
  int limit_u = 0, limit_v = 0;
  int taps_u = 0, taps_v = 0;  // numbers of taps, at most kGemmMaxTaps each
  int tap_step_u = 0, tap_step_v = 0;
  Divisor step_u, step_v;
  long long stride_u = 0, stride_v = 0;
};

inline constexpr int kGemmBatchAxes = 6;

/// The position of a prologue's further operand over the digits of the main operand: offset + sum
/// of digit * stride, in elements; stride_u and stride_v as in GemmOperand. 8-byte members only.
struct GemmLayout {
  long long offset = 0, outer[3] = {}, inner[3] = {};
  long long stride_u = 0, stride_v = 0;
  long long batch[kGemmBatchAxes] = {};
};

/// No prologue: elements are multiplied as stored.
struct NoPrologue {
  static constexpr int kLayouts = 0;
};

inline constexpr int kGemmMaxTaps = 31;

struct GemmProblem {
  long long m = 0, n = 0, k = 0;  // below 2^31, except for the plain kernel
  int tiles_m = 0, tiles_n = 0;
  int k_per_split = 0, splits = 1;  // block (x, y): tile and batch x, k from y * k_per_split
  int batch_axes = 0;
  Divisor tiles;  // tiles_m * tiles_n
  Divisor batch_size[kGemmBatchAxes];
  long long batch_stride_a[kGemmBatchAxes] = {}, batch_stride_b[kGemmBatchAxes] = {};
  // The position of (batch z, m, n) in the result's [batch, rows, columns]: batch z * batch_step,
  // row m + z * row_step, column n + z * column_step. The axis that holds further batches is split
  // by `inner_size`.
  long long batch_step = 0, row_step = 0, column_step = 0;
  Divisor inner_size;
  // With splits > 1: [tile][split][kM][kN]. With kSerial: the result's layout [batch, rows,
  // columns].
  float* partials = nullptr;
  long long result_rows = 0, result_columns = 0;
  unsigned long long ticket = 0;  // first of the counters of this launch
};

}  // namespace tenon::cuda
