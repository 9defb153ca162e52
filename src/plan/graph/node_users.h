// The readers of each node of a graph, built once for an order of nodes.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "graph/node.h"
#include "graph/order.h"

namespace tenon {

/// Indexed by a node's number in an order, which must outlive this object. Stored as compressed
/// rows: all lists in one array.
class NodeUsers {
 public:
  explicit NodeUsers(const NumberedOrder& order) : order_(order), begin_(order.nodes.size() + 1) {
    for (const Node* node : order.nodes)
      if (!node->realised())
        for (const Node* in : node->in()) ++begin_[order.index[in]];
    // Prefix sums give the end of each list; filling the lists from the back turns ends into
    // beginnings.
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    users_.resize(begin_.back());
    for (auto node = order.nodes.rbegin(); node != order.nodes.rend(); ++node) {
      if ((*node)->realised()) continue;
      const std::span<Node* const> in = (*node)->in();
      for (auto read = in.rbegin(); read != in.rend(); ++read)
        users_[--begin_[order.index[*read]]] = *node;
    }
  }
  std::span<const Node* const> of(const Node* node) const {
    const std::uint32_t k = order_.index[node];
    return std::span(users_).subspan(begin_[k], begin_[k + 1] - begin_[k]);
  }

 private:
  const NumberedOrder& order_;
  std::vector<std::uint32_t> begin_;  // start of each node's list, then the end of the last
  std::vector<const Node*> users_;
};

}  // namespace tenon
