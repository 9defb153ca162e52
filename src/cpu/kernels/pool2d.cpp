// Pooling over planes: windows that lie inside the input go to the vector loops of pool2d_rows.h
// (float32), those at the border and all of float64 to the plain loops here. Bandwidth-bound: each
// plane is read once and written once.
#include "cpu/kernels/pool2d.h"

#include <algorithm>
#include <type_traits>

#include "base/thread_pool.h"
#include "cpu/kernels/isa.h"
#include "cpu/kernels/pool2d_rows.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kMaxTaps = 1 << 12;    // tap numbers stay exact as floats
constexpr std::int64_t kChunkFloats = 32768;  // of input, of one chunk
constexpr std::int64_t kTapFloats = 1024;     // results of a run kept on the stack

std::int64_t div_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Taps [first, last) of a window that lie inside [0, size).
struct Range {
  std::int64_t first, last;
};

Range taps_inside(std::int64_t start, std::int64_t kernel, std::int64_t dil, std::int64_t size) {
  const std::int64_t first = start >= 0 ? 0 : div_up(-start, dil);
  const std::int64_t last = start >= size ? 0 : std::min(kernel, div_up(size - start, dil));
  return {first, std::max(first, last)};
}

// Outputs [first, last) of a line whose windows lie wholly inside the input.
Range inside(std::int64_t in, std::int64_t out, int kernel, int stride, int pad, int dil) {
  const std::int64_t first = std::min(out, div_up(pad, stride));
  const std::int64_t room = in + pad - std::int64_t{kernel - 1} * dil - 1;
  const std::int64_t last = room < 0 ? 0 : std::min(out, room / stride + 1);
  return {first, std::max(first, last)};
}

// Index of the window's largest element: the first, unless there is a NaN, then the last NaN.
template <class T>
std::int64_t window_argmax(const PoolShape& s, const T* x, std::int64_t i, std::int64_t j) {
  const std::int64_t y0 = i * s.stride_h - s.pad_h, x0 = j * s.stride_w - s.pad_w;
  const Range rows = taps_inside(y0, s.kernel_h, s.dil_h, s.h),
              cols = taps_inside(x0, s.kernel_w, s.dil_w, s.w);
  std::int64_t best = (y0 + rows.first * s.dil_h) * s.w + x0 + cols.first * s.dil_w;
  for (std::int64_t a = rows.first; a < rows.last; ++a) {
    const std::int64_t row = (y0 + a * s.dil_h) * s.w + x0;
    for (std::int64_t b = cols.first; b < cols.last; ++b) {
      const T value = x[row + b * s.dil_w];
      if (value > x[best] || value != value) best = row + b * s.dil_w;
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
  const std::int64_t y1 = std::min(y0 + s.kernel_h, s.h + s.pad_h);
  const std::int64_t x1 = std::min(x0 + s.kernel_w, s.w + s.pad_w);
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
  const std::int64_t planes = s.n * s.c;
  const std::int64_t per_chunk =
      std::max<std::int64_t>(1, kChunkFloats / std::max<std::int64_t>(1, s.h * s.w));
  parallel_for(div_up(planes, per_chunk), [&](std::int64_t chunk, int) {
    const std::int64_t end = std::min(planes, (chunk + 1) * per_chunk);
    for (std::int64_t plane = chunk * per_chunk; plane < end; ++plane) f(plane);
  });
}

// The rectangle of outputs whose windows lie wholly inside the input, as a run over `plane`.
struct Interior {
  Range rows{0, 0}, cols{0, 0};
  PoolRun run;

  Interior(const PoolShape& s, const float* plane, int dil_h, int dil_w) {
    rows = inside(s.h, s.p, s.kernel_h, s.stride_h, s.pad_h, dil_h);
    cols = inside(s.w, s.q, s.kernel_w, s.stride_w, s.pad_w, dil_w);
    run.x = plane + (rows.first * s.stride_h - s.pad_h) * s.w + cols.first * s.stride_w - s.pad_w;
    run.x_out_row = s.stride_h * s.w;
    run.x_tap_row = dil_h * s.w;
    run.tap_rows = s.kernel_h;
    run.tap_cols = s.kernel_w;
    run.tap_step = dil_w;
    run.stride = s.stride_w;
    run.rows = rows.last - rows.first;
    run.cols = cols.last - cols.first;
    run.pitch = s.q;
  }
  bool has(std::int64_t i, std::int64_t j) const {
    return i >= rows.first && i < rows.last && j >= cols.first && j < cols.last;
  }
};

// f(i, j) for every output that is not of the interior.
template <class F>
void for_border(const PoolShape& s, const Interior& interior, F f) {
  for (std::int64_t i = 0; i < s.p; ++i) {
    for (std::int64_t j = 0; j < s.q; ++j) {
      if (interior.has(i, j)) {
        j = interior.cols.last - 1;
      } else {
        f(i, j);
      }
    }
  }
}

// f(output index, input index of its largest) for all windows of a plane: scatter and gather are
// made of it.
template <class T, class F>
void for_argmax(const PoolShape& s, const T* x, F f) {
  if constexpr (std::is_same_v<T, float>) {
    if (s.kernel_h * s.kernel_w <= kMaxTaps) {
      const Interior interior(s, x, s.dil_h, s.dil_w);
      PoolRun run = interior.run;
      run.rows = 1;
      float best[kTapFloats], taps[kTapFloats];
      for (std::int64_t i = interior.rows.first; i < interior.rows.last; ++i) {
        for (std::int64_t j = 0; j < interior.run.cols; j += kTapFloats) {
          run.cols = std::min(kTapFloats, interior.run.cols - j);
          run.x = interior.run.x + (i - interior.rows.first) * run.x_out_row + j * run.stride;
          pool_rows().max(run, best, taps);
          for (std::int64_t t = 0; t < run.cols; ++t) {
            const int tap = static_cast<int>(taps[t]);
            const std::int64_t offset =
                tap / s.kernel_w * run.x_tap_row + tap % s.kernel_w * run.tap_step;
            f(i * s.q + interior.cols.first + j + t, run.x - x + t * run.stride + offset);
          }
        }
      }
      for_border(s, interior, [&](std::int64_t i, std::int64_t j) {
        f(i * s.q + j, window_argmax(s, x, i, j));
      });
      return;
    }
  }
  for (std::int64_t i = 0; i < s.p; ++i) {
    for (std::int64_t j = 0; j < s.q; ++j) f(i * s.q + j, window_argmax(s, x, i, j));
  }
}

bool is_2x2(const PoolShape& s) {
  return s.kernel_h == 2 && s.kernel_w == 2 && s.stride_h == 2 && s.stride_w == 2 && s.pad_h == 0 &&
         s.pad_w == 0 && s.dil_h == 1 && s.dil_w == 1 && 2 * s.p <= s.h && 2 * s.q <= s.w;
}

// What 2 x 2 windows do not cover: a last odd column, a last odd row.
void clear_uncovered(const PoolShape& s, float* dx) {
  for (std::int64_t i = 0; i < 2 * s.p; ++i)
    std::fill(dx + i * s.w + 2 * s.q, dx + (i + 1) * s.w, 0.0f);
  std::fill(dx + 2 * s.p * s.w, dx + s.h * s.w, 0.0f);
}

template <class T>
T average(const PoolShape& s, const T* x, std::int64_t i, std::int64_t j) {
  const Window v = average_window(s, i, j);
  T sum = T(0);
  for (std::int64_t row = v.y0; row < v.y1; ++row) {
    for (std::int64_t col = v.x0; col < v.x1; ++col) sum += x[row * s.w + col];
  }
  return sum / static_cast<T>(v.divisor);
}

}  // namespace

const PoolRows& pool_rows() {
  switch (best_isa()) {
#if defined(__x86_64__)
    case Isa::Amx:
    case Isa::Avx512Bf16:
    case Isa::Avx512:
      return avx512_pool_rows();
    case Isa::Avx2:
      return avx2_pool_rows();
#elif defined(__aarch64__)
    case Isa::Neon:
      return neon_pool_rows();
#endif
    default:
      return base_pool_rows();
  }
}

template <class T>
void max_pool2d(const PoolShape& s, const T* x, T* y) {
  for_planes(s, [&](std::int64_t plane) {
    const T* in = x + plane * s.h * s.w;
    T* out = y + plane * s.p * s.q;
    if constexpr (std::is_same_v<T, float>) {
      const Interior interior(s, in, s.dil_h, s.dil_w);
      pool_rows().max(interior.run, out + interior.rows.first * s.q + interior.cols.first, nullptr);
      for_border(s, interior, [&](std::int64_t i, std::int64_t j) {
        out[i * s.q + j] = in[window_argmax(s, in, i, j)];
      });
    } else {
      for_argmax(s, in, [&](std::int64_t to, std::int64_t from) { out[to] = in[from]; });
    }
  });
}

template <class T>
void max_pool2d_backward(const PoolShape& s, const T* x, const T* dy, T* dx) {
  for_planes(s, [&](std::int64_t plane) {
    const T* in = x + plane * s.h * s.w;
    const T* grad = dy + plane * s.p * s.q;
    T* out = dx + plane * s.h * s.w;
    if constexpr (std::is_same_v<T, float>) {
      if (is_2x2(s)) {
        pool_rows().max_backward_2x2(Interior(s, in, 1, 1).run, grad, out);
        return clear_uncovered(s, out);
      }
    }
    std::fill(out, out + s.h * s.w, T(0));
    for_argmax(s, in, [&](std::int64_t from, std::int64_t to) { out[to] += grad[from]; });
  });
}

template <class T>
void max_pool2d_gather(const PoolShape& s, const T* x, const T* g, T* y) {
  for_planes(s, [&](std::int64_t plane) {
    const T* from = g + plane * s.h * s.w;
    T* out = y + plane * s.p * s.q;
    for_argmax(s, x + plane * s.h * s.w,
               [&](std::int64_t to, std::int64_t at) { out[to] = from[at]; });
  });
}

template <class T>
void avg_pool2d(const PoolShape& s, const T* x, T* y) {
  for_planes(s, [&](std::int64_t plane) {
    const T* in = x + plane * s.h * s.w;
    T* out = y + plane * s.p * s.q;
    if constexpr (std::is_same_v<T, float>) {
      const Interior interior(s, in, 1, 1);
      const float scale = 1.0f / static_cast<float>(s.kernel_h * s.kernel_w);
      pool_rows().sum(interior.run, scale, out + interior.rows.first * s.q + interior.cols.first);
      for_border(s, interior,
                 [&](std::int64_t i, std::int64_t j) { out[i * s.q + j] = average(s, in, i, j); });
    } else {
      for (std::int64_t i = 0; i < s.p; ++i) {
        for (std::int64_t j = 0; j < s.q; ++j) out[i * s.q + j] = average(s, in, i, j);
      }
    }
  });
}

template <class T>
void avg_pool2d_backward(const PoolShape& s, const T* dy, T* dx) {
  for_planes(s, [&](std::int64_t plane) {
    const T* grad = dy + plane * s.p * s.q;
    T* out = dx + plane * s.h * s.w;
    if constexpr (std::is_same_v<T, float>) {
      if (is_2x2(s)) {
        pool_rows().avg_backward_2x2(Interior(s, out, 1, 1).run, 0.25f, grad, out);
        return clear_uncovered(s, out);
      }
    }
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
