// What is constant along the axes of a sum is taken out of it, so that sums of one tensor times
// different factors become one sum.
#pragma once

#include <span>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

/// The node in other words, or an undefined tensor when no rule fits. `inputs` are its rewritten
/// inputs.
Tensor factor_out_of_sum(const Node& node, std::span<const Tensor> inputs);

/// x, where the node is the sum of (x - mean of x)² and the mean is over the summed axes; else
/// none.
Node* summed_deviations(const Node& node);

}  // namespace tenon
