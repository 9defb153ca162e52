// Contractions by the reference engine: matrix product, convolution and its two gradients, by
// definition.
//
// Operands are first gathered through their views (and rounded to bfloat16 if the region computes
// in it). Sums are in double, or in wrapping int64 for integers.
#include <utility>

#include "base/index.h"
#include "cpu/engines/reference/reference.h"

namespace tenon::cpu::reference {

namespace {

Array operand(const Contraction& c, const MapProgram& prologue, const View& view,
              const Shape& shape, std::span<const Value> values, const Binding& binding) {
  Array array = read(binding.values[view.value], values[at(view.value)].dtype, shape, view);
  if (!prologue.instrs.empty()) array = run_prologue(prologue, values, binding, array);
  if (c.compute() == DType::BFloat16)
    for (double& x : array.real) x = round_to(DType::BFloat16, x);
  return array;
}

/// Sums of one contraction. T is double, or uint64 for integers: int64 products reinterpreted, so
/// that they wrap.
template <class T>
struct Sums {
  const Contraction& c;
  const std::vector<T> a, b;
  std::vector<T> out;

  void matmul() {
    const int rank = c.a_shape.rank();
    const std::int64_t m = c.a_shape[rank - 2], k = c.a_shape[rank - 1], n = c.b_shape[rank - 1];
    const std::int64_t batch = m * n == 0 ? 0 : c.out_shape.numel() / (m * n);
    for (std::int64_t row = 0; row < batch * m; ++row)
      for (std::int64_t l = 0; l < k; ++l)
        for (std::int64_t col = 0; col < n; ++col)
          out[at(row * n + col)] += a[at(row * k + l)] * b[at((row / m * k + l) * n + col)];
  }

  /// Calls f(x index, w index, y index) for every product of the convolution of x [N, C, H, W] with
  /// w [K, C/g, R, S].
  template <class F>
  static void each_product(const ConvAttrs& v, const Shape& x, const Shape& w, const Shape& y,
                           F&& f) {
    const std::int64_t group_in = w[1], group_out = w[0] / v.groups;
    for (std::int64_t image = 0; image < y[0]; ++image)
      for (std::int64_t k = 0; k < w[0]; ++k)
        for (std::int64_t c = 0; c < group_in; ++c)
          for (std::int64_t r = 0; r < w[2]; ++r)
            for (std::int64_t s = 0; s < w[3]; ++s)
              for (std::int64_t p = 0; p < y[2]; ++p)
                for (std::int64_t q = 0; q < y[3]; ++q) {
                  const std::int64_t i = p * v.stride_h - v.pad_h + r * v.dil_h;
                  const std::int64_t j = q * v.stride_w - v.pad_w + s * v.dil_w;
                  if (i < 0 || i >= x[2] || j < 0 || j >= x[3]) continue;
                  const std::int64_t channel = k / group_out * group_in + c;
                  f(at(((image * x[1] + channel) * x[2] + i) * x[3] + j),
                    at(((k * group_in + c) * w[2] + r) * w[3] + s),
                    at(((image * y[1] + k) * y[2] + p) * y[3] + q));
                }
  }

  void convolution() {
    const ConvAttrs v = c.attrs.conv;
    const Shape result = c.result_shape();
    if (c.op == Op::Conv2d)
      each_product(v, c.a_shape, c.b_shape, result,
                   [&](std::size_t x, std::size_t w, std::size_t y) { out[y] += a[x] * b[w]; });
    else if (c.op == Op::Conv2dInputGrad)
      each_product(v, result, c.b_shape, c.a_shape,
                   [&](std::size_t x, std::size_t w, std::size_t y) { out[x] += a[y] * b[w]; });
    else
      each_product(v, c.a_shape, result, c.b_shape,
                   [&](std::size_t x, std::size_t w, std::size_t y) { out[w] += a[x] * b[y]; });
    if (c.channels_last) to_nhwc(result);
  }

  /// Converts feature maps [N, C, H, W] to [N, H, W, C].
  void to_nhwc(const Shape& images) {
    const std::int64_t channels = images[1], pixels = images[2] * images[3];
    const std::vector<T> from = out;
    for (std::int64_t image = 0; image < images[0]; ++image)
      for (std::int64_t k = 0; k < channels; ++k)
        for (std::int64_t p = 0; p < pixels; ++p)
          out[at((image * pixels + p) * channels + k)] =
              from[at((image * channels + k) * pixels + p)];
  }

  void run() {
    out.assign(at(c.out_shape.numel()), T{});
    if (c.op == Op::Matmul) {
      matmul();
    } else {
      convolution();
    }
  }
};

Array contract(const Contraction& c, const Array& a, const Array& b) {
  Array out;
  if (a.floating()) {
    Sums<double> sums{c, a.real, b.real, {}};
    sums.run();
    out.dtype = DType::Float64;
    out.real = std::move(sums.out);
  } else {
    Sums<std::uint64_t> sums{
        c, {a.whole.begin(), a.whole.end()}, {b.whole.begin(), b.whole.end()}, {}};
    sums.run();
    out.dtype = DType::Int64;
    out.whole.assign(sums.out.begin(), sums.out.end());
  }
  return out;
}

}  // namespace

void run_contraction(const Region& region, std::span<const Value> values, const Binding& binding) {
  const Contraction& c = region.contraction;
  const Array a = operand(c, region.prologue_a, c.a, c.a_shape, values, binding);
  const Array b = operand(c, region.prologue_b, c.b, c.b_shape, values, binding);
  const Array out = contract(c, a, b);
  if (c.out != kNoValue) write(out, binding, values, c.out);
  if (c.has_epilogue) run_map(region.map, values, binding, &out);
}

}  // namespace tenon::cpu::reference
