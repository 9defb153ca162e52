// Adaptive pooling: windows are chosen to yield a given number of results. Window i of `out` over
// `size` elements is [floor(i size / out), ceil((i + 1) size / out)), as in PyTorch; windows may
// overlap. Axes are pooled one after another, which gives the same result because windows are
// rectangles.
#include <algorithm>

#include <tenon/creation.h>
#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"
#include "ops/infer.h"
#include "ops/pool.h"

namespace tenon {
namespace {

// Reduces consecutive windows of `length` elements of an axis to one result each.
using Reduce = Placed (*)(const Placed& x, int axis, std::int64_t length);

Ints divided_sizes(const Tensor& x, int axis, std::int64_t length) {
  Ints sizes(x.shape().begin(), x.shape().end());
  sizes[static_cast<std::size_t>(axis)] /= length;
  return sizes;
}

Placed means(const Placed& x, int axis, std::int64_t length) {
  Ints sizes = divided_sizes(x.values, axis, length);
  sizes.insert(sizes.begin() + axis + 1, length);
  return {mean(reshape(x.values, sizes), {axis + 1}), {}};
}

// As max pooling of images, whose gradient goes to each window's first maximum.
Placed maxima(const Placed& x, int axis, std::int64_t length) {
  const Tensor& v = x.values;
  std::int64_t before = 1, behind = 1;
  for (int k = 0; k < v.rank(); ++k) (k < axis ? before : behind) *= k == axis ? 1 : v.size(k);
  const auto reshaped = [](const Placed& t, const Ints& sizes) {
    return of_both(t, [&](const Tensor& part) { return reshape(part, sizes); });
  };
  const Placed y = placed_maxima(reshaped(x, {1, before, v.size(axis), behind}),
                                 pool_attrs({.kernel = {length, 1}}));
  return reshaped(y, divided_sizes(v, axis, length));
}

// Windows of several lengths as windows of the longest one, whose last elements repeat. Neighbours
// are elements of neighbouring windows, so that one loop computes many windows. The gradient goes
// to the first maximum, and so to no repeated element.
Placed uneven_maxima(const Placed& x, int axis, std::int64_t out) {
  const Tensor& v = x.values;
  const std::int64_t size = v.size(axis);
  std::int64_t length = 1, before = 1, behind = out;
  for (std::int64_t i = 0; i < out; ++i)
    length = std::max(length, ((i + 1) * size + out - 1) / out - i * size / out);
  for (int k = 0; k < v.rank(); ++k)
    if (k != axis) (k < axis ? before : behind) *= v.size(k);
  const Tensor window = arange(out), first = floor_divide(window * size, out),
               last = floor_divide((window + 1) * size + (out - 1), out) - 1;
  const Tensor places = reshape(minimum(unsqueeze(arange(length), 1) + first, last), {-1});
  const Placed windows = of_both(x, [&](const Tensor& t) {
    return reshape(index_select(t, axis, places), {1, before, length, behind});
  });
  const Placed y = placed_maxima(windows, pool_attrs({.kernel = {length, 1}}));
  Ints sizes(v.shape().begin(), v.shape().end());
  sizes[static_cast<std::size_t>(axis)] = out;
  return of_both(y, [&](const Tensor& t) { return reshape(t, sizes); });
}

Placed pool_axis(const Placed& x, int axis, std::int64_t out, Reduce reduce) {
  const std::int64_t size = x.values.size(axis);
  if (out == size) return x;
  if (size % out == 0) return reduce(x, axis, size / out);
  if (reduce == maxima) return uneven_maxima(x, axis, out);
  std::vector<Tensor> values;
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t first = i * size / out, end = ((i + 1) * size + out - 1) / out;
    values.push_back(reduce({slice(x.values, axis, first, end), {}}, axis, end - first).values);
  }
  return {concat(values, axis), {}};
}

void check_adaptive(const char* op, const Tensor& x, const Ints& output, const char* wanted) {
  require_defined(op, x);
  if (!is_floating(x.dtype()))
    throw make_error<DTypeError>(where(op), ": the input is ", x.dtype(),
                                 ", cast it to a float first");
  const int axes = static_cast<int>(output.size()), first = x.rank() - axes;
  if (first != 1 && first != 2)
    throw make_error<ShapeError>(where(op), ": the input is ", x.shape(), ", must be ", wanted);
  std::string sizes, least;
  for (const std::int64_t size : output) {
    sizes += cat(sizes.empty() ? "" : " x ", size);
    least += least.empty() ? "1" : " x 1";
  }
  if (*std::min_element(output.begin(), output.end()) < 1)
    throw make_error<ValueError>(where(op), ": the output is ", sizes, ", must be at least ",
                                 least);
  for (int k = first; k < x.rank(); ++k)
    if (x.size(k) < 1)
      throw make_error<ShapeError>(where(op), ": the input is ", x.shape(), ", without pixels");
}

// Pools the last axes of x [.., C, axes…]. The last axis comes first, so that of equal maxima the
// one in the first row gets the gradient, as in PyTorch.
Placed pool_axes(Placed x, const Ints& output, Reduce reduce) {
  const int axes = static_cast<int>(output.size()), first = x.values.rank() - axes;
  for (int k = axes - 1; k >= 0; --k)
    x = pool_axis(x, first + k, output[static_cast<std::size_t>(k)], reduce);
  return x;
}

// 16-bit means are not rounded between the axes.
Tensor pool(const char* op, const Tensor& x, const Ints& output, const char* wanted,
            Reduce reduce) {
  check_adaptive(op, x, output, wanted);
  const bool upcast = item_size(x.dtype()) == 2;
  const Tensor y = pool_axes({upcast ? cast(x, DType::Float32) : x, {}}, output, reduce).values;
  return upcast ? cast(y, x.dtype()) : y;
}

ValuesAndIndices pool_with_indices(const char* op, const Tensor& x, const Ints& output,
                                   const char* wanted) {
  const Called called(op);
  check_adaptive(op, x, output, wanted);
  const Placed in = numbered(op, x, static_cast<int>(output.size()));
  return finished(pool_axes(in, output, maxima), x);
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

Tensor adaptive_avg_pool2d(const Tensor& x, Pair output) {
  return pool("adaptive_avg_pool2d", x, {output.h, output.w}, kImages, means);
}

Tensor adaptive_max_pool2d(const Tensor& x, Pair output) {
  return pool("adaptive_max_pool2d", x, {output.h, output.w}, kImages, maxima);
}

Tensor adaptive_avg_pool3d(const Tensor& x, Triple output) {
  return pool("adaptive_avg_pool3d", x, {output.d, output.h, output.w}, kVolumes, means);
}

Tensor adaptive_max_pool3d(const Tensor& x, Triple output) {
  return pool("adaptive_max_pool3d", x, {output.d, output.h, output.w}, kVolumes, maxima);
}

ValuesAndIndices adaptive_max_pool1d_with_indices(const Tensor& x, std::int64_t output) {
  return pool_with_indices("adaptive_max_pool1d_with_indices", x, {output}, kSignals);
}

ValuesAndIndices adaptive_max_pool2d_with_indices(const Tensor& x, Pair output) {
  return pool_with_indices("adaptive_max_pool2d_with_indices", x, {output.h, output.w}, kImages);
}

ValuesAndIndices adaptive_max_pool3d_with_indices(const Tensor& x, Triple output) {
  return pool_with_indices("adaptive_max_pool3d_with_indices", x, {output.d, output.h, output.w},
                           kVolumes);
}

}  // namespace tenon
