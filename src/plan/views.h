// Views of a graph that are still to be computed: reshapes, permutations and their like.
#pragma once

#include "graph/node.h"

namespace tenon {

inline bool is_view(const Node& node) {
  return !node.realised() && kind_of(node.op) == OpKind::View;
}

/// What a node is a view of, through views of views; of others, the node.
inline Node* base_of(Node* node) {
  while (is_view(*node)) node = node->input(0);
  return node;
}

}  // namespace tenon
