// Interpolation (resizing) of images and other spatial data: nearest element, or linear between
// two, axis by axis.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/functional.h>

#include "base/str.h"
#include "ops/infer.h"

namespace tenon {
namespace {

Tensor nearest_along(const Tensor& x, int axis, std::int64_t size) {
  const std::int64_t from = x.size(axis);
  if (size % from == 0) return repeat_interleave(x, size / from, axis);
  return index_select(x, axis, floor_divide(arange(0, size) * from, size));
}

Tensor linear_along(const Tensor& x, int axis, std::int64_t size, bool align_corners) {
  const std::int64_t from = x.size(axis);
  const Tensor number = arange(0, size, 1, x.dtype());
  Tensor place;
  if (align_corners)
    place =
        number * (size == 1 ? 0.0 : static_cast<double>(from - 1) / static_cast<double>(size - 1));
  else
    place = maximum((number + 0.5) * (static_cast<double>(from) / static_cast<double>(size)) - 0.5,
                    0.0);
  const Tensor low = minimum(floor(place), static_cast<double>(from - 1));
  const Tensor first = cast(low, DType::Int64), second = minimum(first + 1, from - 1);
  Ints column(static_cast<std::size_t>(x.rank()), 1);
  column[static_cast<std::size_t>(axis)] = size;
  const Tensor weight = reshape(place - low, column);
  const Tensor a = index_select(x, axis, first), b = index_select(x, axis, second);
  return a * (1 - weight) + b * weight;
}

}  // namespace

Tensor interpolate(const Tensor& x, const Ints& sizes, Interpolation mode, bool align_corners) {
  const Called called("interpolate");
  const std::string at = where("interpolate");
  if (x.rank() != static_cast<int>(sizes.size()) + 2)
    throw ShapeError(cat(at, ": ", sizes.size(), " sizes for an input of ", x.shape(),
                         ": give one for each axis after [N, C]"));
  if (!is_floating(x.dtype()) && mode == Interpolation::Linear)
    throw DTypeError(cat(at, ": takes floating tensors, not ", x.dtype(), ": cast it first"));
  if (align_corners && mode == Interpolation::Nearest)
    throw ValueError(cat(at, ": align_corners requires linear interpolation"));
  // For 16-bit elements, coordinates, weights and intermediate results between two axes are
  // float32.
  const bool upcasts = mode == Interpolation::Linear && item_size(x.dtype()) == 2;
  Tensor y = upcasts ? cast(x, DType::Float32) : x;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const int axis = static_cast<int>(k) + 2;
    if (sizes[k] < 1 || x.size(axis) < 1)
      throw ShapeError(
          cat(at, ": from ", x.size(axis), " to ", sizes[k], " elements on axis ", axis));
    if (sizes[k] == x.size(axis)) continue;
    y = mode == Interpolation::Nearest ? nearest_along(y, axis, sizes[k])
                                       : linear_along(y, axis, sizes[k], align_corners);
  }
  return cast(y, x.dtype());
}

}  // namespace tenon
