// Gradients: grad() walks the graph of a scalar backwards and builds more graph. There is no tape;
// gradients differentiate again.
#pragma once

#include <span>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

/// d output / d inputs, each of its input's shape and dtype. `output` is a scalar unless `seed` (of
/// its shape) gives the vector of a vector-Jacobian product. An input that the output does not
/// depend on gets zeros. Throws ShapeError, DTypeError (integers have no gradient) or NotSupported
/// (an op without one, with the reason).
TENON_API std::vector<Tensor> grad(const Tensor& output, std::span<const Tensor> inputs,
                                   const Tensor& seed = {});
TENON_API Tensor grad(const Tensor& output, const Tensor& input, const Tensor& seed = {});

}  // namespace tenon
