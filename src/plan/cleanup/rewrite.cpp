// The walk of rules over a graph.
#include "plan/cleanup/rewrite.h"

#include <algorithm>

namespace tenon {

Roots rewrite(const Roots& roots, const RewriteRule& rule, RewriteTest concerns) {
  GraphRewriter rewriter(roots);
  return rewriter.run([&](Node& node, std::span<Node* const> inputs) -> Tensor {
    if (concerns != nullptr && !concerns(node, inputs)) return {};
    const LabelGuard label(node.label);
    return rule(node, rewriter.tensors(inputs));
  });
}

Roots rewrite_where(const Roots& roots, NodeTest concerns, const RewriteRule& rule) {
  const std::vector<Node*>& nodes = roots.order().nodes;
  const auto is_concerned = [concerns](const Node* node) {
    return !node->realised() && concerns(*node);
  };
  if (std::none_of(nodes.begin(), nodes.end(), is_concerned)) return roots;
  GraphRewriter rewriter(roots);
  return rewriter.run([&](Node& node, std::span<Node* const> inputs) -> Tensor {
    if (!concerns(node)) return {};
    const LabelGuard label(node.label);
    return rule(node, rewriter.tensors(inputs));
  });
}

}  // namespace tenon
