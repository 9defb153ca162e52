// Convolutions over images of few channels, on a GPU that keeps activations in NHWC. A graph
// rewrite; the layout itself is chosen in plan/layout.h.
#pragma once

#include <span>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

/// Rewrites a convolution over an image, or its weight gradient, so that a row of channels is a
/// multiple of 16 bytes. Returns an undefined tensor if the rule does not fit. `inputs` are the
/// node's rewritten inputs.
Tensor with_full_channels(const Node& node, std::span<const Tensor> inputs);

}  // namespace tenon
