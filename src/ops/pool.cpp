// Pooling over the last axes of [N, C, L], [N, C, H, W] and [N, C, D, H, W], with PyTorch's output
// sizes. 1-D inputs are images of one row. 3-D windows are boxes: images are pooled, then the
// depth; the first maximum of a box is in the first image that contains the maximum.
//
// MaxPool2dGrad writes to, and MaxPool2dGather reads from, each window's first maximum: each is the
// other's gradient, like AvgPool2d and AvgPool2dGrad. The choice of the maximum has no gradient. An
// average over windows centred on every element is its own gradient.
#include <algorithm>
#include <limits>

#include <tenon/error.h>

#include "base/str.h"
#include "ops/infer.h"
#include "ops/pool.h"
#include "ops/rules.h"

namespace tenon {

PoolAttrs pool_attrs(const Pool2dOptions& o) {
  PoolAttrs p;
  p.kernel_h = o.kernel.first;
  p.kernel_w = o.kernel.second;
  p.stride_h = o.stride.first == 0 ? o.kernel.first : o.stride.first;
  p.stride_w = o.stride.second == 0 ? o.kernel.second : o.stride.second;
  p.pad_h = o.padding.first;
  p.pad_w = o.padding.second;
  p.dil_h = o.dilation.first;
  p.dil_w = o.dilation.second;
  p.ceil_mode = o.ceil_mode;
  p.count_include_pad = o.count_include_pad;
  return p;
}

Pool2dOptions as_row(const Pool1dOptions& o) {
  return {{1, o.kernel},  {1, o.stride == 0 ? o.kernel : o.stride},
          {0, o.padding}, {1, o.dilation},
          o.ceil_mode,    o.count_include_pad};
}

PoolAttrs of_images(const Pool3dOptions& o) {
  return pool_attrs({{o.kernel[1], o.kernel[2]},
                     {o.stride[1], o.stride[2]},
                     {o.padding[1], o.padding[2]},
                     {o.dilation[1], o.dilation[2]},
                     o.ceil_mode,
                     o.count_include_pad});
}

PoolAttrs of_depth(const Pool3dOptions& o) {
  return pool_attrs({{o.kernel[0], 1},
                     {o.stride[0] == 0 ? o.kernel[0] : o.stride[0], 1},
                     {o.padding[0], 0},
                     {o.dilation[0], 1},
                     o.ceil_mode,
                     o.count_include_pad});
}

bool keeps_depth(const Pool3dOptions& o) {
  return o.kernel[0] == 1 && (o.stride[0] == 0 || o.stride[0] == 1) && o.padding[0] == 0 &&
         o.dilation[0] == 1;
}

void require_pool_rank(const char* op, const Tensor& x, int rank, const char* wanted) {
  require_defined(op, x);
  if (x.rank() != rank)
    throw ShapeError(cat(where(op), ": input must be ", wanted, " or without N, not ", x.shape()));
}

std::int64_t lowest_whole(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
      return 0;
    case DType::Int8:
      return std::numeric_limits<std::int8_t>::min();
    case DType::Int32:
      return std::numeric_limits<std::int32_t>::min();
    default:
      return std::numeric_limits<std::int64_t>::min();
  }
}

namespace {

std::int64_t pooled_size(const Node& node, std::int64_t in, std::int64_t kernel,
                         std::int64_t stride, std::int64_t pad, std::int64_t dil, bool ceil_mode) {
  if (kernel < 1 || stride < 1 || dil < 1)
    throw ValueError(cat(where(node), ": kernel, stride and dilation start at 1"));
  if (pad < 0 || pad > kernel / 2)
    throw ValueError(cat(where(node), ": padding ", pad, " for a kernel of ", kernel,
                         "; it must be between 0 and half the kernel"));
  if (std::max(kernel, stride) > kLargestSize || dil > kLargestSize / kernel)
    throw ShapeError(cat(where(node), ": kernel ", kernel, ", stride ", stride, " or dilation ",
                         dil, " is too large: sizes overflow"));
  const std::int64_t span = dil * (kernel - 1) + 1, room = in + 2 * pad - span;
  // With ceil_mode the last window may extend past the end by less than a stride.
  if (room < 0 && !(ceil_mode && room + stride - 1 >= 0))
    throw ShapeError(cat(where(node), ": the window covers ", span,
                         " pixels, the padded input has ", in + 2 * pad,
                         ": use a larger input or a smaller kernel"));
  std::int64_t out = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (out - 1) * stride >= in + pad)
    --out;  // a window must start inside the input or its left padding
  return out;
}

Shape pooled_shape(const Node& node, const Shape& x) {
  const auto& p = node.attrs.as<PoolAttrs>();
  if (x.rank() != 4)
    throw ShapeError(cat(where(node), ": input must be [N, C, H, W] or [C, H, W], not ", x));
  const bool ceil_mode = p.ceil_mode != 0;
  return {x[0], x[1], pooled_size(node, x[2], p.kernel_h, p.stride_h, p.pad_h, p.dil_h, ceil_mode),
          pooled_size(node, x[3], p.kernel_w, p.stride_w, p.pad_w, p.dil_w, ceil_mode)};
}

void require_shape(const Node& node, const char* what, const Shape& got, const Shape& wanted) {
  if (got != wanted)
    throw ShapeError(cat(where(node), ": ", what, " is ", got, "; it must be ", wanted));
}

// Integer maxima over windows along one axis, computed from as many slices as the window has
// elements.
Tensor whole_maxima(const Tensor& x, int axis, std::int64_t out, std::int64_t kernel,
                    std::int64_t stride, std::int64_t dil, std::int64_t margin) {
  const std::int64_t reach = (out - 1) * stride + 1, size = x.size(axis);
  Ints padding(static_cast<std::size_t>(2 * (x.rank() - axis)), 0);
  padding[padding.size() - 2] = margin;
  padding[padding.size() - 1] = reach + dil * (kernel - 1) - margin - size;
  const Tensor padded = pad(x, padding, lowest_whole(x.dtype()));
  Tensor best;
  for (std::int64_t k = 0; k < kernel; ++k) {
    const Tensor part = slice(padded, axis, k * dil, k * dil + reach, stride);
    best = best.defined() ? maximum(best, part) : part;
  }
  return best;
}

// Whether i is in j's window exactly when j is in i's, with equal divisors: the matrix of the
// average is then symmetric.
bool is_symmetric(const PoolAttrs& p) {
  const auto centred = [](std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
    return kernel == 2 * pad + 1 && stride == 1;
  };
  return centred(p.kernel_h, p.stride_h, p.pad_h) && centred(p.kernel_w, p.stride_w, p.pad_w) &&
         p.count_include_pad != 0;
}

Tensor whole_max_pool(const Tensor& x, const PoolAttrs& p) {
  const Shape out = pooled_images(x.shape(), p);
  if (out.numel() == 0) return zeros(out, x.dtype());
  const Tensor rows = whole_maxima(x, 2, out[2], p.kernel_h, p.stride_h, p.dil_h, p.pad_h);
  return whole_maxima(rows, 3, out[3], p.kernel_w, p.stride_w, p.dil_w, p.pad_w);
}

Tensor max_pool(const Tensor& x, const PoolAttrs& attrs) {
  const bool whole = is_integral(x.dtype()) && !is_bool(x.dtype());
  return whole ? whole_max_pool(x, attrs) : build(Op::MaxPool2d, {x}, attrs);
}

// Means over windows of which none is clipped: elements outside the image count as zeros.
Tensor mean_of_whole_windows(const Tensor& x, PoolAttrs p) {
  p.count_include_pad = true;
  const Shape out = build(Op::AvgPool2d, {x}, p).shape();
  const std::int64_t rows = (out[2] - 1) * p.stride_h + p.kernel_h - (x.size(2) + 2 * p.pad_h),
                     columns = (out[3] - 1) * p.stride_w + p.kernel_w - (x.size(3) + 2 * p.pad_w);
  p.ceil_mode = false;
  const std::int64_t below = std::max<std::int64_t>(rows, 0),
                     beside = std::max<std::int64_t>(columns, 0);
  return build(Op::AvgPool2d, {below + beside == 0 ? x : pad(x, {0, beside, 0, below})}, p);
}

void require_no_dilation(const char* op, bool dilated) {
  if (dilated) throw ValueError(cat(where(op), ": has no dilation"));
}

// `average` of x, or of its 16-bit values in float32. With a divisor, the mean over `window`
// elements is converted to a sum divided by the divisor.
template <class Average>
Tensor divided(const Tensor& x, std::int64_t divisor, double window, const Average& average) {
  const bool upcast = is_floating(x.dtype()) && item_size(x.dtype()) == 2;
  const Tensor y = average(upcast ? cast(x, DType::Float32) : x),
               z = divisor == 0 ? y : y * (window / static_cast<double>(divisor));
  return upcast ? cast(z, x.dtype()) : z;
}

// Pools the images of [N, C, D, H, W], then the depth unless the depth is unchanged.
template <class PoolImages>
Tensor over_boxes(const Tensor& x, const Pool3dOptions& o, const PoolImages& pool) {
  const Shape s = x.shape();
  const Tensor flat = pool(reshape(x, {s[0], s[1] * s[2], s[3], s[4]}), of_images(o));
  const std::int64_t height = flat.size(2), width = flat.size(3);
  if (keeps_depth(o)) return reshape(flat, {s[0], s[1], s[2], height, width});
  const Tensor y = pool(reshape(flat, {s[0], s[1], s[2], height * width}), of_depth(o));
  return reshape(y, {s[0], s[1], y.size(2), height, width});
}

}  // namespace

Placed placed_maxima(const Placed& x, const PoolAttrs& attrs) {
  const Tensor values = build(Op::MaxPool2d, {x.values}, attrs);
  if (!x.places.defined()) return {values, {}};
  return {values, build(Op::MaxPool2dGather, {x.values, x.places}, attrs)};
}

Shape pooled_images(const Shape& x, const PoolAttrs& attrs) {
  return build(Op::MaxPool2d, {zeros(x)}, attrs).shape();  // its row checks the sizes
}

Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options) {
  const Called called("max_pool1d");
  if (has_no_batch(x, 3)) return squeeze(max_pool1d(unsqueeze(x, 0), options), 0);
  require_pool_rank("max_pool1d", x, 3, "[N, C, L]");
  return squeeze(max_pool2d(unsqueeze(x, 2), as_row(options)), 2);
}

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  const Called called("max_pool2d");
  if (has_no_batch(x, 4)) return squeeze(max_pool2d(unsqueeze(x, 0), options), 0);
  return max_pool(x, pool_attrs(options));
}

Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options) {
  const Called called("max_pool3d");
  if (has_no_batch(x, 5)) return squeeze(max_pool3d(unsqueeze(x, 0), options), 0);
  require_pool_rank("max_pool3d", x, 5, "[N, C, D, H, W]");
  // With overlapping windows, gradients are not rounded between images and depth.
  bool overlap = false;
  for (std::size_t k = 0; k < 3; ++k)
    overlap = overlap || (options.stride[k] != 0 && options.stride[k] < options.kernel[k]) ||
              options.dilation[k] != 1;
  const bool upcast = overlap && is_floating(x.dtype()) && item_size(x.dtype()) == 2;
  const Tensor y = over_boxes(upcast ? cast(x, DType::Float32) : x, options, max_pool);
  return upcast ? cast(y, x.dtype()) : y;
}

Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options) {
  const Called called("avg_pool1d");
  if (has_no_batch(x, 3)) return squeeze(avg_pool1d(unsqueeze(x, 0), options), 0);
  require_pool_rank("avg_pool1d", x, 3, "[N, C, L]");
  return squeeze(avg_pool2d(unsqueeze(x, 2), as_row(options), options.divisor), 2);
}

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return avg_pool2d(x, options, 0);
}

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options, std::int64_t divisor) {
  const Called called("avg_pool2d");
  require_defined("avg_pool2d", x);
  if (has_no_batch(x, 4)) return squeeze(avg_pool2d(unsqueeze(x, 0), options, divisor), 0);
  require_no_dilation("avg_pool2d",
                      options.dilation != std::pair<std::int64_t, std::int64_t>{1, 1});
  const PoolAttrs attrs = pool_attrs(options);
  if (divisor == 0) return build(Op::AvgPool2d, {x}, attrs);
  return divided(x, divisor,
                 static_cast<double>(attrs.kernel_h) * static_cast<double>(attrs.kernel_w),
                 [&](const Tensor& wide) { return mean_of_whole_windows(wide, attrs); });
}

Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options) {
  const Called called("avg_pool3d");
  if (has_no_batch(x, 5)) return squeeze(avg_pool3d(unsqueeze(x, 0), options), 0);
  require_pool_rank("avg_pool3d", x, 5, "[N, C, D, H, W]");
  const auto& [depth, height, width] = options.kernel;
  require_no_dilation("avg_pool3d", options.dilation != std::array<std::int64_t, 3>{1, 1, 1});
  const double window =
      static_cast<double>(depth) * static_cast<double>(height) * static_cast<double>(width);
  return divided(x, options.divisor, window, [&](const Tensor& wide) {
    return over_boxes(wide, options, [&](const Tensor& images, const PoolAttrs& attrs) {
      return options.divisor == 0 ? build(Op::AvgPool2d, {images}, attrs)
                                  : mean_of_whole_windows(images, attrs);
    });
  });
}

// ---- Inference --------------------------------------------------------------------------------

Inferred infer_max_pool2d(const Node& node) {
  require_floating(node, "cast it first");
  return {node.input(0)->dtype, pooled_shape(node, node.input(0)->shape)};
}

Inferred infer_avg_pool2d(const Node& node) { return infer_max_pool2d(node); }

Inferred infer_max_pool2d_grad(const Node& node) {
  require_floating(node, "cast it first");
  require_same_dtype(node);
  const Shape& x = node.input(0)->shape;
  require_shape(node, "the output's gradient", node.input(1)->shape, pooled_shape(node, x));
  return {node.input(0)->dtype, x};
}

Inferred infer_max_pool2d_gather(const Node& node) {
  require_floating(node, "cast it first");
  require_same_dtype(node);
  const Shape& x = node.input(0)->shape;
  require_shape(node, "the second input", node.input(1)->shape, x);
  return {node.input(0)->dtype, pooled_shape(node, x)};
}

Inferred infer_avg_pool2d_grad(const Node& node) {
  require_floating(node, "cast it first");
  require_shape(node, "the output's gradient", node.input(0)->shape,
                pooled_shape(node, node.shape));
  return {node.input(0)->dtype, node.shape};
}

// ---- Gradients --------------------------------------------------------------------------------

Gradients vjp_max_pool2d(const Tensor& out, const Tensor& g) {
  return {build(Op::MaxPool2dGrad, {input_of(out, 0), g}, out.node()->attrs)};
}

Gradients vjp_max_pool2d_grad(const Tensor& out, const Tensor& g) {
  return {Tensor{}, build(Op::MaxPool2dGather, {input_of(out, 0), g}, out.node()->attrs)};
}

Gradients vjp_max_pool2d_gather(const Tensor& out, const Tensor& g) {
  return {Tensor{}, build(Op::MaxPool2dGrad, {input_of(out, 0), g}, out.node()->attrs)};
}

Gradients vjp_avg_pool2d(const Tensor& out, const Tensor& g) {
  if (is_symmetric(out.node()->attrs.as<PoolAttrs>()))
    return {build(Op::AvgPool2d, {g}, out.node()->attrs)};
  const Node& x = *out.node()->input(0);
  return {build_as(Op::AvgPool2dGrad, x.dtype, x.shape, {g}, out.node()->attrs)};
}

Gradients vjp_avg_pool2d_grad(const Tensor& out, const Tensor& g) {
  return {build(Op::AvgPool2d, {g}, out.node()->attrs)};
}

}  // namespace tenon
