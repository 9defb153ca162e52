// Adaptive pooling: windows chosen so that a given number of results comes out. Window i of `out`
// over `size` places is [floor(i size / out), ceil((i + 1) size / out)), as in PyTorch: windows may
// overlap. Axes are pooled one after another, which is the same, for windows are rectangles.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/ops.h>
#include <tenon/pooling.h>

#include "base/str.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// Of x's axis, windows of `length` places one after another: one result each.
using Reduce = Tensor (*)(const Tensor& x, int axis, std::int64_t length);

Tensor means(const Tensor& x, int axis, std::int64_t length) {
  Ints sizes(x.shape().begin(), x.shape().end());
  sizes[static_cast<std::size_t>(axis)] /= length;
  sizes.insert(sizes.begin() + axis + 1, length);
  return mean(reshape(x, sizes), {axis + 1});
}

// As poolings of images, whose gradients go to each window's first maximum.
Tensor maxima(const Tensor& x, int axis, std::int64_t length) {
  Ints sizes(x.shape().begin(), x.shape().end());
  std::int64_t before = 1, behind = 1;
  for (int k = 0; k < x.rank(); ++k) (k < axis ? before : behind) *= k == axis ? 1 : x.size(k);
  const Tensor y =
      max_pool2d(reshape(x, {1, before, x.size(axis), behind}), {.kernel = {length, 1}});
  sizes[static_cast<std::size_t>(axis)] /= length;
  return reshape(y, sizes);
}

Tensor pool_axis(const Tensor& x, int axis, std::int64_t out, Reduce reduce) {
  const std::int64_t size = x.size(axis);
  if (out == size) return x;
  if (size % out == 0) return reduce(x, axis, size / out);
  std::vector<Tensor> windows;
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t first = i * size / out, end = ((i + 1) * size + out - 1) / out;
    windows.push_back(reduce(slice(x, axis, first, end), axis, end - first));
  }
  return concat(windows, axis);
}

// x [.., C, axes…] over its last axes, of which `wanted` tells.
Tensor pool(const char* op, const Tensor& x, const Ints& output, const char* wanted,
            Reduce reduce) {
  require_defined(op, x);
  if (!is_floating(x.dtype()))
    throw DTypeError(cat(where(op), ": the input is ", x.dtype(), ", cast it to a float first"));
  const int axes = static_cast<int>(output.size()), first = x.rank() - axes;
  if (first != 1 && first != 2)
    throw ShapeError(cat(where(op), ": the input is ", x.shape(), ", must be ", wanted));
  std::string sizes, least;
  for (const std::int64_t size : output) {
    sizes += cat(sizes.empty() ? "" : " x ", size);
    least += least.empty() ? "1" : " x 1";
  }
  if (*std::min_element(output.begin(), output.end()) < 1)
    throw ValueError(cat(where(op), ": the output is ", sizes, ", must be at least ", least));
  for (int k = first; k < x.rank(); ++k)
    if (x.size(k) < 1)
      throw ShapeError(cat(where(op), ": the input is ", x.shape(), ", without pixels"));
  // 16-bit means are not rounded between the axes. The last axis first, so that of equal maxima
  // that of the first row gets the gradient, as in PyTorch.
  const bool widen = item_size(x.dtype()) == 2;
  Tensor y = widen ? cast(x, DType::Float32) : x;
  for (int k = axes - 1; k >= 0; --k)
    y = pool_axis(y, first + k, output[static_cast<std::size_t>(k)], reduce);
  return widen ? cast(y, x.dtype()) : y;
}

constexpr char kSignals[] = "[N, C, L] or [C, L]", kImages[] = "[N, C, H, W] or [C, H, W]",
               kVolumes[] = "[N, C, D, H, W] or [C, D, H, W]";

}  // namespace

Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output) {
  return pool("adaptive_avg_pool1d", x, {output}, kSignals, means);
}

Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output) {
  return pool("adaptive_max_pool1d", x, {output}, kSignals, maxima);
}

Tensor adaptive_avg_pool2d(const Tensor& x, std::pair<std::int64_t, std::int64_t> output) {
  return pool("adaptive_avg_pool2d", x, {output.first, output.second}, kImages, means);
}

Tensor adaptive_max_pool2d(const Tensor& x, std::pair<std::int64_t, std::int64_t> output) {
  return pool("adaptive_max_pool2d", x, {output.first, output.second}, kImages, maxima);
}

Tensor adaptive_avg_pool3d(const Tensor& x, const std::array<std::int64_t, 3>& output) {
  return pool("adaptive_avg_pool3d", x, {output[0], output[1], output[2]}, kVolumes, means);
}

Tensor adaptive_max_pool3d(const Tensor& x, const std::array<std::int64_t, 3>& output) {
  return pool("adaptive_max_pool3d", x, {output[0], output[1], output[2]}, kVolumes, maxima);
}

}  // namespace tenon
