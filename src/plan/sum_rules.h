// Moves factors that are constant along the axes of a sum out of the sum, so that sums of one
// tensor times different factors become one sum.
#pragma once

#include <span>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

/// The rewritten node, or an undefined tensor if no rule fits. `inputs` are the node's rewritten
/// inputs.
Tensor factor_out_of_sum(const Node& node, std::span<const Tensor> inputs);

/// x, if the node is the sum of (x - mean of x)² with the mean over the summed axes; otherwise
/// null.
Node* summed_deviations(const Node& node);

}  // namespace tenon
