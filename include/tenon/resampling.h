// Sampling of images at other positions: interpolation with scale factors and antialiasing, and
// grids of coordinates. Conventions, dtypes and errors are those of ops.h; floating results can be
// differentiated more than once.
#pragma once

#include <vector>

#include <tenon/functional.h>

namespace tenon {

/// Options of interpolate().
struct InterpolateOptions {
  Interpolation mode = Interpolation::Nearest;  ///< How values between elements are computed.
  bool align_corners = false;                   ///< The corners of both images have one position.
  /// Weigh all elements that a smaller image covers, as PIL does. For Linear and Cubic.
  bool antialias = false;
  /// One factor for each axis after the channels, instead of sizes: the size becomes floor(size ·
  /// factor), and positions are computed from the factor.
  std::vector<double> scale_factors = {};
};
/// interpolate() with more options. `sizes` is empty if there are scale factors.
TENON_API Tensor interpolate(const Tensor& x, const Ints& sizes, const InterpolateOptions& options);

/// How grid_sample() computes values between pixels.
enum class GridMode { Bilinear, Nearest, Bicubic };
/// What grid_sample() reads outside the image: zeros, the nearest border pixel, or the image
/// mirrored at its borders.
enum class GridPadding { Zeros, Border, Reflection };
/// Options of grid_sample() and affine_grid().
struct GridOptions {
  GridMode mode = GridMode::Bilinear;        ///< How values between pixels are computed.
  GridPadding padding = GridPadding::Zeros;  ///< Values outside the image.
  bool align_corners = false;  ///< -1 and 1 are the centers of the corner pixels, not their edges.
};
/// Pixels of x [N, C, H, W] at the positions of `grid` [N, P, Q, 2], which are (x, y) in [-1, 1]:
/// [N, C, P, Q]. Volumes [N, C, D, H, W] take a grid [N, O, P, Q, 3] of (x, y, z). Coordinates and
/// weights of 16-bit images are computed in float32. A position that is NaN gives zeros. PyTorch:
/// `torch.nn.functional.grid_sample`.
TENON_API Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridOptions& options = {});
/// The grid of an affine map (Jaderberg et al., "Spatial Transformer Networks", 2015): theta [N, 2,
/// 3] for images of `size` [N, C, H, W] gives [N, H, W, 2]; theta [N, 3, 4] for volumes.
TENON_API Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners = false);

}  // namespace tenon
