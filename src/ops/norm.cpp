// Normalisation: moments of a batch, and the functions that take away a mean and divide by a
// deviation. All are made of reductions and element-wise ops, so they fuse and differentiate again.
//
// 16-bit values are widened: sums, means and deviations are float32, the result has the dtype of x.
#include <tenon/error.h>
#include <tenon/functional.h>

#include "base/str.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {
namespace {

Tensor in_float32(const Tensor& x) {
  return is_floating(x.dtype()) && item_size(x.dtype()) > 2 ? x : cast(x, DType::Float32);
}

Tensor in_type_of(const Tensor& y, const Tensor& x) {
  return is_floating(x.dtype()) && x.dtype() != y.dtype() ? cast(y, x.dtype()) : y;
}

// A vector of channels beside x [N, C, …]: [C, 1, …].
Tensor by_channel(const Tensor& v, const Tensor& x, const char* op, const char* what) {
  if (v.rank() != 1 || v.size(0) != x.size(1))
    throw ShapeError(cat(where(op), ": the ", what, " is ", v.shape(), ", must be [", x.size(1),
                         "]: one for each channel of the input ", x.shape()));
  Ints sizes(static_cast<std::size_t>(x.rank() - 1), 1);
  sizes[0] = v.size(0);
  return reshape(cast(v, x.dtype()), sizes);
}

void check_channels(const Tensor& x, const char* op) {
  if (x.rank() < 2)
    throw ShapeError(
        cat(where(op), ": the input is ", x.shape(), ", must be [N, C, …]: it has no channels"));
}

void check_last_axes(const char* op, const Tensor& input, const Shape& shape) {
  const int axes = shape.rank(), first = input.rank() - axes;
  bool fits = axes > 0 && first >= 0;
  for (int axis = 0; fits && axis < axes; ++axis) fits = input.size(first + axis) == shape[axis];
  if (!fits)
    throw ShapeError(
        cat(where(op), ": the input is ", input.shape(), ", its last axes must be ", shape));
}

// To the next number of a dtype.
double distance_from_one(DType dtype) {
  switch (dtype) {
    case DType::Float64:
      return 0x1p-52;
    case DType::Float16:
      return 0x1p-10;
    case DType::BFloat16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

Moments moments(const Tensor& x, const Ints& axes) {
  const Tensor m = mean(x, axes, true);
  return {m, mean(square(x - m), axes, true)};
}

Tensor normalised(const Tensor& x, const Moments& m, double eps) {
  return (x - m.mean) * rsqrt(m.var + eps);
}

}  // namespace

Moments batch_moments(const Tensor& input) {
  require_defined("batch_moments", input);
  check_channels(input, "batch_moments");
  const Tensor x = in_float32(input);
  Ints axes{0};
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  const Moments m = moments(x, axes);
  return {reshape(m.mean, {x.size(1)}), reshape(m.var, {x.size(1)})};
}

Tensor batch_norm(const Tensor& input, const Tensor& mean, const Tensor& var, const Tensor& weight,
                  const Tensor& bias, double eps) {
  require_defined("batch_norm", input, mean, var);
  constexpr const char* kName = "batch_norm";
  check_channels(input, kName);
  const Tensor x = in_float32(input);
  Tensor scale = rsqrt(by_channel(var, x, kName, "variance") + eps);
  if (weight.defined()) scale = scale * by_channel(weight, x, kName, "weight");
  Tensor y = (x - by_channel(mean, x, kName, "mean")) * scale;
  if (bias.defined()) y = y + by_channel(bias, x, kName, "bias");
  return in_type_of(y, input);
}

Tensor layer_norm(const Tensor& input, const Shape& shape, const Tensor& weight, const Tensor& bias,
                  double eps) {
  require_defined("layer_norm", input);
  check_last_axes("layer_norm", input, shape);
  const int first = input.rank() - shape.rank();
  for (const Tensor* t : {&weight, &bias})
    if (t->defined() && t->shape() != shape)
      throw ShapeError(cat(where("layer_norm"), ": the ", t == &weight ? "weight" : "bias", " is ",
                           t->shape(), ", must be ", shape));
  const Tensor x = in_float32(input);
  Ints last;
  for (int axis = first; axis < x.rank(); ++axis) last.push_back(axis);
  Tensor y = normalised(x, moments(x, last), eps);
  if (weight.defined()) y = y * cast(weight, x.dtype());
  if (bias.defined()) y = y + cast(bias, x.dtype());
  return in_type_of(y, input);
}

Tensor rms_norm(const Tensor& input, const Shape& shape, const Tensor& weight,
                std::optional<double> eps) {
  require_defined("rms_norm", input);
  check_last_axes("rms_norm", input, shape);
  if (weight.defined() && weight.shape() != shape)
    throw ShapeError(
        cat(where("rms_norm"), ": the weight is ", weight.shape(), ", must be ", shape));
  const Tensor x = in_float32(input);
  Ints last;
  for (int axis = input.rank() - shape.rank(); axis < x.rank(); ++axis) last.push_back(axis);
  const double small =
      eps ? *eps : distance_from_one(is_floating(input.dtype()) ? input.dtype() : x.dtype());
  Tensor y = x * rsqrt(mean(square(x), last, true) + small);
  if (weight.defined()) y = y * cast(weight, x.dtype());
  return in_type_of(y, input);
}

Tensor group_norm(const Tensor& input, std::int64_t groups, const Tensor& weight,
                  const Tensor& bias, double eps) {
  require_defined("group_norm", input);
  constexpr const char* kName = "group_norm";
  check_channels(input, kName);
  if (groups < 1 || input.size(1) % groups != 0)
    throw ValueError(
        cat(where(kName), ": ", input.size(1), " channels do not divide into ", groups, " groups"));
  const Tensor x = in_float32(input);
  const Ints sizes(x.shape().begin(), x.shape().end());
  const std::int64_t count = x.numel() == 0 ? 0 : x.numel() / (x.size(0) * groups);
  const Tensor rows = reshape(x, {x.size(0), groups, count});
  Tensor y = reshape(normalised(rows, moments(rows, {2}), eps), sizes);
  if (weight.defined()) y = y * by_channel(weight, x, kName, "weight");
  if (bias.defined()) y = y + by_channel(bias, x, kName, "bias");
  return in_type_of(y, input);
}

Tensor local_response_norm(const Tensor& input, std::int64_t size, double alpha, double beta,
                           double k) {
  require_defined("local_response_norm", input);
  constexpr const char* kName = "local_response_norm";
  check_channels(input, kName);
  if (size < 1) throw ValueError(cat(where(kName), ": size is ", size, ", must be at least 1"));
  if (input.numel() == 0) return input;
  const Tensor x = in_float32(input);
  const std::int64_t channels = x.size(1), samples = x.size(0);
  const std::int64_t places = channels * samples == 0 ? 0 : x.numel() / (samples * channels);
  // The mean of squares over neighbouring channels: an average pooling along the axis of channels,
  // which counts the zeros beyond its ends. Of an even number of neighbours more lie before: one
  // zero is put there, and the window's own padding does the rest.
  const Tensor squares = reshape(square(x), {samples, 1, channels, places});
  Pool2dOptions window;
  window.kernel = {size, 1};
  window.stride = {1, 1};
  window.padding = {(size - 1) / 2, 0};
  const bool even = size % 2 == 0;
  const Ints sizes(x.shape().begin(), x.shape().end());
  const Tensor near =
      reshape(avg_pool2d(even ? pad(squares, {0, 0, 1, 0}) : squares, window), sizes);
  return in_type_of(x * pow(near * alpha + k, -beta), input);
}

Tensor local_contrast_norm(const Tensor& input, const LocalContrastNormOptions& o) {
  constexpr const char* kName = "local_contrast_norm";
  const Called called(kName);
  if (input.rank() != 4)
    throw ShapeError(cat(where(kName), ": x is ", input.shape(), ", must be [N, C, H, W]"));
  if (!is_floating(input.dtype()))
    throw DTypeError(cat(where(kName), ": x is ", input.dtype(), ", must be floating"));
  if (o.size < 1) throw ValueError(cat(where(kName), ": size is ", o.size, ", must be at least 1"));
  const Tensor x = in_float32(input);
  Tensor deviation = x;
  if (o.means.defined()) {
    deviation = x - cast(o.means, x.dtype());
    if (deviation.shape() != x.shape())
      throw ShapeError(cat(where(kName), ": the means are ", o.means.shape(),
                           ", which do not broadcast to ", x.shape()));
  }
  const std::int64_t before = (o.size - 1) / 2, behind = o.size / 2;
  const Tensor padded = pad(square(deviation), {before, behind, before, behind});
  const Tensor near = avg_pool2d(padded, {.kernel = {o.size, o.size}, .stride = {1, 1}});
  return in_type_of(x * pow(near * o.alpha + o.k, -o.beta), input);
}

}  // namespace tenon
