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
#include "graph/node_index.h"

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

/// A walk that builds a new graph from a graph. Most nodes stay the same; for these the walk
/// touches no reference count.
class GraphRewriter {
 public:
  explicit GraphRewriter(const Roots& roots) : roots_(roots) {}

  /// Calls f(node, inputs) for every node that is not evaluated yet. f returns the node's
  /// replacement, given the replacements of its inputs.
  template <class F>
  Roots run(F&& f) {
    const NumberedOrder& order = roots_.order();
    done_.reserve(order.nodes.size());
    std::vector<Node*> inputs;
    for (Node* node : order.nodes) {
      if (node->realised()) {
        done_.push_back(node);
        continue;
      }
      inputs.clear();
      bool changed = false;
      for (Node* in : node->in()) {
        Node* const now = done_[order.index[in]];
        inputs.push_back(now);
        changed |= now != in;
      }
      Tensor out = f(*node, std::span<Node* const>(inputs));
      if (!out.defined() && changed) out = with_inputs(*node, inputs);
      if (!out.defined() || out.node() == node) {
        done_.push_back(node);
      } else {
        done_.push_back(out.node());
        made_.push_back(std::move(out));
      }
    }
    return result();
  }

  /// The node, rebuilt with these inputs.
  Tensor with_inputs(const Node& node, std::span<Node* const> inputs) {
    const LabelGuard label(node.label);
    return make_node(node.op, node.dtype, node.shape, node.attrs, tensors(inputs));
  }
  /// Valid until the next call.
  std::span<const Tensor> tensors(std::span<Node* const> nodes) {
    tensors_.clear();
    for (Node* node : nodes) tensors_.emplace_back(node);
    return tensors_;
  }

 private:
  Roots result() const {
    const NumberedOrder& order = roots_.order();
    bool kept = true;
    std::vector<Tensor> result;
    result.reserve(roots_.size());
    for (const Tensor& root : roots_) {
      result.emplace_back(done_[order.index[root.node()]]);
      kept = kept && result.back().node() == root.node();
    }
    return kept ? roots_ : Roots(std::move(result));
  }

  const Roots& roots_;
  std::vector<Node*> done_;   // by number
  std::vector<Tensor> made_;  // the new ones among them, which are not part of the old graph
  std::vector<Tensor> tensors_;
};

}  // namespace tenon
