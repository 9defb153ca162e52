// Vector loops of float32 pooling over the windows that are entirely inside the input's columns.
//
// A run is a rectangle of outputs whose windows all have the same taps. pool2d.cpp handles borders
// and other types.
#pragma once

#include <cstdint>

namespace tenon::cpu {

struct PoolRun {
  const float* x = nullptr;    // first tap of the first window
  std::int64_t x_out_row = 0;  // floats of x from one output row to the next
  std::int64_t x_tap_row = 0;  // and from one tap row to the next
  std::int64_t tap_rows = 0;
  int tap_cols = 0, tap_step = 1, stride = 1;  // along columns
  std::int64_t rows = 0, cols = 0;             // outputs
  std::int64_t pitch = 0;  // floats from one output row to the next, of y, taps and dy
};

struct PoolRows {
  /// y = maximum of each window; taps (if not null) = the maximum's tap number, counted along rows,
  /// as a float.
  void (*max)(const PoolRun& run, float* y, float* taps) = nullptr;
  /// y = scale * sum of each window.
  void (*sum)(const PoolRun& run, float scale, float* y) = nullptr;
  /// Windows of 2 x 2 with stride 2, which do not overlap: writes both rows of dx (as far apart as
  /// x's) under each window, 2 * cols floats each. Max: dy at the tap of the maximum, otherwise
  /// zero. Average: scale * dy.
  void (*max_backward_2x2)(const PoolRun& run, const float* dy, float* dx) = nullptr;
  void (*avg_backward_2x2)(const PoolRun& run, float scale, const float* dy, float* dx) = nullptr;
};

/// The loops of best_isa().
const PoolRows& pool_rows();

const PoolRows& base_pool_rows();
const PoolRows& avx2_pool_rows();
const PoolRows& avx512_pool_rows();
const PoolRows& neon_pool_rows();

}  // namespace tenon::cpu
