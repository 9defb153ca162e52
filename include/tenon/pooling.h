// Pooling over one axis and three, over two where ops.h has it not: places of maxima, their partial
// inverse, power averages. The layers are in pooling_layers.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include <tenon/ops.h>

namespace tenon {

struct Pool1dOptions {
  std::int64_t kernel = 2;
  std::int64_t stride = 0;  ///< 0: the kernel's size
  std::int64_t padding = 0, dilation = 1;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< averages only
  std::int64_t divisor = 0;       ///< averages only: what sums are divided by; 0: the window's size
};
/// x [N, C, L] or [C, L]. As max_pool2d() and avg_pool2d(). Throw ShapeError, ValueError or
/// DTypeError.
TENON_API Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options = {});
TENON_API Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options = {});

/// Sums over windows, zeros beyond the edges, divided by this: PyTorch's divisor_override. 0: as
/// avg_pool2d() without it.
TENON_API Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options, std::int64_t divisor);

struct Pool3dOptions {
  std::array<std::int64_t, 3> kernel{2, 2, 2};
  std::array<std::int64_t, 3> stride{0, 0, 0};  ///< 0: the kernel's size
  std::array<std::int64_t, 3> padding{0, 0, 0}, dilation{1, 1, 1};
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< averages only
  std::int64_t divisor = 0;       ///< averages only: what sums are divided by; 0: the window's size
};
/// x [N, C, D, H, W] or [C, D, H, W]. Means of 16-bit values, and gradients where windows overlap,
/// are rounded once. Throw ShapeError, ValueError or DTypeError.
TENON_API Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options = {});
TENON_API Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options = {});

/// Mean and maximum over windows such that `output` places come out, as of adaptive_avg_pool2d(): x
/// [N, C, L] or [C, L], [N, C, D, H, W] or [C, D, H, W].
TENON_API Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output);
TENON_API Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output);
TENON_API Tensor adaptive_avg_pool3d(const Tensor& x, const std::array<std::int64_t, 3>& output);
TENON_API Tensor adaptive_max_pool3d(const Tensor& x, const std::array<std::int64_t, 3>& output);

/// Maxima, and in `indices` (int64, of the same shape) where each stands: the number of its element
/// in its signal, image or volume, counted along rows; of equal ones the first. PyTorch's
/// return_indices = True. A window that dilation leads past all of it has the index 0. x as
/// max_pool1d(), max_pool2d(), max_pool3d() and the adaptive ones take it. Throw ShapeError,
/// ValueError or DTypeError.
TENON_API ValuesAndIndices max_pool1d_with_indices(const Tensor& x,
                                                   const Pool1dOptions& options = {});
TENON_API ValuesAndIndices max_pool2d_with_indices(const Tensor& x,
                                                   const Pool2dOptions& options = {});
TENON_API ValuesAndIndices max_pool3d_with_indices(const Tensor& x,
                                                   const Pool3dOptions& options = {});
TENON_API ValuesAndIndices adaptive_max_pool1d_with_indices(const Tensor& x, std::int64_t output);
TENON_API ValuesAndIndices
adaptive_max_pool2d_with_indices(const Tensor& x, std::pair<std::int64_t, std::int64_t> output);
TENON_API ValuesAndIndices
adaptive_max_pool3d_with_indices(const Tensor& x, const std::array<std::int64_t, 3>& output);

/// The way back of max_pool2d_with_indices() with these options: x [N, C, P, Q] (or without N) at
/// its indices of planes [H, W], zeros elsewhere. Where no output size is given it is (P - 1) ·
/// stride - 2 · padding + kernel, from which it may differ by less than a stride. Of equal indices
/// the last one wins, and gets the gradient. An index outside is a ValueError at run time. Throw
/// ShapeError, ValueError or DTypeError.
TENON_API Tensor max_unpool1d(const Tensor& x, const Tensor& indices,
                              const Pool1dOptions& pool = {},
                              std::optional<std::int64_t> output = {});
TENON_API Tensor max_unpool2d(const Tensor& x, const Tensor& indices,
                              const Pool2dOptions& pool = {},
                              std::optional<std::pair<std::int64_t, std::int64_t>> output = {});
TENON_API Tensor max_unpool3d(const Tensor& x, const Tensor& indices,
                              const Pool3dOptions& pool = {},
                              const std::optional<std::array<std::int64_t, 3>>& output = {});

/// (elements of a window · the mean of x^p over it)^(1 / p), of infinity the largest |x|, of
/// -infinity the smallest; the gradient at 0 is 0. Kernel, stride and ceil_mode of the options
/// count. x as the adaptive pools take it. Throw ShapeError, ValueError or DTypeError.
TENON_API Tensor lp_pool1d(const Tensor& x, double p, const Pool1dOptions& options = {});
TENON_API Tensor lp_pool2d(const Tensor& x, double p, const Pool2dOptions& options = {});
TENON_API Tensor lp_pool3d(const Tensor& x, double p, const Pool3dOptions& options = {});

}  // namespace tenon
