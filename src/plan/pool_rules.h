// What may be done in front of max pooling's gradient instead of behind it, where the tensor is
// smaller and the work can join the kernel that makes it.
#pragma once

#include <span>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

/// The node in other words, or an undefined tensor when no rule fits. `inputs` are its rewritten
/// inputs.
Tensor before_pool_grad(const Node& node, std::span<const Tensor> inputs);

}  // namespace tenon
