// Pooling loops. A window is described by its clipped rows and columns; a plane (one image, one
// channel) is one unit of work. Bandwidth-bound: each plane is read once and written once.
#include "cpu/kernels/pool2d.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"

namespace tenon::cpu {
namespace {

// Index of the window's largest element: the first, unless there is a NaN, then the last NaN.
template <class T>
std::int64_t window_argmax(const PoolShape& s, const T* x, std::int64_t i, std::int64_t j) {
  const std::int64_t y0 = i * s.stride_h - s.pad_h, x0 = j * s.stride_w - s.pad_w;
  std::int64_t best = -1;
  T largest = T(0);
  for (int a = 0; a < s.kernel_h; ++a) {
    const std::int64_t row = y0 + std::int64_t{a} * s.dil_h;
    if (row < 0 || row >= s.h) continue;
    for (int b = 0; b < s.kernel_w; ++b) {
      const std::int64_t col = x0 + std::int64_t{b} * s.dil_w;
      if (col < 0 || col >= s.w) continue;
      const T value = x[row * s.w + col];
      if (best < 0 || value > largest || value != value) {
        largest = value;
        best = row * s.w + col;
      }
    }
  }
  return best;
}

// A window of average pooling, clipped to the input, and what its sum is divided by.
struct Window {
  std::int64_t y0, y1, x0, x1, divisor;
};

Window average_window(const PoolShape& s, std::int64_t i, std::int64_t j) {
  Window v{};
  const std::int64_t y0 = i * s.stride_h - s.pad_h, x0 = j * s.stride_w - s.pad_w;
  const std::int64_t y1 = std::min(y0 + s.kernel_h, s.h + s.pad_h),
                     x1 = std::min(x0 + s.kernel_w, s.w + s.pad_w);
  v.y0 = std::max<std::int64_t>(y0, 0);
  v.x0 = std::max<std::int64_t>(x0, 0);
  v.y1 = std::min(y1, s.h);
  v.x1 = std::min(x1, s.w);
  v.divisor = s.count_include_pad ? (y1 - y0) * (x1 - x0) : (v.y1 - v.y0) * (v.x1 - v.x0);
  return v;
}

// Runs f(plane) over all planes, several planes a chunk where they are small.
template <class F>
void for_planes(const PoolShape& s, F f) {
  const std::int64_t planes = s.n * s.c, per_chunk = std::max<std::int64_t>(
                                             1, 32768 / std::max<std::int64_t>(1, s.h * s.w));
  parallel_for((planes + per_chunk - 1) / per_chunk, [&](std::int64_t chunk, int) {
    const std::int64_t end = std::min(planes, (chunk + 1) * per_chunk);
    for (std::int64_t plane = chunk * per_chunk; plane < end; ++plane) f(plane);
  });
}

}  // namespace

template <class T>
void max_pool2d(const PoolShape& s, const T* x, T* y) {
  for_planes(s, [&](std::int64_t plane) {
    const T* in = x + plane * s.h * s.w;
    T* out = y + plane * s.p * s.q;
    for (std::int64_t i = 0; i < s.p; ++i) {
      for (std::int64_t j = 0; j < s.q; ++j) out[i * s.q + j] = in[window_argmax(s, in, i, j)];
    }
  });
}

template <class T>
void max_pool2d_backward(const PoolShape& s, const T* x, const T* dy, T* dx) {
  for_planes(s, [&](std::int64_t plane) {
    const T* in = x + plane * s.h * s.w;
    const T* grad = dy + plane * s.p * s.q;
    T* out = dx + plane * s.h * s.w;
    std::fill(out, out + s.h * s.w, T(0));
    for (std::int64_t i = 0; i < s.p; ++i) {
      for (std::int64_t j = 0; j < s.q; ++j) out[window_argmax(s, in, i, j)] += grad[i * s.q + j];
    }
  });
}

template <class T>
void max_pool2d_gather(const PoolShape& s, const T* x, const T* g, T* y) {
  for_planes(s, [&](std::int64_t plane) {
    const T* in = x + plane * s.h * s.w;
    const T* from = g + plane * s.h * s.w;
    T* out = y + plane * s.p * s.q;
    for (std::int64_t i = 0; i < s.p; ++i) {
      for (std::int64_t j = 0; j < s.q; ++j) out[i * s.q + j] = from[window_argmax(s, in, i, j)];
    }
  });
}

template <class T>
void avg_pool2d(const PoolShape& s, const T* x, T* y) {
  for_planes(s, [&](std::int64_t plane) {
    const T* in = x + plane * s.h * s.w;
    T* out = y + plane * s.p * s.q;
    for (std::int64_t i = 0; i < s.p; ++i) {
      for (std::int64_t j = 0; j < s.q; ++j) {
        const Window v = average_window(s, i, j);
        T sum = T(0);
        for (std::int64_t row = v.y0; row < v.y1; ++row) {
          for (std::int64_t col = v.x0; col < v.x1; ++col) sum += in[row * s.w + col];
        }
        out[i * s.q + j] = sum / static_cast<T>(v.divisor);
      }
    }
  });
}

template <class T>
void avg_pool2d_backward(const PoolShape& s, const T* dy, T* dx) {
  for_planes(s, [&](std::int64_t plane) {
    const T* grad = dy + plane * s.p * s.q;
    T* out = dx + plane * s.h * s.w;
    std::fill(out, out + s.h * s.w, T(0));
    for (std::int64_t i = 0; i < s.p; ++i) {
      for (std::int64_t j = 0; j < s.q; ++j) {
        const Window v = average_window(s, i, j);
        const T share = grad[i * s.q + j] / static_cast<T>(v.divisor);
        for (std::int64_t row = v.y0; row < v.y1; ++row) {
          for (std::int64_t col = v.x0; col < v.x1; ++col) out[row * s.w + col] += share;
        }
      }
    }
  });
}

#define TENON_INSTANTIATE(T)                                                      \
  template void max_pool2d<T>(const PoolShape&, const T*, T*);                    \
  template void max_pool2d_backward<T>(const PoolShape&, const T*, const T*, T*); \
  template void max_pool2d_gather<T>(const PoolShape&, const T*, const T*, T*);   \
  template void avg_pool2d<T>(const PoolShape&, const T*, T*);                    \
  template void avg_pool2d_backward<T>(const PoolShape&, const T*, T*);
TENON_INSTANTIATE(float)
TENON_INSTANTIATE(double)
#undef TENON_INSTANTIATE

}  // namespace tenon::cpu
