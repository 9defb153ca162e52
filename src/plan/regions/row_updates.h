// Row updates: an assignment of a scatter into the assigned variable itself. The scatter writes
// only the rows that change, in the variable's own memory, if nothing else reads its result.
#pragma once

#include <span>
#include <unordered_set>

#include "graph/order.h"

namespace tenon {

class RowUpdates {
 public:
  explicit RowUpdates(const NumberedOrder& order) : order_(order) {}
  void find(std::span<const Tensor> roots);
  /// Whether the value of the assignment is a scatter that may write in place.
  bool contains(const Node& assignment) const { return found_.contains(&assignment); }

 private:
  const NumberedOrder& order_;
  std::unordered_set<const Node*> found_;
};

}  // namespace tenon
