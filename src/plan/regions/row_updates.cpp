// Finds assignments that a scatter can carry out by itself.
#include "plan/regions/row_updates.h"

#include <unordered_map>

#include "graph/effects.h"
#include "graph/node.h"

namespace tenon {
namespace {

// The scatter into the assigned variable; null for any other node.
const Node* scatter_of(const Node& node) {
  if (node.op != Op::Assign || node.realised()) return nullptr;
  const Node* value = node.input(1);
  const bool scatters = (value->op == Op::Scatter || value->op == Op::ScatterAdd) &&
                        !value->realised() && value->input(0) == node.input(0);
  return scatters ? value : nullptr;
}

}  // namespace

void RowUpdates::find(std::span<const Tensor> roots) {
  std::unordered_map<const Node*, int> readers;  // of scatters and of their assignments
  for (const Node* node : order_.nodes)
    if (const Node* scatter = scatter_of(*node)) readers[scatter] = readers[node] = 0;
  if (readers.empty()) return;
  const auto count = [&](const Node* read) {
    if (const auto at = readers.find(read); at != readers.end()) ++at->second;
  };
  for (const Node* node : order_.nodes)
    if (!node->realised())
      for (const Node* in : value_inputs(*node)) count(in);
  for (const Tensor& root : roots)
    if (root.node()->op != Op::Assign) count(root.node());
  for (const Node* node : order_.nodes)
    if (const Node* scatter = scatter_of(*node))
      if (readers[scatter] == 1 && readers[node] == 0) found_.insert(node);
}

}  // namespace tenon
