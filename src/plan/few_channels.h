// Convolutions over images of a few channels, on a GPU that keeps images with the channels last.
#pragma once

#include <span>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

/// A convolution over an image, or the gradient of its filters, said over rows of channels that
/// are whole 16 bytes; an undefined tensor when the rule does not fit. `inputs` are the node's
/// rewritten inputs.
Tensor with_full_channels(const Node& node, std::span<const Tensor> inputs);

}  // namespace tenon
