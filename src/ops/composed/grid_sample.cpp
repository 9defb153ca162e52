// Sampling of images at the positions of a grid, and affine grids.
//
// The spatial axes are flattened. Each neighbour of a position is one gather() of all channels,
// times a weight that depends on the coordinates; gradients flow into both.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/resampling.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/resample.h"

namespace tenon {
namespace {

// At the bounds the gradient is 0, as in PyTorch.
Tensor clipped(const Tensor& x, std::int64_t size) {
  const auto last = static_cast<double>(size - 1);
  return where(le(x, 0), 0, where(ge(x, last), last, x));
}

// Mirrors at low and high.
Tensor reflected(const Tensor& x, double low, double high) {
  const double span = high - low;
  if (span <= 0) return zeros_like(x);
  const Tensor shifted = x - low, size = where(lt(shifted, 0), -shifted, shifted);
  const Tensor rest = remainder(size, span), turns = floor(size / span);
  return where(eq(remainder(turns, 2.0), 0), rest + low, span - rest + low);
}

// A coordinate in pixels, moved into the image as the padding says.
Tensor placed(const Tensor& x, std::int64_t size, const GridOptions& options) {
  const auto last = static_cast<double>(size - 1);
  switch (options.padding) {
    case GridPadding::Border:
      return clipped(x, size);
    case GridPadding::Reflection:
      return clipped(options.align_corners ? reflected(x, 0, last) : reflected(x, -0.5, last + 0.5),
                     size);
    default:
      return x;
  }
}

// Neighbours of a position along one axis and their weights.
struct Taps {
  std::vector<Tensor> at, weight;  // [N, positions], floating
};

Taps taps_along(const Tensor& grid, std::int64_t size, const GridOptions& options) {
  const auto pixels = static_cast<double>(size);
  const Tensor position =
      options.align_corners ? (grid + 1) * ((pixels - 1) / 2) : ((grid + 1) * pixels - 1) * 0.5;
  if (options.mode == GridMode::Nearest) return {{round(placed(position, size, options))}, {{}}};
  if (options.mode == GridMode::Bilinear) {
    const Tensor x = placed(position, size, options), first = floor(x), part = x - first;
    return {{first, first + 1}, {1 - part, part}};
  }
  const Tensor first = floor(position);
  const std::array<Tensor, 4> weights = cubic_weights(position - first, -0.75);
  Taps taps;
  for (int k = 0; k < 4; ++k) {
    taps.at.push_back(placed(first + (k - 1), size, options));
    taps.weight.push_back(weights[static_cast<std::size_t>(k)]);
  }
  return taps;
}

// The sum over the neighbours along axes a, a + 1, … of the products of weights and pixels.
class Sampler {
 public:
  Sampler(const Tensor& x, std::vector<Taps> taps)
      : x_(x), taps_(std::move(taps)), flat_(reshape(x, {x.size(0), x.size(1), -1})) {}

  Tensor sum() {
    add(0, Tensor(), Tensor(), Tensor());
    return sum_;
  }

 private:
  // `index`, `inside` and `weight` combine the axes before `a`; undefined before the first one.
  void add(std::size_t a, const Tensor& index, const Tensor& inside, const Tensor& weight) {
    if (a == taps_.size()) return add_pixel(index, inside, weight);
    const std::int64_t size = x_.size(static_cast<int>(a) + 2);
    for (std::size_t k = 0; k < taps_[a].at.size(); ++k) {
      const Tensor& at = taps_[a].at[k];
      const Tensor& by = taps_[a].weight[k];
      const Tensor valid = ge(at, 0) & lt(at, static_cast<double>(size));
      const Tensor number = cast(where(valid, detach(at), 0), DType::Int64);
      add(a + 1, index.defined() ? index * size + number : number,
          inside.defined() ? inside & valid : valid,
          weight.defined() && by.defined() ? weight * by
          : by.defined()                   ? by
                                           : weight);
    }
  }
  void add_pixel(const Tensor& index, const Tensor& inside, const Tensor& weight) {
    const Shape shape{x_.size(0), x_.size(1), index.size(1)};
    const Tensor pixel = gather(flat_, 2, broadcast_to(unsqueeze(index, 1), shape));
    const Tensor seen = unsqueeze(inside, 1);
    const Tensor part =
        weight.defined() ? pixel * where(seen, unsqueeze(weight, 1), 0) : where(seen, pixel, 0);
    sum_ = sum_.defined() ? sum_ + part : part;
  }

  const Tensor x_;
  const std::vector<Taps> taps_;
  const Tensor flat_;
  Tensor sum_;
};

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridOptions& options) {
  const Called called("grid_sample");
  const OpPlace at = where("grid_sample");
  require_defined("grid_sample", x, grid);
  const int spatial = x.rank() - 2;
  if ((spatial != 2 && spatial != 3) || grid.rank() != x.rank() || grid.size(0) != x.size(0) ||
      grid.size(-1) != spatial)
    throw make_error<ShapeError>(at, ": x ", x.shape(), " and a grid ", grid.shape(),
                                 "; they must be [N, C, H, W] and [N, .., .., 2], or [N, C, D, H, "
                                 "W] and [N, .., .., .., 3]");
  for (int d = 2; d < x.rank(); ++d)
    if (x.size(d) == 0)
      throw make_error<ShapeError>(at, ": an image ", x.shape(), " without pixels");
  if (!is_floating(x.dtype()) || x.dtype() != grid.dtype())
    throw make_error<DTypeError>(at, ": x is ", x.dtype(), ", the grid ", grid.dtype(),
                                 "; they must be of one floating type");
  const DType computed = x.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  const Tensor positions = reshape(cast(grid, computed), {x.size(0), -1, spatial});
  std::vector<Taps> taps;
  taps.reserve(static_cast<std::size_t>(spatial));
  for (int d = 0; d < spatial; ++d)  // the last axis of the image is the first coordinate
    taps.push_back(taps_along(select(positions, 2, spatial - 1 - d), x.size(d + 2), options));
  Ints sizes{x.size(0), x.size(1)};
  for (int d = 1; d <= spatial; ++d) sizes.push_back(grid.size(d));
  return cast(reshape(Sampler(cast(x, computed), std::move(taps)).sum(), sizes), x.dtype());
}

Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners) {
  const Called called("affine_grid");
  require_defined("affine_grid", theta);
  const int spatial = size.rank() - 2;
  if ((spatial != 2 && spatial != 3) || theta.shape() != Shape{size[0], spatial, spatial + 1})
    throw make_error<ShapeError>(where("affine_grid"), ": theta ", theta.shape(), " for a size ",
                                 size,
                                 "; they must be [N, 2, 3] for [N, C, H, W], or [N, 3, 4] "
                                 "for [N, C, D, H, W]");
  Shape pixels;
  for (int d = 0; d < spatial; ++d) pixels.push_back(size[d + 2]);
  std::vector<Tensor> columns;
  for (int d = spatial - 1; d >= 0; --d) {
    const std::int64_t count = pixels[d];
    const double edge = count <= 1 ? 0
                        : align_corners
                            ? 1
                            : static_cast<double>(count - 1) / static_cast<double>(count);
    Ints column(static_cast<std::size_t>(spatial), 1);
    column[static_cast<std::size_t>(d)] = count;
    columns.push_back(broadcast_to(reshape(count <= 1 ? zeros({count}, theta.dtype())
                                                      : linspace(-edge, edge, count, theta.dtype()),
                                           column),
                                   pixels));
  }
  columns.push_back(ones(pixels, theta.dtype()));
  const Tensor base = reshape(stack(columns, -1), {1, -1, spatial + 1});
  Ints sizes{size[0]};
  for (int d = 0; d < spatial; ++d) sizes.push_back(pixels[d]);
  sizes.push_back(spatial);
  return reshape(matmul(base, transpose(theta)), sizes);
}

}  // namespace tenon
