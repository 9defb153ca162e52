// What a contraction kernel is told at run time; host and device share these structs. Sizes and
// strides stand here and never in the text of a kernel.
//
// A contraction is C(m, n) = sum over k of A(m, k) * B(k, n), batches aside. Both axes of an
// operand are mixed-radix numbers of up to three digits (a pixel is image, row, column; a filter
// tap is channel, row, column), each digit with a stride. Where the axes meet in a convolution's
// window, the sums of their u and v coordinates are checked against the image: that is all of
// implicit GEMM; the lowered matrix exists nowhere but in the tiles on chip.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

/// index = (d0 * size1 + d1) * size2 + d2 lies at sum of digit * stride, in elements, and at
/// window coordinates u = u0 + d1 * u_step, v = v0 + d2 * v_step.
struct GemmAxis {
  long long stride[3] = {};
  Divisor size1, size2;
  int u0 = 0, u_step = 0, v0 = 0, v_step = 0;
};

/// outer: m or n; inner: k. In a window one axis is pixels, the other taps, and an element counts
/// when 0 <= u < limit_u and 0 <= v < limit_v, u and v summed over both axes. Window 1: the outer
/// axis is the pixels; 2: the inner one; 3 (input gradients of strided convolutions): the outer
/// one, u and v must be multiples of step, and their quotients are checked and have strides of
/// their own.
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

/// Where a further value that a prologue reads lies over the digits of its operand: at offset + sum
/// of digit * stride, in elements; stride_u and stride_v as in GemmOperand. 8-byte members only.
struct GemmLayout {
  long long offset = 0, outer[3] = {}, inner[3] = {};
  long long stride_u = 0, stride_v = 0;
  long long batch[kGemmBatchAxes] = {};
};

/// No prologue: elements are multiplied as they stand in memory.
struct NoPrologue {
  static constexpr int kLayouts = 0;
};

inline constexpr int kGemmMaxTaps = 31;

struct GemmProblem {
  long long m = 0, n = 0, k = 0;  // below 2^31 but in the plain kernel
  int tiles_m = 0, tiles_n = 0;
  int k_per_split = 0, splits = 1;  // block (x, y): tile and batch x, k from y * k_per_split
  int batch_axes = 0;
  Divisor tiles;  // tiles_m * tiles_n
  Divisor batch_size[kGemmBatchAxes];
  long long batch_stride_a[kGemmBatchAxes] = {}, batch_stride_b[kGemmBatchAxes] = {};
  // Where (batch z, m, n) stands in the result's [batch, rows, columns]: batch z * batch_step, row
  // m + z * row_step, column n + z * column_step, and the axis that holds further batches is split
  // by `inner_size`.
  long long batch_step = 0, row_step = 0, column_step = 0;
  Divisor inner_size;
  // When splits > 1: [tile][split][kM][kN]; where sums are added in turn, the result's layout
  // [batch, rows, columns].
  float* partials = nullptr;
  long long result_rows = 0, result_columns = 0;
  unsigned long long ticket = 0;  // first of the counters of this launch
};

}  // namespace tenon::cuda
