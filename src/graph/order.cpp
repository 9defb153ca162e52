// One depth-first walk that needs no recursion.
#include "graph/order.h"

#include <cstdint>

namespace tenon {

NumberedOrder numbered_order(std::span<const Tensor> roots, bool through_values) {
  NumberedOrder out;
  struct Frame {
    Node* node;
    int next;
    std::uint32_t slot;  // in the index
  };
  std::vector<Frame> stack;
  // Nodes are scattered in memory, and most of a walk is spent waiting for them.
  const auto enter = [&](Node* node) {
    const std::uint32_t slot = out.index.slot_of(node);
    if (out.index.at_slot(slot) != NodeIndex::kAbsent) return;
    out.index.at_slot(slot) = 0;
    for (const Node* in : node->in()) __builtin_prefetch(in);
    stack.push_back({node, 0, slot});
  };
  for (const Tensor& root : roots) {
    if (root.defined()) enter(root.node());
    while (!stack.empty()) {
      Frame& top = stack.back();
      if ((through_values || !top.node->realised()) && top.next < top.node->input_count) {
        enter(top.node->input(top.next++));
      } else {
        out.index.at_slot(top.slot) = static_cast<std::uint32_t>(out.nodes.size());
        out.nodes.push_back(top.node);
        stack.pop_back();
      }
    }
  }
  return out;
}

std::vector<Node*> topological_order(std::span<const Tensor> roots, bool through_values) {
  return numbered_order(roots, through_values).nodes;
}

}  // namespace tenon
