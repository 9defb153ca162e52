// Pooling by the reference engine, window by window, with PyTorch's conventions.
//
// Maximum: the first of equal values; a NaN beats everything before it, an earlier NaN included.
// Average: divides by the window's size clipped to the padded input (count_include_pad) or to the
// input. Output sizes come from the region.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/engines/reference/reference.h"

namespace tenon::cpu::reference {

namespace {

struct Window {
  std::int64_t h0, h1, w0, w1;  // rows and columns of the input, by steps of the dilation
  std::int64_t padded_area;     // elements before clipping to the input
};

std::int64_t first_inside(std::int64_t start, std::int64_t step) {
  return start >= 0 ? start : start + (-start + step - 1) / step * step;
}

Window window(const PoolAttrs& v, std::int64_t p, std::int64_t q, std::int64_t height,
              std::int64_t width) {
  const std::int64_t h0 = p * v.stride_h - v.pad_h, w0 = q * v.stride_w - v.pad_w;
  const std::int64_t h1 = std::min(h0 + (v.kernel_h - 1) * v.dil_h + 1, height + v.pad_h);
  const std::int64_t w1 = std::min(w0 + (v.kernel_w - 1) * v.dil_w + 1, width + v.pad_w);
  return {first_inside(h0, v.dil_h), std::min(h1, height), first_inside(w0, v.dil_w),
          std::min(w1, width), (h1 - h0) * (w1 - w0)};
}

/// Calls f(offset of the plane in the input, index of the output element, window) for every output
/// element.
template <class F>
void each_window(const PoolAttrs& v, const Shape& in, const Shape& out, F&& f) {
  std::int64_t index = 0;
  for (std::int64_t plane = 0; plane < in[0] * in[1]; ++plane)
    for (std::int64_t p = 0; p < out[2]; ++p)
      for (std::int64_t q = 0; q < out[3]; ++q)
        f(plane * in[2] * in[3], index++, window(v, p, q, in[2], in[3]));
}

/// Index of the window's maximum in x; -1 if the window has no element of the input.
std::int64_t max_index(const PoolAttrs& v, const Array& x, std::int64_t plane, std::int64_t width,
                       const Window& win) {
  std::int64_t best = -1;
  for (std::int64_t i = win.h0; i < win.h1; i += v.dil_h)
    for (std::int64_t j = win.w0; j < win.w1; j += v.dil_w) {
      const std::int64_t here = plane + i * width + j;
      const bool larger = best >= 0 && (x.floating() ? x.real_at(here) > x.real_at(best)
                                                     : x.whole_at(here) > x.whole_at(best));
      if (best < 0 || larger || std::isnan(x.real_at(here))) best = here;
    }
  return best;
}

/// A window without elements gives `empty`.
Array max_pool(const PoolAttrs& v, const Array& x, const Shape& in, const Array& read_from,
               const Shape& out_shape, double empty) {
  Array out(x.dtype, out_shape.numel());
  each_window(v, in, out_shape, [&](std::int64_t plane, std::int64_t index, const Window& win) {
    const std::int64_t best = max_index(v, x, plane, in[3], win);
    if (best >= 0)
      copy_element(out, index, read_from, best);
    else
      out.set(index, empty);
  });
  return out;
}

Array rounded(DType dtype, const std::vector<double>& sums) {
  Array out(dtype, static_cast<std::int64_t>(sums.size()));
  for (std::int64_t i = 0; i < out.size(); ++i) out.set(i, sums[static_cast<std::size_t>(i)]);
  return out;
}

Array max_pool_grad(const PoolAttrs& v, const Array& x, const Shape& in, const Array& g,
                    const Shape& g_shape) {
  std::vector<double> sums(static_cast<std::size_t>(in.numel()));
  each_window(v, in, g_shape, [&](std::int64_t plane, std::int64_t index, const Window& win) {
    const std::int64_t best = max_index(v, x, plane, in[3], win);
    if (best >= 0) sums[static_cast<std::size_t>(best)] += g.real_at(index);
  });
  return rounded(x.dtype, sums);
}

double divisor(const PoolAttrs& v, const Window& win) {
  return static_cast<double>(v.count_include_pad != 0 ? win.padded_area
                                                      : (win.h1 - win.h0) * (win.w1 - win.w0));
}

Array avg_pool(const PoolAttrs& v, const Array& x, const Shape& in, const Shape& out_shape) {
  Array out(x.dtype, out_shape.numel());
  each_window(v, in, out_shape, [&](std::int64_t plane, std::int64_t index, const Window& win) {
    double sum = 0;
    for (std::int64_t i = win.h0; i < win.h1; ++i)
      for (std::int64_t j = win.w0; j < win.w1; ++j) sum += x.real_at(plane + i * in[3] + j);
    const bool empty = win.h0 >= win.h1 || win.w0 >= win.w1;
    out.set(index, empty ? 0.0 : sum / divisor(v, win));
  });
  return out;
}

Array avg_pool_grad(const PoolAttrs& v, const Array& g, const Shape& g_shape, const Shape& in) {
  std::vector<double> sums(static_cast<std::size_t>(in.numel()));
  each_window(v, in, g_shape, [&](std::int64_t plane, std::int64_t index, const Window& win) {
    for (std::int64_t i = win.h0; i < win.h1; ++i)
      for (std::int64_t j = win.w0; j < win.w1; ++j)
        sums[static_cast<std::size_t>(plane + i * in[3] + j)] += g.real_at(index) / divisor(v, win);
  });
  return rounded(g.dtype, sums);
}

}  // namespace

Array pool(Op op, const PoolAttrs& v, std::span<const Array> inputs, std::span<const Shape> shapes,
           const Shape& out_shape) {
  switch (op) {
    case Op::MaxPool2d:
      return max_pool(v, inputs[0], shapes[0], inputs[0], out_shape,
                      -std::numeric_limits<double>::infinity());
    case Op::MaxPool2dGather:
      return max_pool(v, inputs[0], shapes[0], inputs[1], out_shape, 0);
    case Op::MaxPool2dGrad:
      return max_pool_grad(v, inputs[0], shapes[0], inputs[1], shapes[1]);
    case Op::AvgPool2d:
      return avg_pool(v, inputs[0], shapes[0], out_shape);
    default:
      return avg_pool_grad(v, inputs[0], shapes[0], out_shape);
  }
}

}  // namespace tenon::cpu::reference
