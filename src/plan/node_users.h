// Who reads each node of a graph.
#pragma once

#include <vector>

#include "graph/node.h"
#include "graph/node_index.h"

namespace tenon {

/// By a node's number in an order, which must outlive it.
class NodeUsers {
 public:
  explicit NodeUsers(const NumberedOrder& order) : order_(order), users_(order.nodes.size()) {
    for (const Node* node : order.nodes)
      if (!node->realised())
        for (Node* in : node->in()) users_[order.index[in]].push_back(node);
  }
  const std::vector<const Node*>& of(const Node* node) const { return users_[order_.index[node]]; }

 private:
  const NumberedOrder& order_;
  std::vector<std::vector<const Node*>> users_;
};

}  // namespace tenon
