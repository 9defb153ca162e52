// Rewriting of graphs: the requested tensors of a graph, and walks that build a new graph from it.
// The rules of the passes are in other files.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <tenon/tensor.h>

#include "graph/node.h"
#include "graph/order.h"
#include "plan/program/pass_tally.h"
#include "plan/program/program.h"

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

/// A cheap test whether a rule may apply to a node.
using NodeTest = bool (*)(const Node& node);
/// Applies the rule to every node that is not evaluated yet and for which `concerns` is true.
/// Walks the graph only if there is such a node.
Roots rewrite_where(const Roots& roots, NodeTest concerns, const RewriteRule& rule);

/// The rewrite of a pass that shares its walk with others.
struct NodeRule {
  PassId pass;
  RewriteTest matches;  // exact: the rule replaces every node for which this holds
  RewriteRule replacement;
};
/// The log that the rules of a walk write to.
struct RuleLog {
  PassTally& tally;
  bool checks = false;  // throw InternalError if a replacement has another dtype or shape
};
/// Applies to every node for which `concerns` is true the first rule that matches and whose pass is
/// switched on. Walks the graph only if there is such a node.
Roots apply_rules(const Roots& roots, const PlanOptions& options, NodeTest concerns,
                  std::span<const NodeRule> rules, const RuleLog& log);

/// A walk that builds a new graph from a graph. Most nodes stay the same; for these the walk
/// touches no reference count.
class GraphRewriter {
 public:
  explicit GraphRewriter(const Roots& roots) : roots_(roots) {}

  /// Calls replace(node, inputs) for every node that is not evaluated yet and for which `concerns`
  /// is null or true. It returns the node's replacement, given the replacements of its inputs;
  /// undefined: the node is kept, rebuilt if its inputs changed.
  using Replace = std::function<Tensor(Node& node, std::span<Node* const> inputs)>;
  Roots run(NodeTest concerns, const Replace& replace);

  /// The node, rebuilt with these inputs.
  Tensor with_inputs(const Node& node, std::span<Node* const> inputs);
  /// Valid until the next call.
  std::span<const Tensor> tensors(std::span<Node* const> nodes) {
    tensors_.clear();
    for (Node* node : nodes) tensors_.emplace_back(node);
    return tensors_;
  }

 private:
  Roots result() const;

  const Roots& roots_;
  std::vector<Node*> done_;   // replacement of each node, by number
  std::vector<Tensor> made_;  // owns the new nodes among them, which are not part of the old graph
  std::vector<Tensor> tensors_;
};

}  // namespace tenon
