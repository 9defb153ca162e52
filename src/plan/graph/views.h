// View nodes of a graph that are not evaluated yet: reshapes, permutations and similar ops.
#pragma once

#include "graph/node.h"

namespace tenon {

inline bool is_view(const Node& node) {
  return !node.realised() && kind_of(node.op) == OpKind::View;
}

/// The node that a view is a view of, through views of views; any other node itself.
inline Node* base_of(Node* node) {
  while (is_view(*node)) node = node->input(0);
  return node;
}

}  // namespace tenon
