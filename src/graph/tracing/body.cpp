// Closes, hashes and rewrites bodies. Everything is linear in the number of the body's nodes.
#include "graph/tracing/body.h"

#include <unordered_set>
#include <utility>

#include <tenon/error.h>

#include <tenon/shapes_only.h>
#include "base/make_error.h"
#include "graph/constants_guard.h"
#include "graph/node.h"
#include "graph/order.h"

namespace tenon {
namespace {

// Numbers, index ramps and views of them: computing them is cheaper than binding them. A tensor of
// one value that was created outside the body (by ones() and similar functions) is not a number
// here.
bool is_number(const Node& node, const std::unordered_set<const Node*>& numbers,
               std::uint32_t trace) {
  if (node.realised()) return false;
  if (node.op == Op::Constant) return !node.differentiable || node.traced_in == trace;
  return node.op == Op::Iota ||
         (kind_of(node.op) == OpKind::View && numbers.contains(node.input(0)));
}

// The base of views that the body itself takes. Inside the body such views are free; bound from
// outside they would be copies.
Node* base_of(Node* node, std::uint32_t trace) {
  while (!node->realised() && kind_of(node->op) == OpKind::View && node->traced_in == trace)
    node = node->input(0);
  return node;
}

void set_key(Body& body) {
  body.key = {};
  const auto mix = [&body](std::uint64_t word) { body.key.mix(word); };
  std::unordered_map<const Node*, std::uint64_t> number;
  const auto describe = [&](const Node& node) {
    number.emplace(&node, number.size());
    mix(static_cast<std::uint64_t>(node.op) | static_cast<std::uint64_t>(node.dtype) << 8 |
        static_cast<std::uint64_t>(node.shape.rank()) << 16 |
        static_cast<std::uint64_t>(node.input_count) << 32);
    for (std::int64_t size : node.shape) mix(static_cast<std::uint64_t>(size));
  };
  for (const Tensor& parameter : body.parameters) describe(*parameter.node());
  for (Node* node : topological_order(body.results)) {
    if (number.contains(node)) continue;
    describe(*node);
    node->attrs.each_word(mix);
    for (const Node* in : node->in()) mix(number.at(in));
  }
  for (const Tensor& result : body.results) mix(number.at(result.node()) | 1ull << 40);
}

}  // namespace

Device device_of_body(std::span<const Tensor> tensors) {
  for (const Tensor& t : tensors)
    if (t.node()->placed) return t.device();
  return tensors.empty() ? default_device() : tensors[0].device();
}

Tensor placeholder_for(const Tensor& like, Device home) {
  return without_memory(like.shape(), like.dtype(), home);
}

std::vector<Tensor> placeholders_for(std::span<const Tensor> like, Device home) {
  std::vector<Tensor> placeholders;
  placeholders.reserve(like.size());
  for (const Tensor& t : like) placeholders.push_back(placeholder_for(t, home));
  return placeholders;
}

ClosedBody close_over(const char* op, const std::vector<Tensor>& results,
                      const std::vector<Tensor>& parameters, Device home, std::uint32_t trace) {
  std::unordered_set<const Node*> inside, numbers;
  for (const Tensor& parameter : parameters) inside.insert(parameter.node());
  ClosedBody out;
  Substitution instead;
  const auto capture = [&](Node* node) {
    if (inside.contains(node) || numbers.contains(node)) return;
    node = base_of(node, trace);
    if (instead.contains(node)) return;
    const Tensor outside(node);
    out.captured.push_back(outside);
    instead.emplace(node, placeholder_for(outside, home));
  };
  for (Node* node : topological_order(results)) {
    if (is_number(*node, numbers, trace)) numbers.insert(node);
    if (node->realised()) continue;
    if (node->op == Op::Assign) {
      const std::string& label = label_text(node->input(0)->label);
      throw make_error<NotSupported>(
          where(op), ": a variable", label.empty() ? "" : " (" + label + ")",
          " is assigned inside: make the value a carry, and assign the final "
          "carry after the loop");
    }
    bool depends = false;
    for (const Node* in : node->in()) depends = depends || inside.contains(in);
    if (!depends) continue;
    inside.insert(node);
    for (Node* in : node->in()) capture(in);
  }
  for (const Tensor& result : results) capture(result.node());
  std::vector<Tensor> all = parameters;
  for (const Tensor& outside : out.captured) all.push_back(instead.at(outside.node()));
  out.body = make_body(all, substitute(results, instead));
  return out;
}

std::shared_ptr<const Body> make_body(const std::vector<Tensor>& parameters,
                                      const std::vector<Tensor>& results) {
  auto body = std::make_shared<Body>();
  body->parameters = parameters;
  body->results = results;
  set_key(*body);
  return body;
}

std::shared_ptr<const Body> with_results(const Body& body, const std::vector<Tensor>& results) {
  return make_body(body.parameters, results);
}

namespace {

// The nodes that the roots depend on, inputs before users. Replaced nodes are left out, and so are
// nodes that only replaced nodes depend on.
std::vector<Node*> order_up_to(std::span<const Tensor> roots, const Substitution& instead) {
  std::vector<Node*> order;
  std::unordered_set<const Node*> entered;
  std::vector<std::pair<Node*, int>> open;  // a node, and the number of its next input
  const auto enter = [&](Node* node) {
    if (!instead.contains(node) && entered.insert(node).second) open.emplace_back(node, 0);
  };
  for (const Tensor& root : roots) {
    enter(root.node());
    while (!open.empty()) {
      auto& [node, next] = open.back();
      if (!node->realised() && next < node->input_count) {
        enter(node->input(next++));
      } else {
        order.push_back(node);
        open.pop_back();
      }
    }
  }
  return order;
}

}  // namespace

std::vector<Tensor> substitute(std::span<const Tensor> roots, const Substitution& instead,
                               const RewriteNode& rewrite) {
  Substitution done = instead;
  std::vector<Tensor> inputs;
  for (Node* node : order_up_to(roots, instead)) {
    inputs.clear();
    bool changed = false;
    if (!node->realised())
      for (Node* in : node->in()) {
        inputs.push_back(done.at(in));
        changed = changed || inputs.back().node() != in;
      }
    const LabelGuard label(node->label);
    const ConstantsGuard constants(node->is_constant || builds_constants());
    if (const Tensor made = rewrite ? rewrite(*node, inputs) : Tensor(); made.defined()) {
      done.emplace(node, made);
      continue;
    }
    done.emplace(node, changed ? make_node_like(*node, inputs) : Tensor(node));
  }
  std::vector<Tensor> out;
  out.reserve(roots.size());
  for (const Tensor& root : roots) out.push_back(done.at(root.node()));
  return out;
}

}  // namespace tenon
