// The nodes below some tensors in topological order.
#pragma once

#include <span>
#include <vector>

#include <tenon/tensor.h>

#include "graph/node.h"
#include "graph/node_index.h"

namespace tenon {

/// Pending nodes and leaves that `roots` depend on, inputs before users, each once. Realised nodes
/// count as leaves, unless `through_values` asks to continue into the inputs that tracked ones
/// keep.
std::vector<Node*> topological_order(std::span<const Tensor> roots, bool through_values = false);

/// topological_order() and the position of each node in it.
struct NumberedOrder {
  std::vector<Node*> nodes;
  NodeIndex index;
};
NumberedOrder numbered_order(std::span<const Tensor> roots, bool through_values = false);

}  // namespace tenon
