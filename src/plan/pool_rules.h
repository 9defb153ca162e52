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

/// Poolings of a graph that is lowered, by their images and attributes: those that a gradient is
/// asked of, and the items that stand for them.
class NumberedPools {
 public:
  struct Pool {
    const Attrs* attrs = nullptr;
    int item = -1, maxima = -1;  // and its second result, where that is read
  };
  static const Op kOp;

  void add_gradient(const Node& gradient) {
    gradients_.emplace(gradient.input(0), &gradient.attrs);
  }
  /// `node`: the pooling, or its gradient.
  void add(const Node& node, int item) { pools_.emplace(node.input(0), Pool{&node.attrs, item}); }
  /// Whether the node is a pooling whose gradient is asked for.
  bool has_gradient(const Node& node) const;
  /// Null where there is none yet.
  Pool* find(const Node& gradient);

 private:
  std::unordered_multimap<const Node*, const Attrs*> gradients_;
  std::unordered_multimap<const Node*, Pool> pools_;
};

}  // namespace tenon
