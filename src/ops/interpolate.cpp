// Interpolation (resizing) of images and other spatial data, axis by axis: nearest element, linear
// or cubic between elements, and weighted means of all elements that a smaller image covers.
#include <algorithm>
#include <cmath>
#include <vector>

#include <tenon/error.h>
#include <tenon/pooling.h>
#include <tenon/resampling.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/resample.h"

namespace tenon {
namespace {

// One axis of an image that is resized.
struct Resized {
  int axis;
  std::int64_t from, size;
  double scale;      // elements of the input for one of the output
  bool from_factor;  // the scale is not the quotient of the sizes
};

Tensor nearest_along(const Tensor& x, const Resized& r, bool exact) {
  if (!exact && !r.from_factor && r.size % r.from == 0)
    return repeat_interleave(x, r.size / r.from, r.axis);
  if (!exact && !r.from_factor)
    return index_select(x, r.axis, floor_divide(arange(0, r.size) * r.from, r.size));
  // PyTorch computes these positions in float32.
  const auto scale = static_cast<float>(r.scale);
  std::vector<std::int64_t> index;
  for (std::int64_t i = 0; i < r.size; ++i) {
    const float place = (static_cast<float>(i) + (exact ? 0.5F : 0.0F)) * scale;
    index.push_back(std::min(static_cast<std::int64_t>(place), r.from - 1));
  }
  return index_select(x, r.axis,
                      Tensor::from_data(index.data(), {r.size}, DType::Int64, x.device()));
}

// The position in the input of each element of the output.
Tensor places(const Tensor& x, const Resized& r, bool align_corners) {
  const Tensor number = arange(0, r.size, 1, x.dtype());
  if (align_corners)
    return number *
           (r.size == 1 ? 0.0 : static_cast<double>(r.from - 1) / static_cast<double>(r.size - 1));
  return (number + 0.5) * r.scale - 0.5;
}

Tensor as_column(const Tensor& x, int axis, const Tensor& weight) {
  Ints column(static_cast<std::size_t>(x.rank()), 1);
  column[static_cast<std::size_t>(axis)] = weight.size(0);
  return reshape(weight, column);
}

Tensor linear_along(const Tensor& x, const Resized& r, bool align_corners) {
  const Tensor place = maximum(places(x, r, align_corners), 0.0);
  const Tensor low = minimum(floor(place), static_cast<double>(r.from - 1));
  const Tensor first = cast(low, DType::Int64), second = minimum(first + 1, r.from - 1);
  const Tensor weight = as_column(x, r.axis, place - low);
  const Tensor a = index_select(x, r.axis, first), b = index_select(x, r.axis, second);
  return a * (1 - weight) + b * weight;
}

Tensor cubic_along(const Tensor& x, const Resized& r, bool align_corners) {
  const Tensor place = places(x, r, align_corners), low = floor(place);
  const std::array<Tensor, 4> weights = cubic_weights(place - low, -0.75);
  Tensor sum;
  for (int k = 0; k < 4; ++k) {
    const Tensor index =
        minimum(maximum(cast(low, DType::Int64) + (k - 1), std::int64_t{0}), r.from - 1);
    const Tensor part =
        index_select(x, r.axis, index) * as_column(x, r.axis, weights[static_cast<std::size_t>(k)]);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

std::int64_t truncated(double x) { return static_cast<std::int64_t>(x); }
double triangle(double t) { return std::max(1 - std::fabs(t), 0.0); }
// With the slope -0.5 of PIL.
double cubic(double t) {
  const double x = std::fabs(t);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

// A product with the matrix [size, from] of weights, whose rows add up to 1.
Tensor antialiased_along(const Tensor& x, const Resized& r, bool align_corners, bool is_cubic) {
  const double scale = !align_corners ? r.scale
                       : r.size == 1
                           ? 0
                           : static_cast<double>(r.from - 1) / static_cast<double>(r.size - 1);
  const double reach = (is_cubic ? 2 : 1) * std::max(scale, 1.0), by = 1 / std::max(scale, 1.0);
  std::vector<double> matrix(static_cast<std::size_t>(r.size * r.from), 0);
  for (std::int64_t i = 0; i < r.size; ++i) {
    const double center = scale * (static_cast<double>(i) + 0.5);
    const auto low = std::max(truncated(center - reach + 0.5), std::int64_t{0}),
               high = std::min(truncated(center + reach + 0.5), r.from);
    double* row = matrix.data() + i * r.from;
    double total = 0;
    for (std::int64_t j = low; j < high; ++j) {
      const double t = (static_cast<double>(j) - center + 0.5) * by;
      total += row[j] = is_cubic ? cubic(t) : triangle(t);
    }
    for (std::int64_t j = low; j < high && total != 0; ++j) row[j] /= total;
  }
  const Tensor weights = cast(
      Tensor::from_data(matrix.data(), {r.size, r.from}, DType::Float64, x.device()), x.dtype());
  return transpose(matmul(transpose(x, r.axis, -1), transpose(weights)), r.axis, -1);
}

Tensor along(const Tensor& x, const Resized& r, const InterpolateOptions& options) {
  const bool is_cubic = options.mode == Interpolation::Cubic;
  if (options.antialias) return antialiased_along(x, r, options.align_corners, is_cubic);
  switch (options.mode) {
    case Interpolation::Linear:
      return linear_along(x, r, options.align_corners);
    case Interpolation::Cubic:
      return cubic_along(x, r, options.align_corners);
    default:
      return nearest_along(x, r, options.mode == Interpolation::NearestExact);
  }
}

// Means over adaptive windows are pooling.
Tensor mean_of_areas(const Tensor& x, const Ints& sizes) {
  switch (sizes.size()) {
    case 1:
      return adaptive_avg_pool1d(x, sizes[0]);
    case 2:
      return adaptive_avg_pool2d(x, {sizes[0], sizes[1]});
    case 3:
      return adaptive_avg_pool3d(x, {sizes[0], sizes[1], sizes[2]});
    default:
      throw make_error<ShapeError>(where("interpolate"), ": areas of ", x.shape(),
                                   ": the input has one to three axes after [N, C]");
  }
}

Ints resized(const Tensor& x, const Ints& sizes, const InterpolateOptions& options) {
  const OpPlace at = where("interpolate");
  const std::vector<double>& factors = options.scale_factors;
  if (!factors.empty() && !sizes.empty())
    throw make_error<ValueError>(at, ": sizes and scale factors: give one of the two");
  const std::size_t given = factors.empty() ? sizes.size() : factors.size();
  if (x.rank() != static_cast<int>(given) + 2)
    throw make_error<ShapeError>(at, ": ", given, " sizes for an input of ", x.shape(),
                                 ": give one for each axis after [N, C]");
  Ints out = sizes;
  for (std::size_t k = 0; k < factors.size(); ++k) {
    const double size =
        std::floor(static_cast<double>(x.size(static_cast<int>(k) + 2)) * factors[k]);
    if (!(size >= 1 && size < static_cast<double>(kLargestSize)))
      throw make_error<ValueError>(at, ": the scale factor ", factors[k], " for ", x.shape(),
                                   " gives no size of at least 1");
    out.push_back(static_cast<std::int64_t>(size));
  }
  return out;
}

void check(const Tensor& x, const InterpolateOptions& options) {
  const OpPlace at = where("interpolate");
  const bool between =
      options.mode == Interpolation::Linear || options.mode == Interpolation::Cubic;
  const bool selects =
      options.mode == Interpolation::Nearest || options.mode == Interpolation::NearestExact;
  if (!is_floating(x.dtype()) && !selects)
    throw make_error<DTypeError>(at, ": takes floating tensors, not ", x.dtype(),
                                 ": cast it first");
  if (options.align_corners && !between)
    throw make_error<ValueError>(at, ": align_corners requires linear or cubic interpolation");
  if (options.antialias && !between)
    throw make_error<ValueError>(at, ": antialias requires linear or cubic interpolation");
}

}  // namespace

std::array<Tensor, 4> cubic_weights(const Tensor& t, double a) {
  const auto near = [a](const Tensor& x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [a](const Tensor& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

Tensor interpolate(const Tensor& x, const Ints& sizes, const InterpolateOptions& options) {
  const Called called("interpolate");
  require_defined("interpolate", x);
  const Ints wanted = resized(x, sizes, options);
  check(x, options);
  for (std::size_t k = 0; k < wanted.size(); ++k)
    if (wanted[k] < 1 || x.size(static_cast<int>(k) + 2) < 1)
      throw make_error<ShapeError>(where("interpolate"), ": from ", x.size(static_cast<int>(k) + 2),
                                   " to ", wanted[k], " elements on axis ", k + 2);
  if (options.mode == Interpolation::Area) return mean_of_areas(x, wanted);
  // For 16-bit elements, coordinates, weights and intermediate results between two axes are
  // float32.
  const bool mixes = options.mode == Interpolation::Linear || options.mode == Interpolation::Cubic;
  const bool upcasts = mixes && item_size(x.dtype()) == 2;
  Tensor y = upcasts ? cast(x, DType::Float32) : x;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const int axis = static_cast<int>(k) + 2;
    const std::int64_t from = x.size(axis);
    const bool scales = !options.scale_factors.empty();
    const double scale = scales ? 1 / options.scale_factors[k]
                                : static_cast<double>(from) / static_cast<double>(wanted[k]);
    if (wanted[k] == from && (!scales || scale == 1 || options.align_corners)) continue;
    y = along(y, {axis, from, wanted[k], scale, scales}, options);
  }
  return cast(y, x.dtype());
}

Tensor interpolate(const Tensor& x, const Ints& sizes, Interpolation mode, bool align_corners) {
  return interpolate(x, sizes, InterpolateOptions{.mode = mode, .align_corners = align_corners});
}

}  // namespace tenon
