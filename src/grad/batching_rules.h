// How single ops are computed for a whole batch.
//
// A rule gets the operands of one node. A batched operand is a stack: the values for all samples
// along a new first axis. The other operands are the same for all samples. A rule returns the
// stacks of the node's results, or nothing if there is no batched form.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/tensor.h>

#include "graph/node.h"

namespace tenon {

/// One node and its operands.
struct BatchedNode {
  const Node& node;
  std::int64_t size = 0;         // number of samples
  std::vector<Tensor> operands;  // a stack, or the same for all samples
  std::vector<char> batched;     // by operand

  bool is_batched(int k) const { return batched[static_cast<std::size_t>(k)] != 0; }
  /// Operand k as a stack.
  Tensor stack(int k) const;
  std::vector<Tensor> stacks() const;
  /// Operand k if it is the state of a generator: it has the same value for all samples, even where
  /// it is a stack (grad/recompute.cpp).
  Tensor state(int k) const;
};

/// The tensor for each of `size` samples.
Tensor repeated_for_each(const Tensor& x, std::int64_t size);
/// The shape of a stack.
Shape stacked_shape(std::int64_t size, const Shape& sample);

/// A stack with its batch axis merged into an axis of the samples, in front of the axis.
Tensor fold_batch(const Tensor& stack, int axis);
/// The inverse of fold_batch() on a result of `size` samples.
Tensor unfold_batch(const Tensor& x, int axis, std::int64_t size);

std::vector<Tensor> batched_matmul(const BatchedNode& of);
std::vector<Tensor> batched_convolution(const BatchedNode& of);
/// Rules of all ops but leaves, loops, and what graphs refer to across nodes (batching.cpp).
std::vector<Tensor> batched_op(const BatchedNode& of);

}  // namespace tenon
