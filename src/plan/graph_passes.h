// Graph to graph passes: pure functions from the wanted tensors to equivalent ones. They run before
// anything is lowered.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <tenon/tensor.h>

#include "graph/node_index.h"
#include "plan/program.h"

namespace tenon {

/// What is wanted of a graph, and its nodes in order: a walk through all of them, which is made
/// once, when the first pass asks.
class Roots {
 public:
  explicit Roots(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}

  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }
  std::size_t size() const { return tensors_.size(); }
  /// Whether the two are one, which has been walked through.
  bool is_same(const Roots& other) const { return order_ != nullptr && order_ == other.order_; }
  const NumberedOrder& order() const {
    if (order_ == nullptr) order_ = std::make_shared<const NumberedOrder>(numbered_order(tensors_));
    return *order_;
  }

 private:
  std::vector<Tensor> tensors_;
  mutable std::shared_ptr<const NumberedOrder> order_;  // of copies too
};

/// What a node becomes, given its rewritten inputs; an undefined tensor keeps it (rebuilt if its
/// inputs changed).
using RewriteRule = std::function<Tensor(Node& node, std::span<const Tensor> inputs)>;
/// Whether a rule may have anything to say about a node whose inputs have become these.
using RewriteTest = bool (*)(const Node& node, std::span<Node* const> inputs);
/// Applies the rule to every node that it concerns, inputs before users.
Roots rewrite(const Roots& roots, const RewriteRule& rule, RewriteTest concerns = nullptr);

/// Throws InternalError when a node's dtype or shape is not what its row infers.
Roots verify_graph(Roots roots, const PlanOptions& options);
/// Ops with several results that no engine of the device knows are written out in others; on a GPU
/// strided convolutions in ones of stride 1, and those over images of few channels in ones of
/// more.
Roots legalize(Roots roots, const PlanOptions& options);
/// Element-wise ops and views of constants become constants.
Roots fold_constants(Roots roots, const PlanOptions& options);
/// A convolution over its whole input becomes the matrix product it is. Views and casts that change
/// nothing go away; chains of reshapes and of permutes become one; a transposed product is computed
/// transposed in the first place.
Roots drop_noops(Roots roots, const PlanOptions& options);
/// What is constant along the axes of a sum is taken out of it (plan/sum_rules.h).
Roots factors(Roots roots, const PlanOptions& options);
/// Equal nodes become one.
Roots share(Roots roots, const PlanOptions& options);
/// Masks and sums behind max pooling's gradient are taken in front of it.
Roots before_pooling(Roots roots, const PlanOptions& options);
/// Contractions of float32 get operands of the precision that was chosen (float32 sums and
/// results).
Roots autocast(Roots roots, const PlanOptions& options);
/// Composites are written out in other ops; on a GPU, wide rows of scores get 16 bits and whole
/// lines of memory (plan/pad_logit_rows.h).
Roots decompose(Roots roots, const PlanOptions& options);

}  // namespace tenon
