// Moves work from behind the gradient of max pooling to in front of it. There the tensor is
// smaller, and the work fuses with the kernel that makes it. Also decides which poolings store the
// position of each maximum for the gradient.
#pragma once

#include <unordered_map>

#include "graph/node.h"
#include "plan/cleanup/rewrite.h"
#include "plan/program/program.h"

namespace tenon {

/// Moves masks and sums behind the gradient of max pooling in front of it.
Roots before_pooling(Roots roots, const PlanOptions& options);

bool is_max_pool_grad(const Node& node);

/// Poolings of a graph whose gradients are requested, found by input and attributes, and the items
/// that represent them during lowering.
class NumberedPools {
 public:
  struct Pool {
    const Attrs* attrs = nullptr;
    int item = -1, maxima = -1, numbers = -1;  // the pooling and its two results, once lowered
  };
  static const Op kOp;

  void add_gradient(const Node& gradient);
  /// `node`: a pooling, or the gradient of one. Null if no gradient is requested.
  Pool* find(const Node& node);

 private:
  std::unordered_multimap<const Node*, Pool> pools_;
};

}  // namespace tenon
