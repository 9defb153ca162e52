// grad(): walks the graph from the output back to the requested inputs, and builds the gradient
// with each op's rule.
//
// Only nodes between an input and the output are visited. The order is the reverse of the graph's
// topological order, so a node's gradient is complete before its rule runs, and sums are formed in
// the same order every time.
#include <tenon/grad.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/index.h"
#include "base/make_error.h"
#include "base/str.h"
#include "grad/gradients.h"
#include "grad/recompute.h"
#include "grad/scan.h"
#include "grad/sum.h"
#include "graph/effects.h"
#include "graph/gradient_label.h"
#include "graph/host_code.h"
#include "graph/node_index.h"
#include "graph/order.h"
#include "graph/realised.h"
#include "ops/function_rule.h"
#include "ops/infer.h"
#include "ops/table.h"

namespace tenon {
namespace {

bool passes_gradient(const Node& node) {
  if (node.is_constant) return false;
  if (has_trait(node.op, kSeveralResults)) return op_info(node.op).no_grad_reason == nullptr;
  if (node.op == Op::Result) return is_floating(node.dtype) && passes_gradient(*node.input(0));
  return node.input_count > 0 && is_floating(node.dtype) && op_info(node.op).vjp != nullptr;
}

// Gradients with respect to the inputs of an op with several results.
std::vector<Tensor> through_results(const Tensor& out, std::span<const Tensor> cotangents) {
  if (out.node()->op == Op::Scan) return vjp_scan(out, cotangents);
  if (out.node()->op == Op::Cond) return vjp_cond(out, cotangents);
  if (out.node()->op == Op::Function && rule_of_function(*out.node()).recomputed != nullptr)
    return vjp_recomputed(out, cotangents);
  return op_info(out.node()->op).vjp_results(out, cotangents);
}

void check(const Tensor& output, std::span<const Tensor> inputs, const Tensor& seed) {
  const auto require = [](const Tensor& tensor, const std::string& what) {
    if (!tensor.defined())
      throw make_error<ValueError>("grad: ", what,
                                   " is a tensor without a value: it was never assigned");
  };
  require(output, "the output");
  for (std::size_t k = 0; k < inputs.size(); ++k) require(inputs[k], cat("input ", k));
  if (!is_floating(output.dtype()))
    throw make_error<DTypeError>("grad: the output is ", output.dtype(),
                                 "; only floating tensors have gradients");
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (!is_floating(inputs[k].dtype()))
      throw make_error<DTypeError>("grad: input ", k, " is ", inputs[k].dtype(), inputs[k].shape(),
                                   "; only floating tensors have gradients");
  if (!seed.defined()) {
    if (output.numel() != 1)
      throw make_error<ShapeError>("grad: the output is ", output.shape(),
                                   ", not a scalar: reduce it with sum or mean, or give a seed");
  } else if (seed.shape() != output.shape() || seed.dtype() != output.dtype()) {
    throw make_error<ShapeError>("grad: the seed is ", seed.dtype(), seed.shape(), ", the output ",
                                 output.dtype(), output.shape());
  }
}

// The nodes that gradients may reach from the outputs: without carried updates, and without what
// functions with a gradient of their own hide.
std::unordered_set<const Node*> reached_from(std::span<const Tensor> outputs) {
  std::unordered_set<const Node*> reached;
  std::vector<const Node*> open;
  const auto enter = [&](const Node* node) {
    if (reached.insert(node).second) open.push_back(node);
  };
  for (const Tensor& output : outputs) enter(output.node());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    const std::span<Node* const> inputs = value_inputs(*node);
    for (int k = 0; k < static_cast<int>(inputs.size()); ++k)
      if (node->op != Op::Function || !is_hidden_input(*node, k)) enter(inputs[at(k)]);
  }
  return reached;
}

// The nodes that gradients may reach, inputs before users.
NumberedOrder order_of(std::span<const Tensor> outputs) {
  NumberedOrder all = numbered_order(outputs, true);
  const auto hides = [](const Node* node) {
    return node->op == Op::WithUpdates || node->op == Op::Function;
  };
  if (std::none_of(all.nodes.begin(), all.nodes.end(), hides)) return all;
  const auto reached = reached_from(outputs);
  NumberedOrder order;
  for (Node* node : all.nodes) {
    if (!reached.contains(node)) continue;
    order.index.insert(node, static_cast<std::uint32_t>(order.nodes.size()));
    order.nodes.push_back(node);
  }
  return order;
}

std::string in_label(const Node& node) {
  return label_text(node.label).empty() ? "" : " in " + label_text(node.label);
}

// The operation as the user called it.
const char* called_name(const Node& node) {
  if (node.op == Op::Result && node.input_count > 0) return called_name(*node.input(0));
  if (node.op == Op::Function) return node.attrs.as<FunctionAttrs>().rule->name;
  return shown_name(node.op, node.attrs);
}

// The rule of an op reads its inputs. A variable that was assigned since has another value than the
// one that the output was computed from.
void refuse_assigned(const Node& node) {
  const Node* variable = assigned_since(node);
  if (variable == nullptr) return;
  const std::string& label = label_text(variable->label);
  throw make_error<ValueError>(
      "grad: ", called_name(node), " ", node.shape, in_label(node),
      " was built before the variable ", label.empty() ? cat(variable->shape) : label,
      " that it reads was assigned, so its gradient is gone: ask for gradients before the "
      "assignment, build the tensor again, or detach() it if it is a constant");
}

class Walk {
 public:
  Walk(std::span<const Tensor> outputs, std::span<const Tensor> inputs)
      : order_(order_of(outputs)),
        target_(order_.nodes.size(), 0),
        between_(order_.nodes.size(), 0),
        parts_(order_.nodes.size()),
        gradients_(order_.nodes.size()),
        cotangents_(order_.nodes.size()) {
    for (std::size_t n = 0; n < order_.nodes.size(); ++n)
      if (is_result(*order_.nodes[n]))
        first_of_result_.try_emplace(key_of(*order_.nodes[n]), static_cast<std::uint32_t>(n));
    for (const Tensor& input : inputs)
      if (const std::uint32_t n = number_of(input.node()); n != NodeIndex::kAbsent) target_[n] = 1;
    for (std::size_t n = 0; n < order_.nodes.size(); ++n) {
      const bool leads = passes_gradient(*order_.nodes[n]) && depends(*order_.nodes[n]);
      if (leads) refuse_assigned(*order_.nodes[n]);
      between_[n] = target_[n] != 0 || leads ? 1 : 0;
    }
  }

  void run(std::span<const Tensor> outputs, std::span<const Tensor> seeds) {
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (is_between(outputs[k].node())) add_to(outputs[k].node(), seeds[k]);
    for (std::size_t n = order_.nodes.size(); n-- > 0;) {
      Node& node = *order_.nodes[n];
      if (!cotangents_[n].empty()) propagate_results(node, std::exchange(cotangents_[n], {}));
      if (parts_[n].empty()) continue;
      Tensor gradient = sum_of(std::exchange(parts_[n], {}));
      if (target_[n] != 0) gradients_[n] = cast(gradient, node.dtype);
      // Expand's rule sums gradients that another rule has left in float32 for it.
      if (node.op != Op::Expand) gradient = cast(gradient, node.dtype);
      if (passes_gradient(node) && depends(node)) propagate(node, gradient);
    }
  }

  /// Whether gradients flow from the output to any of the inputs.
  bool reaches(const Tensor& output) const { return is_between(output.node()); }

  /// Undefined if no gradient arrives.
  Tensor gradient(const Tensor& input) const {
    const std::uint32_t n = number_of(input.node());
    return n != NodeIndex::kAbsent ? gradients_[n] : Tensor();
  }

  /// Values that have released their inputs and may have been computed from one of the inputs.
  std::vector<Tensor> cut_values(std::span<const Tensor> inputs) const {
    std::vector<Tensor> values;
    for (Node* node : order_.nodes)
      if (may_have_read_any(*node) &&
          std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& input) {
            return input.node() != node && may_have_read(*node, *input.node());
          }))
        values.emplace_back(node);
    return values;
  }

 private:
  // All nodes that stand for one result of an op count as the first of them: a rule may have built
  // another node than the one that the user has.
  static bool is_result(const Node& node) { return node.op == Op::Result && node.input_count > 0; }
  static std::pair<const Node*, std::int64_t> key_of(const Node& result) {
    return {result.input(0), result_index(result)};
  }
  std::uint32_t number_of(const Node* node) const {
    if (!is_result(*node)) return order_.index[node];
    const auto found = first_of_result_.find(key_of(*node));
    return found == first_of_result_.end() ? NodeIndex::kAbsent : found->second;
  }

  bool is_between(const Node* node) const {
    const std::uint32_t n = number_of(node);
    return n != NodeIndex::kAbsent && between_[n] != 0;
  }

  bool depends(const Node& node) const {
    for (int k = 0; k < node.input_count; ++k)
      if (is_between(node.input(k)) && !(node.op == Op::Function && is_hidden_input(node, k)))
        return true;
    return false;
  }

  void add_to(const Node* node, const Tensor& part) { parts_[number_of(node)].push_back(part); }

  void propagate(Node& node, const Tensor& gradient) {
    const LabelGuard label(gradient_label(node, called_name(node)));
    if (node.op != Op::Result) return hand_on(node, op_info(node.op).vjp(Tensor(&node), gradient));
    const Node& source = *node.input(0);
    std::vector<Tensor>& all = cotangents_[order_.index[&source]];
    all.resize(static_cast<std::size_t>(op_info(source.op).result_count(source)));
    Tensor& so_far = all[static_cast<std::size_t>(result_index(node))];
    so_far = so_far.defined() ? add(so_far, gradient) : gradient;
  }

  void propagate_results(Node& node, const std::vector<Tensor>& cotangents) {
    const LabelGuard label(gradient_label(node, called_name(node)));
    hand_on(node, through_results(Tensor(&node), cotangents));
  }

  // A rule may leave the gradient of a 16-bit input in float32; it is rounded once all parts are
  // added.
  static bool is_unrounded(const Tensor& part, const Node& input) {
    return part.dtype() == DType::Float32 && item_size(input.dtype) == 2;
  }

  void hand_on(Node& node, const std::vector<Tensor>& parts) {
    if (parts.size() != node.input_count)
      throw make_error<InternalError>("grad: the rule of ", op_info(node.op).name, " gives ",
                                      parts.size(), " gradients for ",
                                      static_cast<int>(node.input_count), " inputs");
    for (int k = 0; k < node.input_count; ++k) {
      const Tensor& part = parts[static_cast<std::size_t>(k)];
      const Node* in = node.input(k);
      if (node.op == Op::Function && is_between(in)) refuse_captured(node, k);
      if (!part.defined() || !is_between(in)) continue;
      if (part.shape() != in->shape || (part.dtype() != in->dtype && !is_unrounded(part, *in)))
        throw make_error<InternalError>("grad: the rule of ", op_info(node.op).name, " gives ",
                                        part.dtype(), part.shape(), " for input ", k, ", which is ",
                                        in->dtype, in->shape);
      add_to(in, part);
    }
  }

  const NumberedOrder order_;
  std::map<std::pair<const Node*, std::int64_t>, std::uint32_t> first_of_result_;
  // By number: requested; between a requested node and the output; the gradient parts so far, in
  // the order of the walk; the requested gradients.
  std::vector<char> target_, between_;
  std::vector<std::vector<Tensor>> parts_;
  std::vector<Tensor> gradients_;
  std::vector<std::vector<Tensor>> cotangents_;  // by number, for ops with several results
};

// Throws if a gradient arrives at a value that was computed from an input but has released its
// inputs: leaving that path out would be a silent wrong answer. If a rule on the path yields zero
// (floor, for example), zero is correct.
void refuse_cut(const Walk& walk, std::span<const Tensor> outputs, std::span<const Tensor> seeds,
                std::span<const Tensor> inputs) {
  const std::vector<Tensor> values = walk.cut_values(inputs);
  if (values.empty()) return;
  Walk to_values(outputs, values);
  to_values.run(outputs, seeds);
  for (const Tensor& value : values)
    if (to_values.gradient(value).defined())
      throw make_error<ValueError>(
          "grad: the output depends on a value of ", called_name(*value.node()), " ",
          value.node()->shape, in_label(*value.node()),
          " that was evaluated, and such a value keeps its graph only if it was computed from a "
          "variable: make the input a variable(), ask for gradients before evaluating, or "
          "detach() the value if it is a constant");
}

}  // namespace

GradientsOfLoss gradients_of(const Tensor& output, std::span<const Tensor> inputs,
                             const Tensor& seed) {
  check(output, inputs, seed);
  const Tensor start = seed.defined() ? seed : constant(output.shape(), 1, output.dtype());
  Walk walk({&output, 1}, inputs);
  walk.run({&output, 1}, {&start, 1});
  refuse_cut(walk, {&output, 1}, {&start, 1}, inputs);
  GradientsOfLoss out{{}, walk.reaches(output)};
  for (const Tensor& input : inputs) {
    const Tensor gradient = walk.gradient(input);
    out.gradients.push_back(gradient.defined() ? gradient : zeros_like(input));
  }
  return out;
}

std::vector<char> are_reached(const Tensor& output, std::span<const Tensor> inputs) {
  const NumberedOrder order = order_of({&output, 1});
  std::vector<char> reached(order.nodes.size(), 0);  // by number
  reached[order.index[output.node()]] = 1;
  for (std::size_t n = order.nodes.size(); n-- > 0;) {
    if (reached[n] == 0 || !passes_gradient(*order.nodes[n])) continue;
    for (const Node* in : order.nodes[n]->in())
      if (const std::uint32_t k = order.index[in]; k != NodeIndex::kAbsent) reached[k] = 1;
  }
  std::vector<char> out;
  for (const Tensor& input : inputs) {
    const std::uint32_t n = order.index[input.node()];
    out.push_back(n != NodeIndex::kAbsent && reached[n] != 0 ? 1 : 0);
  }
  return out;
}

std::vector<Tensor> grad(const Tensor& output, std::span<const Tensor> inputs, const Tensor& seed) {
  return gradients_of(output, inputs, seed).gradients;
}

std::vector<Tensor> grad_of_several(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                    std::span<const Tensor> seeds) {
  Walk walk(outputs, inputs);
  walk.run(outputs, seeds);
  refuse_cut(walk, outputs, seeds, inputs);
  std::vector<Tensor> gradients;
  for (const Tensor& input : inputs) gradients.push_back(walk.gradient(input));
  return gradients;
}

Tensor grad(const Tensor& output, const Tensor& input, const Tensor& seed) {
  return grad(output, std::span<const Tensor>(&input, 1), seed)[0];
}

NoGrad::NoGrad() noexcept : previous_(set_building_constants(true)) {}
NoGrad::~NoGrad() { set_building_constants(previous_); }

}  // namespace tenon
