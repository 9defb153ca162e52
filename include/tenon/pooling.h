// Pooling over one axis and three; over two it stands in ops.h. The layers are in pooling_layers.h.
#pragma once

#include <array>
#include <cstdint>

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
/// x [N, C, L]. As max_pool2d() and avg_pool2d(). Throw ShapeError, ValueError or DTypeError.
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
/// x [N, C, D, H, W]. Means of 16-bit values, and gradients where windows overlap, are rounded
/// once. Throw ShapeError, ValueError or DTypeError.
TENON_API Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options = {});
TENON_API Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options = {});

/// Mean and maximum over windows such that `output` places come out, as of adaptive_avg_pool2d(): x
/// [N, C, L] or [C, L], [N, C, D, H, W] or [C, D, H, W].
TENON_API Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output);
TENON_API Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output);
TENON_API Tensor adaptive_avg_pool3d(const Tensor& x, const std::array<std::int64_t, 3>& output);
TENON_API Tensor adaptive_max_pool3d(const Tensor& x, const std::array<std::int64_t, 3>& output);

}  // namespace tenon
