// The walk of rules over a graph. It is compiled once, for all passes.
#include "plan/cleanup/rewrite.h"

#include <algorithm>
#include <string>
#include <utility>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon {
namespace {

bool has_work(const Roots& roots, NodeTest concerns) {
  const std::vector<Node*>& nodes = roots.order().nodes;
  return std::any_of(nodes.begin(), nodes.end(),
                     [concerns](const Node* node) { return !node->realised() && concerns(*node); });
}

void check_replacement(PassId pass, const Node& node, const Tensor& by) {
  if (by.dtype() == node.dtype && by.shape() == node.shape) return;
  const std::string from = cat(node.dtype, node.shape), to = cat(by.dtype(), by.shape());
  throw InternalError(cat("the pass ", pass_info(pass).name, " replaces ", from, " by ", to));
}

}  // namespace

Roots GraphRewriter::run(NodeTest concerns, const Replace& replace) {
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
    Tensor out;
    if (concerns == nullptr || concerns(*node)) out = replace(*node, inputs);
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

Tensor GraphRewriter::with_inputs(const Node& node, std::span<Node* const> inputs) {
  const LabelGuard label(node.label);
  return make_node(node.op, node.dtype, node.shape, node.attrs, tensors(inputs));
}

Roots GraphRewriter::result() const {
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

Roots rewrite(const Roots& roots, const RewriteRule& rule, RewriteTest concerns) {
  GraphRewriter rewriter(roots);
  return rewriter.run(nullptr, [&](Node& node, std::span<Node* const> inputs) -> Tensor {
    if (concerns != nullptr && !concerns(node, inputs)) return {};
    const LabelGuard label(node.label);
    return rule(node, rewriter.tensors(inputs));
  });
}

Roots rewrite_where(const Roots& roots, NodeTest concerns, const RewriteRule& rule) {
  if (!has_work(roots, concerns)) return roots;
  GraphRewriter rewriter(roots);
  return rewriter.run(concerns, [&](Node& node, std::span<Node* const> inputs) {
    const LabelGuard label(node.label);
    return rule(node, rewriter.tensors(inputs));
  });
}

Roots apply_rules(const Roots& roots, const PlanOptions& options, NodeTest concerns,
                  std::span<const NodeRule> rules, const RuleLog& log) {
  if (!has_work(roots, concerns)) return roots;
  GraphRewriter rewriter(roots);
  return rewriter.run(concerns, [&](Node& node, std::span<Node* const> inputs) -> Tensor {
    for (const NodeRule& rule : rules) {
      if (!options.enabled(rule.pass) || !rule.matches(node, inputs)) continue;
      const LabelGuard label(node.label);
      Tensor made = log.tally.timed(
          rule.pass, [&] { return rule.replacement(node, rewriter.tensors(inputs)); });
      if (log.checks) check_replacement(rule.pass, node, made);
      return made;
    }
    return {};
  });
}

}  // namespace tenon
