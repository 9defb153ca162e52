// What may be done in front of max pooling's gradient instead of behind it, where the tensor is
// smaller and the work can join the kernel that makes it; and which poolings number their maxima
// for that gradient.
#pragma once

#include <span>
#include <unordered_map>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

/// The node in other words, or an undefined tensor when no rule fits. `inputs` are its rewritten
/// inputs.
Tensor before_pool_grad(const Node& node, std::span<const Tensor> inputs);

bool is_max_pool_grad(const Node& node);

/// Poolings of a graph that is lowered whose gradients are asked for, by their images and
/// attributes, and the items that stand for them.
class NumberedPools {
 public:
  struct Pool {
    const Attrs* attrs = nullptr;
    int item = -1, maxima = -1, numbers = -1;  // the pooling and its results, once they are made
  };
  static const Op kOp;

  void add_gradient(const Node& gradient);
  /// `node`: a pooling, or the gradient of one. Null where no gradient is asked for.
  Pool* find(const Node& node);

 private:
  std::unordered_multimap<const Node*, Pool> pools_;
};

}  // namespace tenon
