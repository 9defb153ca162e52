// Two-dimensional max and average pooling over NCHW planes, forward and backward.
//
// Pure functions on contiguous arrays, parallel over planes. Instantiated for float and double. The
// caller gives the output sizes, so ceil mode needs no code here: a window is clipped to the input.
#pragma once

#include <cstdint>

namespace tenon::cpu {

/// x [n, c, h, w], y [n, c, p, q]. Windows start at i * stride - pad. Dilation is for max pooling
/// only.
struct PoolShape {
  std::int64_t n = 0, c = 0, h = 0, w = 0, p = 0, q = 0;
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1,
      dil_w = 1;
  bool count_include_pad =
      true;  ///< avg: divide by the window's size inside the padded input (PyTorch's default)
};

/// y = the maximum of each window; NaN is the largest.
template <class T>
void max_pool2d(const PoolShape& shape, const T* x, T* y);
/// dx = dy added at the first maximum of each window (if there are NaNs, at the last NaN, as in
/// PyTorch).
template <class T>
void max_pool2d_backward(const PoolShape& shape, const T* x, const T* dy, T* dx);
/// y = g [n, c, h, w] at the maximum of x in each window: the second derivative.
template <class T>
void max_pool2d_gather(const PoolShape& shape, const T* x, const T* g, T* y);
template <class T>
void avg_pool2d(const PoolShape& shape, const T* x, T* y);
template <class T>
void avg_pool2d_backward(const PoolShape& shape, const T* dy, T* dx);

}  // namespace tenon::cpu
