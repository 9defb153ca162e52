// Strided convolutions on a GPU, said by convolutions of stride 1, which its fast kernels know.
#pragma once

#include <span>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

/// The node in other words, or an undefined tensor when no rule fits. `inputs` are its rewritten
/// inputs.
Tensor without_stride(const Node& node, std::span<const Tensor> inputs);

/// The gradient of a strided convolution by filters of one pixel with respect to an image that lies
/// channels last in 16 bits, as a product of pixels that are put in their places; or nothing.
Tensor spread_pixels(const Node& node, std::span<const Tensor> inputs);

}  // namespace tenon
