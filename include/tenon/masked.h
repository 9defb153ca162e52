// Reductions and normalisations of the elements where a mask (bool; broadcasts to x) is true, by
// the names in torch.masked. A reduction over no element gives what starts it: 0 for a sum, 1 for a
// product, the least or largest number of the dtype for an extreme, NaN for a mean or median.
// Conventions, dtypes and errors are those of ops.h; an undefined mask is true everywhere.
#pragma once

#include <optional>

#include <tenon/ops.h>

namespace tenon::masked {

/// Reductions over axes (all axes if none is given).
/// @{
TENON_API Tensor sum(const Tensor& x, const Tensor& mask, const Axes& axes = {},
                     bool keepdim = false);
TENON_API Tensor prod(const Tensor& x, const Tensor& mask, const Axes& axes = {},
                      bool keepdim = false);
TENON_API Tensor mean(const Tensor& x, const Tensor& mask, const Axes& axes = {},
                      bool keepdim = false);
TENON_API Tensor amax(const Tensor& x, const Tensor& mask, const Axes& axes = {},
                      bool keepdim = false);
TENON_API Tensor amin(const Tensor& x, const Tensor& mask, const Axes& axes = {},
                      bool keepdim = false);
TENON_API Tensor logsumexp(const Tensor& x, const Tensor& mask, const Axes& axes = {},
                           bool keepdim = false);
TENON_API Tensor norm(const Tensor& x, const Tensor& mask, double p = 2, const Axes& axes = {},
                      bool keepdim = false);
TENON_API Tensor var(const Tensor& x, const Tensor& mask, const Axes& axes = {},
                     bool keepdim = false, double correction = 1);
TENON_API Tensor stddev(const Tensor& x, const Tensor& mask, const Axes& axes = {},
                        bool keepdim = false, double correction = 1);
/// @}
/// Index along an axis, or in the flattened tensor without one.
/// @{
TENON_API Tensor argmax(const Tensor& x, const Tensor& mask, std::optional<int> axis = {},
                        bool keepdim = false);
TENON_API Tensor argmin(const Tensor& x, const Tensor& mask, std::optional<int> axis = {},
                        bool keepdim = false);
/// @}
/// The lower median along an axis.
TENON_API Tensor median(const Tensor& x, const Tensor& mask, int axis = -1, bool keepdim = false);
/// Along an axis, of the shape of x. Masked elements count as what starts the operation.
/// @{
TENON_API Tensor cumsum(const Tensor& x, const Tensor& mask, int axis);
TENON_API Tensor cumprod(const Tensor& x, const Tensor& mask, int axis);
TENON_API Tensor softmax(const Tensor& x, const Tensor& mask, int axis);
TENON_API Tensor log_softmax(const Tensor& x, const Tensor& mask, int axis);
TENON_API Tensor softmin(const Tensor& x, const Tensor& mask, int axis);
TENON_API Tensor normalize(const Tensor& x, const Tensor& mask, double p, int axis,
                           double eps = 1e-12);
/// @}
/// log(e^a + e^b) of the elements of a and b that their masks leave.
TENON_API Tensor logaddexp(const Tensor& a, const Tensor& b, const Tensor& mask_a = {},
                           const Tensor& mask_b = {});

}  // namespace tenon::masked
