// Normalisation: batch statistics, and functions that subtract a mean and divide by a deviation.
// They are built from reductions and element-wise ops, so they fuse and can be differentiated
// again. Local response normalisation across channels is a primitive op, because GPUs have one
// kernel for it.
//
// 16-bit values are cast to float32: sums, means and deviations are float32; the result has x's
// dtype.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/functional.h>

#include "base/epsilon.h"
#include "base/make_error.h"
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

// A vector of channels that broadcasts to x [N, C, …]: [C, 1, …].
Tensor by_channel(const Tensor& v, const Tensor& x, const char* op, const char* what) {
  if (v.rank() != 1 || v.size(0) != x.size(1))
    throw make_error<ShapeError>(where(op), ": the ", what, " is ", v.shape(), ", must be [",
                                 x.size(1), "]: one for each channel of the input ", x.shape());
  Ints sizes(static_cast<std::size_t>(x.rank() - 1), 1);
  sizes[0] = v.size(0);
  return reshape(cast(v, x.dtype()), sizes);
}

void check_channels(const Tensor& x, const char* op) {
  if (x.rank() < 2)
    throw make_error<ShapeError>(where(op), ": the input is ", x.shape(),
                                 ", must be [N, C, …]: it has no channels");
}

void check_last_axes(const char* op, const Tensor& input, const Shape& shape) {
  const int axes = shape.rank(), first = input.rank() - axes;
  bool fits = axes > 0 && first >= 0;
  for (int axis = 0; fits && axis < axes; ++axis) fits = input.size(first + axis) == shape[axis];
  if (!fits)
    throw make_error<ShapeError>(where(op), ": the input is ", input.shape(),
                                 ", its last axes must be ", shape);
}

Moments moments(const Tensor& x, const Ints& axes) {
  const Tensor m = mean(x, axes, true);
  return {m, mean(square(x - m), axes, true)};
}

Tensor normalised(const Tensor& x, const Moments& m, double eps) {
  return (x - m.mean) * rsqrt(m.var + eps);
}

// The mean over the channels up to `before` before and up to `after` after each channel of x [N, C,
// …]: average pooling along the channel axis that counts the zeros beyond the ends. If the two
// sides differ by one, one zero is padded explicitly and the window's own padding does the rest.
Tensor near_mean(const Tensor& x, std::int64_t before, std::int64_t after) {
  const Ints sizes(x.shape().begin(), x.shape().end());
  const std::int64_t channels = x.size(1), samples = x.size(0),
                     places = x.numel() / (samples * channels);
  const Tensor planes = reshape(x, {samples, 1, channels, places});
  const std::int64_t both = std::min(before, after);
  Pool2dOptions window;
  window.kernel = {before + after + 1, 1};
  window.stride = {1, 1};
  window.padding = {both, 0};
  const bool centred = before == after;
  return reshape(
      avg_pool2d(centred ? planes : pad(planes, {0, 0, before - both, after - both}), window),
      sizes);
}

// Values that local response normalisation and its gradients share, in float32 or float64.
struct Response {
  const ResponseAttrs& o;
  Tensor x, scale, power;  // scale is k + alpha mean; power is scale to the -beta

  Response(const Tensor& out)
      : o(out.node()->attrs.as<ResponseAttrs>()), x(in_float32(input_of(out, 0))) {
    scale = near(square(x)) * o.alpha + o.k;
    power = pow(scale, -o.beta);
  }
  Tensor near(const Tensor& t) const { return near_mean(t, o.before(), o.after()); }
  /// The transpose of near().
  Tensor spread(const Tensor& t) const { return near_mean(t, o.after(), o.before()); }
  double slope() const { return 2 * o.alpha * o.beta; }
};

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
  Tensor y = x - by_channel(mean, x, kName, "mean");
  // The moments of no elements are NaN; the weight's gradient, a sum over no elements, must be
  // zero.
  if (x.numel() == 0) y = x, scale = ones_like(scale);
  if (weight.defined()) scale = scale * by_channel(weight, x, kName, "weight");
  y = y * scale;
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
      throw make_error<ShapeError>(where("layer_norm"), ": the ", t == &weight ? "weight" : "bias",
                                   " is ", t->shape(), ", must be ", shape);
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
    throw make_error<ShapeError>(where("rms_norm"), ": the weight is ", weight.shape(),
                                 ", must be ", shape);
  const Tensor x = in_float32(input);
  Ints last;
  for (int axis = input.rank() - shape.rank(); axis < x.rank(); ++axis) last.push_back(axis);
  const double small =
      eps ? *eps : epsilon_of(is_floating(input.dtype()) ? input.dtype() : x.dtype());
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
    throw make_error<ValueError>(where(kName), ": ", input.size(1), " channels do not divide into ",
                                 groups, " groups");
  const Tensor x = in_float32(input);
  const Ints sizes(x.shape().begin(), x.shape().end());
  const std::int64_t count = x.numel() == 0 ? 0 : x.numel() / (x.size(0) * groups);
  const Tensor rows = reshape(x, {x.size(0), groups, count});
  Tensor y = reshape(normalised(rows, moments(rows, {2}), eps), sizes);
  if (weight.defined()) y = y * by_channel(weight, x, kName, "weight");
  if (bias.defined()) y = y + by_channel(bias, x, kName, "bias");
  return in_type_of(y, input);
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  constexpr const char* kName = "instance_norm";
  const Called called(kName);
  require_defined(kName, x);
  if (x.rank() < 3)
    throw make_error<ShapeError>(where(kName), ": the input is ", x.shape(), ", must be [N, C, …]");
  if (x.size(1) == 0) return x;
  if (x.numel() == x.size(0) * x.size(1) && x.numel() > 0)
    throw make_error<ValueError>(where(kName), ": the input ", x.shape(),
                                 " has one value per channel, so there is no variance");
  return group_norm(x, x.size(1), weight, bias, eps);
}

Tensor local_response_norm(const Tensor& input, std::int64_t size, double alpha, double beta,
                           double k) {
  require_defined("local_response_norm", input);
  constexpr const char* kName = "local_response_norm";
  check_channels(input, kName);
  if (size < 1)
    throw make_error<ValueError>(where(kName), ": size is ", size, ", must be at least 1");
  if (input.numel() == 0) return input;
  const ResponseAttrs attrs{size, alpha, beta, k};
  return in_type_of(build(Op::ResponseNorm, {in_float32(input)}, attrs), input);
}

Tensor local_contrast_norm(const Tensor& input, const LocalContrastNormOptions& o) {
  constexpr const char* kName = "local_contrast_norm";
  const Called called(kName);
  if (input.rank() != 4)
    throw make_error<ShapeError>(where(kName), ": x is ", input.shape(), ", must be [N, C, H, W]");
  if (!is_floating(input.dtype()))
    throw make_error<DTypeError>(where(kName), ": x is ", input.dtype(), ", must be floating");
  if (o.size < 1)
    throw make_error<ValueError>(where(kName), ": size is ", o.size, ", must be at least 1");
  const Tensor x = in_float32(input);
  Tensor deviation = x;
  if (o.means.defined()) {
    deviation = x - cast(o.means, x.dtype());
    if (deviation.shape() != x.shape())
      throw make_error<ShapeError>(where(kName), ": the means are ", o.means.shape(),
                                   ", which do not broadcast to ", x.shape());
  }
  const std::int64_t before = (o.size - 1) / 2, behind = o.size / 2;
  const Tensor padded = pad(square(deviation), {before, behind, before, behind});
  const Tensor near = avg_pool2d(padded, {.kernel = {o.size, o.size}, .stride = {1, 1}});
  return in_type_of(x * pow(near * o.alpha + o.k, -o.beta), input);
}

// ---- Local response normalisation: rules -------------------------------------------------------

Inferred infer_response_norm(const Node& node) {
  require_floating(node, "cast it first");
  const Node& x = *node.input(0);
  if (x.shape.rank() < 2)
    throw make_error<ShapeError>(where(node), ": the input is ", x.shape, ", must be [N, C, …]");
  const std::int64_t size = node.attrs.as<ResponseAttrs>().size;
  if (size < 1 || size > kLargestSize)
    throw make_error<ShapeError>(where(node), ": ", size, " channels around each; at least 1");
  return {x.dtype, x.shape};
}

Inferred infer_response_norm_grad(const Node& node) {
  require_same_dtype(node);
  require_same_shape(node);
  return infer_response_norm(node);
}

Gradients vjp_response_norm(const Tensor& out, const Tensor& g) {
  return {build(Op::ResponseNormGrad, {input_of(out, 0), g}, out.node()->attrs)};
}

Tensor decompose_response_norm(const Tensor& out) {
  const Response r(out);
  return in_type_of(r.x * r.power, out);
}

Tensor decompose_response_norm_grad(const Tensor& out) {
  const Response r(out);
  const Tensor g = in_float32(input_of(out, 1));
  const Tensor through = r.spread(g * r.x * pow(r.scale, -r.o.beta - 1));
  return in_type_of(g * r.power - r.slope() * (r.x * through), out);
}

// Gradient of sum(h dx), with dx = g s^-beta - c x spread(t), t = g x s^(-beta - 1): the second
// term is c sum(near(h x) t).
Gradients vjp_response_norm_grad(const Tensor& out, const Tensor& cotangent) {
  const Response r(out);
  const Tensor g = in_float32(input_of(out, 1)), h = in_float32(cotangent);
  const double c = r.slope();
  const Tensor steep = pow(r.scale, -r.o.beta - 1), t = g * r.x * steep, near = r.near(h * r.x);
  const Tensor by_scale = c * (r.o.beta + 1) * (near * t / r.scale) - r.o.beta * (h * g * steep);
  const Tensor dx =
      2 * r.o.alpha * (r.x * r.spread(by_scale)) - c * (h * r.spread(t) + near * g * steep);
  const Tensor dg = h * r.power - c * (near * r.x * steep);
  return {in_type_of(dx, out), in_type_of(dg, out)};
}

}  // namespace tenon
