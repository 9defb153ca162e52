// Graph-to-graph passes: pure functions from the requested tensors to equivalent tensors. They run
// before lowering (lower.h). Passes over regions and steps do not belong here.
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

/// The requested tensors of a graph and its nodes in order. The order is computed once, when the
/// first pass asks for it.
class Roots {
 public:
  explicit Roots(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}

  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }
  std::size_t size() const { return tensors_.size(); }
  /// Whether both have the same order, already computed.
  bool is_same(const Roots& other) const { return order_ != nullptr && order_ == other.order_; }
  const NumberedOrder& order() const {
    if (order_ == nullptr) order_ = std::make_shared<const NumberedOrder>(numbered_order(tensors_));
    return *order_;
  }

 private:
  std::vector<Tensor> tensors_;
  mutable std::shared_ptr<const NumberedOrder> order_;  // shared by copies
};

/// The replacement of a node, given its rewritten inputs. An undefined tensor keeps the node
/// (rebuilt if its inputs changed).
using RewriteRule = std::function<Tensor(Node& node, std::span<const Tensor> inputs)>;
/// A cheap test whether a rule may apply to a node with these inputs.
using RewriteTest = bool (*)(const Node& node, std::span<Node* const> inputs);
/// Applies the rule to every node for which `concerns` is true, inputs before users.
Roots rewrite(const Roots& roots, const RewriteRule& rule, RewriteTest concerns = nullptr);

/// Throws InternalError if a node's dtype or shape differs from what its row of the op table
/// infers.
Roots verify_graph(Roots roots, const PlanOptions& options);
/// Writes ops with several results in other ops if no engine of the device supports them. On a GPU
/// strided convolutions become convolutions of stride 1, and convolutions over few channels become
/// convolutions over more channels.
Roots legalize(Roots roots, const PlanOptions& options);
/// Evaluates element-wise ops and views of constants at planning time.
Roots fold_constants(Roots roots, const PlanOptions& options);
/// Removes nodes without effect. A convolution over its whole input becomes a matrix product. Views
/// and casts that change nothing go away. Chains of reshapes and of permutes become one. A
/// transposed product is computed transposed in the first place.
Roots drop_noops(Roots roots, const PlanOptions& options);
/// Moves factors that are constant along the axes of a sum out of the sum (plan/sum_rules.h).
Roots factors(Roots roots, const PlanOptions& options);
/// Common subexpression elimination: equal nodes become one.
Roots share(Roots roots, const PlanOptions& options);
/// Moves masks and sums behind the gradient of max pooling in front of it (plan/pool_rules.h).
Roots before_pooling(Roots roots, const PlanOptions& options);
/// Rounds the operands of float32 contractions to the precision that was chosen. Sums and results
/// stay float32.
Roots autocast(Roots roots, const PlanOptions& options);
/// Writes composite ops in other ops. On a GPU it also converts wide rows of class scores to 16
/// bits and pads them to 128-byte lines (plan/pad_logit_rows.h).
Roots decompose(Roots roots, const PlanOptions& options);

}  // namespace tenon
