// Sums of squared deviations from a batch mean, which are computed beside the sum of that mean.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "graph/order.h"

namespace tenon {

/// The sum of (x - mean of x)² over a batch is computed from x in the loop nest that sums x, so the
/// deviations themselves need not be computed. For sums over rows this is not done: a row stays in
/// cache, and reading it twice costs nothing.
class DeviationSums {
 public:
  /// Without find() no node is such a sum, and all nodes are needed.
  explicit DeviationSums(const NumberedOrder& order) : order_(order) {}
  void find(std::span<const Tensor> roots);

  int count() const { return static_cast<int>(summed_.size()); }
  /// x, if the node is such a sum; otherwise null.
  const Node* deviations_of(const Node& node) const;
  /// Whether the node is still needed if x replaces the deviations.
  bool is_needed(const Node& node) const {
    return needed_.empty() || needed_[order_.index[&node]] != 0;
  }

 private:
  void mark_needed(std::span<const Tensor> roots);

  const NumberedOrder& order_;
  std::unordered_map<const Node*, const Node*> summed_;
  std::vector<char> needed_;  // whether each node is needed, by number; empty: all are
};

}  // namespace tenon
