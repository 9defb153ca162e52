// Pooling over planes. Windows inside the input use the vector loops of pool2d_rows.h (float32);
// windows at the border, and float64, use the plain loops here. Bandwidth-bound: each plane is read
// once and written once.
#include "cpu/kernels/pool/pool2d.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/index.h"
#include "base/thread_pool.h"
#include "cpu/kernels/isa.h"
#include "cpu/kernels/pool/pool2d_rows.h"
#include "device/cpu_model.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kMaxTaps = 1 << 12;                       // tap numbers stay exact as floats
constexpr std::int64_t kChunkFloats = kCpu.second_floats() / 8;  // of input, of one chunk
constexpr std::int64_t kTapFloats = 1024;  // results of a run kept on the stack

// Taps [first, last) of a window that are inside [0, size).
struct Range {
  std::int64_t first, last;
};

Range taps_inside(std::int64_t start, std::int64_t kernel, std::int64_t dil, std::int64_t size) {
  const std::int64_t first = start >= 0 ? 0 : divide_up(-start, dil);
  const std::int64_t last = start >= size ? 0 : std::min(kernel, divide_up(size - start, dil));
  return {first, std::max(first, last)};
}

// Outputs [first, last) of a line whose windows are entirely inside the input.
Range inside(std::int64_t in, std::int64_t out, int kernel, int stride, int pad, int dil) {
  const std::int64_t first = std::min(out, divide_up(pad, stride));
  const std::int64_t room = in + pad - std::int64_t{kernel - 1} * dil - 1;
  const std::int64_t last = room < 0 ? 0 : std::min(out, room / stride + 1);
  return {first, std::max(first, last)};
}

// Index of the window's maximum: the first one, or the last NaN if there is a NaN. -1 if dilation
// makes the window skip the whole plane.
template <class T>
std::int64_t window_argmax(const PoolShape& s, const T* x, std::int64_t i, std::int64_t j) {
  const std::int64_t y0 = i * s.stride_h - s.pad_h, x0 = j * s.stride_w - s.pad_w;
  const Range rows = taps_inside(y0, s.kernel_h, s.dil_h, s.h),
              cols = taps_inside(x0, s.kernel_w, s.dil_w, s.w);
  if (rows.first >= rows.last || cols.first >= cols.last) return -1;
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

// A window of average pooling, clipped to the input, and the divisor of its sum.
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
  v.divisor = std::max<std::int64_t>(v.divisor, 1);  // an empty window gives 0
  return v;
}

// Runs f(plane) over all planes; small planes share a chunk.
template <class F>
void for_planes(const PoolShape& s, F f) {
  const std::int64_t planes = s.n * s.c;
  const std::int64_t per_chunk =
      std::max<std::int64_t>(1, kChunkFloats / std::max<std::int64_t>(1, s.h * s.w));
  parallel_for(divide_up(planes, per_chunk), [&](std::int64_t chunk, int) {
    const std::int64_t end = std::min(planes, (chunk + 1) * per_chunk);
    for (std::int64_t plane = chunk * per_chunk; plane < end; ++plane) f(plane);
  });
}

// The rectangle of outputs whose windows are entirely inside the input, if vector loops exist for
// it; all other outputs are border.
struct Interior {
  Range rows{0, 0}, cols{0, 0};
  std::int64_t first_output = 0;

  Interior(const PoolShape& s, int dil_h, int dil_w, bool vectors) {
    if (!vectors) return;
    rows = inside(s.h, s.p, s.kernel_h, s.stride_h, s.pad_h, dil_h);
    cols = inside(s.w, s.q, s.kernel_w, s.stride_w, s.pad_w, dil_w);
    first_output = rows.first * s.q + cols.first;
    first_input_ = (rows.first * s.stride_h - s.pad_h) * s.w + cols.first * s.stride_w - s.pad_w;
    run_.x_out_row = s.stride_h * s.w;
    run_.x_tap_row = dil_h * s.w;
    run_.tap_rows = s.kernel_h;
    run_.tap_cols = s.kernel_w;
    run_.tap_step = dil_w;
    run_.stride = s.stride_w;
    run_.rows = rows.last - rows.first;
    run_.cols = cols.last - cols.first;
    run_.pitch = s.q;
  }

  PoolRun over(const float* plane) const {
    PoolRun run = run_;
    run.x = plane + first_input_;
    return run;
  }

  bool has(std::int64_t i, std::int64_t j) const {
    return i >= rows.first && i < rows.last && j >= cols.first && j < cols.last;
  }

 private:
  std::int64_t first_input_ = 0;
  PoolRun run_;
};

template <class T>
constexpr bool kVectors = std::is_same_v<T, float>;

// f(i, j) for every output that is not in the interior.
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

// f(output index, input index of its maximum) for the interior of a plane.
template <class F>
void for_argmax_inside(const PoolShape& s, const Interior& interior, const float* x, F f) {
  const PoolRun all = interior.over(x);
  PoolRun run = all;
  run.rows = 1;
  float best[kTapFloats], taps[kTapFloats];
  for (std::int64_t i = 0; i < all.rows; ++i) {
    for (std::int64_t j = 0; j < all.cols; j += kTapFloats) {
      run.cols = std::min(kTapFloats, all.cols - j);
      run.x = all.x + i * run.x_out_row + j * run.stride;
      pool_rows().max(run, best, taps);
      for (std::int64_t t = 0; t < run.cols; ++t) {
        const int tap = static_cast<int>(taps[t]);
        const std::int64_t offset =
            tap / s.kernel_w * run.x_tap_row + tap % s.kernel_w * run.tap_step;
        f(interior.first_output + i * s.q + j + t, run.x - x + t * run.stride + offset);
      }
    }
  }
}

// f(plane, output index, input index of its maximum) for all windows with a maximum; indexes are
// within the plane. Scatter and gather use it. start(plane) is called before.
template <class T, class Start, class F>
void for_argmax(const PoolShape& s, const T* x, Start start, F f) {
  const bool few = s.kernel_h * s.kernel_w <= kMaxTaps;
  const Interior interior(s, s.dil_h, s.dil_w, kVectors<T> && few);
  for_planes(s, [&](std::int64_t plane) {
    const T* in = x + plane * s.h * s.w;
    const auto found = [&](std::int64_t to, std::int64_t from) { f(plane, to, from); };
    start(plane);
    if constexpr (kVectors<T>) for_argmax_inside(s, interior, in, found);
    for_border(s, interior, [&](std::int64_t i, std::int64_t j) {
      const std::int64_t best = window_argmax(s, in, i, j);
      if (best >= 0) found(i * s.q + j, best);
    });
  });
}

bool is_2x2(const PoolShape& s) {
  return s.kernel_h == 2 && s.kernel_w == 2 && s.stride_h == 2 && s.stride_w == 2 && s.pad_h == 0 &&
         s.pad_w == 0 && s.dil_h == 1 && s.dil_w == 1 && 2 * s.p <= s.h && 2 * s.q <= s.w;
}

// Backward through windows of 2 x 2, which do not overlap: f(plane) writes the elements under the
// windows, and a last odd column and row are cleared.
template <class F>
void backward_2x2(const PoolShape& s, float* dx, F f) {
  for_planes(s, [&](std::int64_t plane) {
    float* out = dx + plane * s.h * s.w;
    f(plane);
    if (2 * s.q < s.w) {
      for (std::int64_t i = 0; i < 2 * s.p; ++i)
        std::fill(out + i * s.w + 2 * s.q, out + (i + 1) * s.w, 0.0f);
    }
    std::fill(out + 2 * s.p * s.w, out + s.h * s.w, 0.0f);
  });
}

// f(element) for every element of an average's window that is inside the plane.
template <class T, class F>
void for_window(const PoolShape& s, T* plane, const Window& v, F f) {
  for (std::int64_t row = v.y0; row < v.y1; ++row) {
    for (std::int64_t col = v.x0; col < v.x1; ++col) f(plane[row * s.w + col]);
  }
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
  const Interior interior(s, s.dil_h, s.dil_w, kVectors<T>);
  for_planes(s, [&](std::int64_t plane) {
    const T* in = x + plane * s.h * s.w;
    T* out = y + plane * s.p * s.q;
    if constexpr (kVectors<T>)
      pool_rows().max(interior.over(in), out + interior.first_output, nullptr);
    for_border(s, interior, [&](std::int64_t i, std::int64_t j) {
      const std::int64_t best = window_argmax(s, in, i, j);
      out[i * s.q + j] = best >= 0 ? in[best] : -std::numeric_limits<T>::infinity();
    });
  });
}

template <class T>
void max_pool2d_backward(const PoolShape& s, const T* x, const T* dy, T* dx) {
  const std::int64_t in = s.h * s.w, out = s.p * s.q;
  if constexpr (kVectors<T>) {
    if (is_2x2(s)) {
      const Interior interior(s, 1, 1, true);
      return backward_2x2(s, dx, [&](std::int64_t plane) {
        pool_rows().max_backward_2x2(interior.over(x + plane * in), dy + plane * out,
                                     dx + plane * in);
      });
    }
  }
  for_argmax(
      s, x, [&](std::int64_t plane) { std::fill_n(dx + plane * in, in, T(0)); },
      [&](std::int64_t plane, std::int64_t from, std::int64_t to) {
        dx[plane * in + to] += dy[plane * out + from];
      });
}

template <class T>
void max_pool2d_gather(const PoolShape& s, const T* x, const T* g, T* y) {
  for_argmax(
      s, x,
      [&](std::int64_t plane) {
        if (s.dil_h > 1 || s.dil_w > 1) std::fill_n(y + plane * s.p * s.q, s.p * s.q, T(0));
      },
      [&](std::int64_t plane, std::int64_t to, std::int64_t from) {
        y[plane * s.p * s.q + to] = g[plane * s.h * s.w + from];
      });
}

template <class T>
void avg_pool2d(const PoolShape& s, const T* x, T* y) {
  const Interior interior(s, 1, 1, kVectors<T>);
  for_planes(s, [&](std::int64_t plane) {
    const T* in = x + plane * s.h * s.w;
    T* out = y + plane * s.p * s.q;
    if constexpr (kVectors<T>) {
      const float scale = 1.0f / static_cast<float>(s.kernel_h * s.kernel_w);
      pool_rows().sum(interior.over(in), scale, out + interior.first_output);
    }
    for_border(s, interior, [&](std::int64_t i, std::int64_t j) {
      const Window v = average_window(s, i, j);
      T sum = T(0);
      for_window(s, in, v, [&](T value) { sum += value; });
      out[i * s.q + j] = sum / static_cast<T>(v.divisor);
    });
  });
}

template <class T>
void avg_pool2d_backward(const PoolShape& s, const T* dy, T* dx) {
  const std::int64_t in = s.h * s.w, out = s.p * s.q;
  if constexpr (kVectors<T>) {
    if (is_2x2(s)) {
      const Interior interior(s, 1, 1, true);
      return backward_2x2(s, dx, [&](std::int64_t plane) {
        pool_rows().avg_backward_2x2(interior.over(dx + plane * in), 0.25f, dy + plane * out,
                                     dx + plane * in);
      });
    }
  }
  for_planes(s, [&](std::int64_t plane) {
    T* to = dx + plane * in;
    std::fill_n(to, in, T(0));
    for (std::int64_t i = 0; i < s.p; ++i) {
      for (std::int64_t j = 0; j < s.q; ++j) {
        const Window v = average_window(s, i, j);
        const T share = dy[plane * out + i * s.q + j] / static_cast<T>(v.divisor);
        for_window(s, to, v, [share](T& value) { value += share; });
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
