// Pooling over one and three axes, with the functions over two axes that ops.h does not have:
// pooling with indices, unpooling, power-average pooling. The layers are in pooling_layers.h.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/ops.h>

namespace tenon {

/// Options of one-dimensional pooling.
struct Pool1dOptions {
  std::int64_t kernel = 2;        ///< Size of the window.
  std::int64_t stride = 0;        ///< Step of the window; 0: its size.
  std::int64_t padding = 0;       ///< Padding on each side.
  std::int64_t dilation = 1;      ///< Distance of the window's elements; maxima only.
  bool ceil_mode = false;         ///< Round the output size up instead of down.
  bool count_include_pad = true;  ///< Averages only: count the padding in the divisor.
  std::int64_t divisor = 0;       ///< Averages only: divisor of the sums; 0: the window's size.
};
/// Maximum of each window of x [N, C, L] or [C, L], as max_pool2d(). Throws ShapeError, ValueError
/// or DTypeError.
TENON_API Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options = {});
/// Mean of each window of x [N, C, L] or [C, L], as avg_pool2d(). Throws ShapeError, ValueError or
/// DTypeError.
TENON_API Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options = {});

/// Sum of each window (padding counts as zeros) divided by `divisor`, PyTorch's `divisor_override`.
/// A divisor of 0 means the default of avg_pool2d().
TENON_API Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options, std::int64_t divisor);

/// Options of three-dimensional pooling. Triples are (depth, height, width).
struct Pool3dOptions {
  Triple kernel = 2;              ///< Size of the window.
  Triple stride = 0;              ///< Step of the window; 0: its size.
  Triple padding = 0;             ///< Padding on each side.
  Triple dilation = 1;            ///< Distance of the window's elements; maxima only.
  bool ceil_mode = false;         ///< Round the output size up instead of down.
  bool count_include_pad = true;  ///< Averages only: count the padding in the divisor.
  std::int64_t divisor = 0;       ///< Averages only: divisor of the sums; 0: the window's size.
};
/// Maximum of each window of x [N, C, D, H, W] or [C, D, H, W]. For 16-bit x, gradients of
/// overlapping windows are summed before they are rounded. Throws ShapeError, ValueError or
/// DTypeError.
TENON_API Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options = {});
/// Mean of each window of x [N, C, D, H, W] or [C, D, H, W]. For 16-bit x, means and gradients of
/// overlapping windows are rounded once. Throws ShapeError, ValueError or DTypeError.
TENON_API Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options = {});

/// Mean over windows whose sizes are chosen so that the output has `output` elements, as
/// adaptive_avg_pool2d(): x [N, C, L] or [C, L].
TENON_API Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output);
/// Maximum over the windows of adaptive_avg_pool1d().
TENON_API Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output);
/// Mean over windows whose sizes are chosen so that the output has the sizes `output`, as
/// adaptive_avg_pool2d(): x [N, C, D, H, W] or [C, D, H, W].
TENON_API Tensor adaptive_avg_pool3d(const Tensor& x, Triple output);
/// Maximum over the windows of adaptive_avg_pool3d().
TENON_API Tensor adaptive_max_pool3d(const Tensor& x, Triple output);

/// Max pooling that also returns the position of each maximum (PyTorch's `return_indices=True`).
/// `indices` is int64 of the output's shape. It holds the row-major index of the element within its
/// signal, image or volume; of equal maxima the first. A window whose dilated elements are all
/// outside has the index 0. Shapes of x are those of the functions without indices. Throws
/// ShapeError, ValueError or DTypeError.
/// @{
TENON_API ValuesAndIndices max_pool1d_with_indices(const Tensor& x,
                                                   const Pool1dOptions& options = {});
TENON_API ValuesAndIndices max_pool2d_with_indices(const Tensor& x,
                                                   const Pool2dOptions& options = {});
TENON_API ValuesAndIndices max_pool3d_with_indices(const Tensor& x,
                                                   const Pool3dOptions& options = {});
TENON_API ValuesAndIndices adaptive_max_pool1d_with_indices(const Tensor& x, std::int64_t output);
TENON_API ValuesAndIndices adaptive_max_pool2d_with_indices(const Tensor& x, Pair output);
TENON_API ValuesAndIndices adaptive_max_pool3d_with_indices(const Tensor& x, Triple output);
/// @}

/// Partial inverse of max pooling with indices: writes the values of x [N, C, P, Q] (or without N;
/// one or three axes likewise) to their indices in planes [H, W] and zeros elsewhere. `pool` holds
/// the options of the pooling. Without an output size, each size is (P - 1) · stride - 2 · padding
/// + kernel; a given size may differ from this by less than a stride. Of equal indices the last one
/// wins; every value receives the gradient at its index. An index out of range is a ValueError at
/// run time. Throws ShapeError, ValueError or DTypeError.
/// @{
TENON_API Tensor max_unpool1d(const Tensor& x, const Tensor& indices,
                              const Pool1dOptions& pool = {},
                              std::optional<std::int64_t> output = {});
TENON_API Tensor max_unpool2d(const Tensor& x, const Tensor& indices,
                              const Pool2dOptions& pool = {}, std::optional<Pair> output = {});
TENON_API Tensor max_unpool3d(const Tensor& x, const Tensor& indices,
                              const Pool3dOptions& pool = {}, std::optional<Triple> output = {});
/// @}

/// Power-average pooling: (number of elements of the window · mean of x^p over it)^(1 / p). p =
/// infinity gives the largest |x| and -infinity the smallest. The gradient at 0 is 0. Only kernel,
/// stride and ceil_mode of the options are used. Shapes of x are those of the adaptive functions.
/// Throws ShapeError, ValueError or DTypeError.
/// @{
TENON_API Tensor lp_pool1d(const Tensor& x, double p, const Pool1dOptions& options = {});
TENON_API Tensor lp_pool2d(const Tensor& x, double p, const Pool2dOptions& options = {});
TENON_API Tensor lp_pool3d(const Tensor& x, double p, const Pool3dOptions& options = {});
/// @}

/// Fractional max pooling (Graham, 2014): maxima of windows of `kernel` elements whose places are
/// chosen at random so that the output has `output` elements, of x [N, C, H, W] or [C, H, W]. Each
/// maximum comes with its index in the flattened image. `samples` [N, C, 2], numbers in [0, 1),
/// decide the places along the width and the height; by default they are drawn. PyTorch:
/// `torch.nn.functional.fractional_max_pool2d`.
TENON_API ValuesAndIndices fractional_max_pool2d(const Tensor& x, Pair kernel, Pair output,
                                                 const Tensor& samples = {},
                                                 const OptionalGenerator& generator = {});
/// The same for volumes [N, C, D, H, W] or [C, D, H, W]; `samples` [N, C, 3] are for depth, height
/// and width.
TENON_API ValuesAndIndices fractional_max_pool3d(const Tensor& x, Triple kernel, Triple output,
                                                 const Tensor& samples = {},
                                                 const OptionalGenerator& generator = {});

}  // namespace tenon
