// Strided convolutions on a GPU, rewritten as convolutions of stride 1, for which the device has
// fast kernels.
#pragma once

#include <span>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

/// The rewritten node, or an undefined tensor if no rule fits. `inputs` are the node's rewritten
/// inputs.
Tensor without_stride(const Node& node, std::span<const Tensor> inputs);

/// The input gradient of a strided 1 x 1 convolution over a 16-bit NHWC activation: a matrix
/// product of pixels, whose results are spread to their positions. Undefined if it does not fit.
Tensor spread_pixels(const Node& node, std::span<const Tensor> inputs);

}  // namespace tenon
