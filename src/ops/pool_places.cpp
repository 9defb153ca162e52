// Max pooling that also returns the index of each maximum, and its partial inverse (max_unpool). An
// index counts the elements of a plane (a signal, an image, a volume) in row-major order, as in
// PyTorch.
//
// For floating values, a second pooling gathers the indices as numbers of the values' own dtype.
// The indices are exact: values are cast to float32 if a plane has more elements than the dtype
// counts. Integers are compared slice by slice.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/function.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/pool.h"

namespace tenon {
namespace {

constexpr std::int64_t kCountedByFloat = std::int64_t{1} << 24;

bool is_integer(const Tensor& x) { return !is_floating(x.dtype()); }

// The indices of a plane's elements for x, whose last `axes` axes are the plane, in a given dtype.
Tensor numbers_of(const Tensor& x, int axes, DType dtype) {
  Ints plane;
  std::int64_t count = 1;
  for (int axis = x.rank() - axes; axis < x.rank(); ++axis) {
    plane.push_back(x.size(axis));
    count *= x.size(axis);
  }
  return broadcast_to(reshape(arange(0, count, 1, dtype), plane), x.shape());
}

// Integer maxima over windows along one axis. Positions beyond the edges have the index -1, and are
// taken only if the window has no other element.
Placed whole_along(const Placed& x, int axis, std::int64_t out, std::int64_t kernel,
                   std::int64_t stride, std::int64_t dil, std::int64_t margin) {
  const std::int64_t reach = (out - 1) * stride + 1, size = x.values.size(axis);
  Ints padding(static_cast<std::size_t>(2 * (x.values.rank() - axis)), 0);
  padding[padding.size() - 2] = margin;
  padding[padding.size() - 1] = reach + dil * (kernel - 1) - margin - size;
  const Tensor values = pad(x.values, padding, lowest_whole(x.values.dtype())),
               places = pad(x.places, padding, -1);
  Placed best;
  for (std::int64_t k = 0; k < kernel; ++k) {
    const auto part = [&](const Tensor& t) {
      return slice(t, axis, k * dil, k * dil + reach, stride);
    };
    const Placed next{part(values), part(places)};
    if (k == 0) {
      best = next;
      continue;
    }
    const Tensor better = logical_or(gt(next.values, best.values), lt(best.places, 0));
    best = {where(better, next.values, best.values), where(better, next.places, best.places)};
  }
  return best;
}

// The last axis first, so that of equal maxima the one in the first row is taken.
Placed placed_whole_maxima(const Placed& x, const PoolAttrs& p) {
  const Shape out = pooled_images(x.values.shape(), p);
  if (out.numel() == 0) return {zeros(out, x.values.dtype()), zeros(out, DType::Int64)};
  const Placed columns = whole_along(x, 3, out[3], p.kernel_w, p.stride_w, p.dil_w, p.pad_w);
  return whole_along(columns, 2, out[2], p.kernel_h, p.stride_h, p.dil_h, p.pad_h);
}

Placed pooled_maxima(const Placed& x, const PoolAttrs& attrs) {
  return is_integer(x.values) ? placed_whole_maxima(x, attrs) : placed_maxima(x, attrs);
}

// ---- The inverse ------------------------------------------------------------------------------

// The default output sizes: the smallest input that fills the windows.
Ints unpooled_sizes(const char* op, const Tensor& x, const Ints& kernel, Ints stride,
                    const Ints& padding, const Ints& wanted) {
  const auto axes = static_cast<int>(kernel.size());
  Ints sizes;
  for (int k = 0; k < axes; ++k) {
    const auto a = static_cast<std::size_t>(k);
    if (stride[a] == 0) stride[a] = kernel[a];
    if (kernel[a] < 1 || stride[a] < 1 || padding[a] < 0)
      throw make_error<ValueError>(where(op), ": kernel and stride start at 1, padding at 0");
    const std::int64_t reached = std::max<std::int64_t>(x.size(x.rank() - axes + k), 1);
    if (std::max({kernel[a], stride[a], padding[a]}) > kLargestSize ||
        reached > kLargestSize / stride[a])
      throw make_error<ShapeError>(where(op), ": kernel ", kernel[a], ", stride ", stride[a],
                                   " or padding ", padding[a], " is too large: sizes overflow");
    const std::int64_t least =
        (x.size(x.rank() - axes + k) - 1) * stride[a] - 2 * padding[a] + kernel[a];
    sizes.push_back(wanted.empty() ? least : wanted[a]);
    if (sizes[a] <= least - stride[a] || sizes[a] >= least + stride[a] || sizes[a] < 0)
      throw make_error<ValueError>(where(op), ": the output has size ", sizes[a], " on axis ", k,
                                   ", must be between ", least - stride[a], " and ",
                                   least + stride[a]);
  }
  return sizes;
}

// Writes values to the indices of each row. Every value gets the gradient at its index, in
// agreement with PyTorch. The gradient of scatter() would be 0 for a value that a later one has
// replaced.
const Function& unpooled_rows() {
  static const Function function(
      "max_unpool",
      [](FunctionContext& context, const Tensor& base, const Tensor& indices, const Tensor& x) {
        context.save({indices});
        return scatter(base, 1, indices, x);
      },
      [](const FunctionContext& context, const Tensor& g) {
        return std::vector<Tensor>{{}, {}, gather(g, 1, context.saved()[0])};
      });
  return function;
}

// Writes x [.., C, axes…] at the indices of a plane of `sizes`, zeros elsewhere.
Tensor unpooled(const char* op, const Tensor& x, const Tensor& indices, const Ints& sizes) {
  if (indices.shape() != x.shape())
    throw make_error<ShapeError>(where(op), ": the indices are ", indices.shape(), ", must be ",
                                 x.shape(), " as the input");
  const auto axes = static_cast<int>(sizes.size());
  std::int64_t planes = 1, plane = 1;
  for (int axis = 0; axis < x.rank() - axes; ++axis) planes *= x.size(axis);
  for (const std::int64_t size : sizes) plane *= size;
  Ints out(x.shape().begin(), x.shape().end() - axes);
  out.insert(out.end(), sizes.begin(), sizes.end());
  if (x.numel() == 0) return zeros(to_shape(out), x.dtype());
  const Ints rows{planes, x.numel() / planes};
  return reshape(
      unpooled_rows()(zeros({planes, plane}, x.dtype()), reshape(indices, rows), reshape(x, rows)),
      out);
}

void require_planes(const char* op, const Tensor& x, int axes, const char* wanted) {
  if (x.rank() != axes + 1 && x.rank() != axes + 2)
    throw make_error<ShapeError>(where(op), ": the input is ", x.shape(), ", must be ", wanted);
}

}  // namespace

Placed numbered(const char* op, const Tensor& x, int axes) {
  if (is_bool(x.dtype()))
    throw make_error<DTypeError>(where(op), ": the input is bool, cast it to a number first");
  if (is_integer(x)) return {x, numbers_of(x, axes, DType::Int64)};
  std::int64_t count = 1;
  for (int axis = x.rank() - axes; axis < x.rank(); ++axis) count *= x.size(axis);
  const DType wide =
      x.dtype() == DType::Float64 || count > kCountedByFloat ? DType::Float64 : DType::Float32;
  return {cast(x, wide), numbers_of(x, axes, wide)};
}

// A window that is completely outside the plane because of dilation has index 0.
ValuesAndIndices finished(const Placed& y, const Tensor& x) {
  return {cast(y.values, x.dtype()), maximum(cast(y.places, DType::Int64), 0)};
}

namespace {

ValuesAndIndices without_batch(const ValuesAndIndices& y) {
  return {squeeze(y.values, 0), squeeze(y.indices, 0)};
}

}  // namespace

ValuesAndIndices max_pool1d_with_indices(const Tensor& x, const Pool1dOptions& options) {
  constexpr const char* kName = "max_pool1d_with_indices";
  const Called called(kName);
  if (has_no_batch(x, 3)) return without_batch(max_pool1d_with_indices(unsqueeze(x, 0), options));
  require_pool_rank(kName, x, 3, "[N, C, L]");
  const ValuesAndIndices y = max_pool2d_with_indices(unsqueeze(x, 2), as_row(options));
  return {squeeze(y.values, 2), squeeze(y.indices, 2)};
}

ValuesAndIndices max_pool2d_with_indices(const Tensor& x, const Pool2dOptions& options) {
  constexpr const char* kName = "max_pool2d_with_indices";
  const Called called(kName);
  if (has_no_batch(x, 4)) return without_batch(max_pool2d_with_indices(unsqueeze(x, 0), options));
  require_pool_rank(kName, x, 4, "[N, C, H, W]");
  return finished(pooled_maxima(numbered(kName, x, 2), pool_attrs(options)), x);
}

ValuesAndIndices max_pool3d_with_indices(const Tensor& x, const Pool3dOptions& options) {
  constexpr const char* kName = "max_pool3d_with_indices";
  const Called called(kName);
  if (has_no_batch(x, 5)) return without_batch(max_pool3d_with_indices(unsqueeze(x, 0), options));
  require_pool_rank(kName, x, 5, "[N, C, D, H, W]");
  const Shape s = x.shape();
  const auto shaped = [](const Placed& p, const Ints& sizes) {
    return of_both(p, [&](const Tensor& t) { return reshape(t, sizes); });
  };
  Placed y = pooled_maxima(shaped(numbered(kName, x, 3), {s[0], s[1] * s[2], s[3], s[4]}),
                           of_images(options));
  const std::int64_t height = y.values.size(2), width = y.values.size(3);
  if (!keeps_depth(options))
    y = pooled_maxima(shaped(y, {s[0], s[1], s[2], height * width}), of_depth(options));
  const std::int64_t depth = keeps_depth(options) ? s[2] : y.values.size(2);
  return finished(shaped(y, {s[0], s[1], depth, height, width}), x);
}

Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Pool1dOptions& pool,
                    std::optional<std::int64_t> output) {
  constexpr const char* kName = "max_unpool1d";
  const Called called(kName);
  require_defined(kName, x, indices);
  require_planes(kName, x, 1, "[N, C, L] or [C, L]");
  return unpooled(kName, x, indices,
                  unpooled_sizes(kName, x, {pool.kernel}, {pool.stride}, {pool.padding},
                                 output ? Ints{*output} : Ints{}));
}

Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Pool2dOptions& pool,
                    std::optional<Pair> output) {
  constexpr const char* kName = "max_unpool2d";
  const Called called(kName);
  require_defined(kName, x, indices);
  require_planes(kName, x, 2, "[N, C, H, W] or [C, H, W]");
  const auto both = [](Pair p) { return Ints{p.h, p.w}; };
  return unpooled(kName, x, indices,
                  unpooled_sizes(kName, x, both(pool.kernel), both(pool.stride), both(pool.padding),
                                 output ? both(*output) : Ints{}));
}

Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Pool3dOptions& pool,
                    std::optional<Triple> output) {
  constexpr const char* kName = "max_unpool3d";
  const Called called(kName);
  require_defined(kName, x, indices);
  require_planes(kName, x, 3, "[N, C, D, H, W] or [C, D, H, W]");
  const auto all = [](Triple t) { return Ints{t.d, t.h, t.w}; };
  return unpooled(kName, x, indices,
                  unpooled_sizes(kName, x, all(pool.kernel), all(pool.stride), all(pool.padding),
                                 output ? all(*output) : Ints{}));
}

}  // namespace tenon
