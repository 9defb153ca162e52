// Gradients: grad() follows the graph of an output backwards and builds the graph of the gradients.
// There is no tape; gradients can be differentiated again.
#pragma once

#include <span>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// The gradients of `output` with respect to the inputs, each of its input's shape and dtype.
/// `output` must be a scalar, unless `seed` (of the output's shape) gives the vector of a
/// vector-Jacobian product. Inputs that do not influence the output get zeros. Throws ShapeError,
/// DTypeError for integer tensors, or NotSupported with the reason if an operation has no gradient.
/// PyTorch: `torch.autograd.grad`.
TENON_API std::vector<Tensor> grad(const Tensor& output, std::span<const Tensor> inputs,
                                   const Tensor& seed = {});
/// The gradient with respect to one input.
TENON_API Tensor grad(const Tensor& output, const Tensor& input, const Tensor& seed = {});

}  // namespace tenon
