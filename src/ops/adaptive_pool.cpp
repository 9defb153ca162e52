// Adaptive pooling: windows chosen so that a given number of results comes out. Window i of `out`
// over `size` places is [floor(i size / out), ceil((i + 1) size / out)), as in PyTorch: windows may
// overlap. Axes are pooled one after another, which is the same, for windows are rectangles.
#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/str.h"
#include "ops/infer.h"

namespace tenon {
namespace {

using Reduce = Tensor (*)(const Tensor& x, const Axes& axes, bool keepdim);

Tensor pool_axis(const Tensor& x, int axis, std::int64_t out, Reduce reduce) {
  const std::int64_t size = x.size(axis);
  if (out == size) return x;
  if (size % out == 0) {
    Ints sizes(x.shape().begin(), x.shape().end());
    sizes[static_cast<std::size_t>(axis)] = out;
    sizes.insert(sizes.begin() + axis + 1, size / out);
    return reduce(reshape(x, sizes), {axis + 1}, false);
  }
  std::vector<Tensor> windows;
  for (std::int64_t i = 0; i < out; ++i)
    windows.push_back(
        reduce(slice(x, axis, i * size / out, ((i + 1) * size + out - 1) / out), {axis}, true));
  return concat(windows, axis);
}

Tensor pool(const char* op, const Tensor& x, std::pair<std::int64_t, std::int64_t> output,
            Reduce reduce) {
  if (!is_floating(x.dtype()))
    throw DTypeError(cat(where(op), ": the input is ", x.dtype(), ", cast it to a float first"));
  if (x.rank() != 3 && x.rank() != 4)
    throw ShapeError(
        cat(where(op), ": the input is ", x.shape(), ", must be [N, C, H, W] or [C, H, W]"));
  const auto [h, w] = output;
  if (h < 1 || w < 1)
    throw ValueError(cat(where(op), ": the output is ", h, " x ", w, ", must be at least 1 x 1"));
  const int rows = x.rank() - 2;
  if (x.size(rows) < 1 || x.size(rows + 1) < 1)
    throw ShapeError(cat(where(op), ": the input is ", x.shape(), ", without pixels"));
  // 16-bit means are not rounded between the axes.
  const bool widen = item_size(x.dtype()) == 2;
  const Tensor wide = widen ? cast(x, DType::Float32) : x;
  const Tensor y = pool_axis(pool_axis(wide, rows, h, reduce), rows + 1, w, reduce);
  return widen ? cast(y, x.dtype()) : y;
}

}  // namespace

Tensor adaptive_avg_pool2d(const Tensor& x, std::pair<std::int64_t, std::int64_t> output) {
  require_defined("adaptive_avg_pool2d", x);
  return pool("adaptive_avg_pool2d", x, output, mean);
}

Tensor adaptive_max_pool2d(const Tensor& x, std::pair<std::int64_t, std::int64_t> output) {
  require_defined("adaptive_max_pool2d", x);
  return pool("adaptive_max_pool2d", x, output, amax);
}

}  // namespace tenon
