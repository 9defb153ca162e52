// Operations with a gradient of their own: one node that holds the results and what the gradient
// needs.
//
// The forward function builds its results from ordinary nodes. The node reads these values and
// hides how they were computed: gradients go to its arguments by its rule. All tensors that the
// backward function sees are inputs of the node, so that rewriting a graph, such as the body of a
// loop, replaces them too.
#include <tenon/function.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/index.h"
#include "base/str.h"
#include "graph/tracing/body.h"
#include "ops/function_rule.h"
#include "ops/infer.h"
#include "ops/rules.h"
#include "ops/traced_call.h"

namespace tenon {
namespace {

// The tensors that existed before the forward function ran (`start`), that its values are computed
// from, and that are no arguments. Gradients may be requested with respect to them.
std::vector<Tensor> captured_by(const std::vector<Tensor>& values,
                                const std::vector<Tensor>& arguments, std::uint64_t start) {
  std::unordered_set<const Node*> seen;
  for (const Tensor& argument : arguments) seen.insert(argument.node());
  std::vector<Node*> open;
  open.reserve(values.size());
  for (const Tensor& value : values) open.push_back(value.node());
  std::vector<Tensor> captured;
  while (!open.empty()) {
    Node* const node = open.back();
    open.pop_back();
    const bool stops = node->is_constant || node->op == Op::StopGradient ||
                       (!is_floating(node->dtype) && !has_trait(node->op, kSeveralResults));
    if (!seen.insert(node).second || stops) continue;
    if (node->built_at > start)
      open.insert(open.end(), node->in().begin(), node->in().end());
    else if (is_floating(node->dtype) && !is_number(Tensor(node)))
      captured.emplace_back(node);
  }
  return captured;
}

void append(std::vector<Tensor>& list, const std::vector<Tensor>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

const FunctionAttrs& function_attrs(const Node& node) { return node.attrs.as<FunctionAttrs>(); }

std::vector<Tensor> inputs_of(const Node& node, std::int64_t first, std::int64_t count) {
  std::vector<Tensor> inputs;
  for (std::int64_t k = first; k < first + count; ++k)
    inputs.emplace_back(node.input(static_cast<int>(k)));
  return inputs;
}

bool is_one_of(const Tensor& tensor, const std::vector<Tensor>& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Tensor& other) { return other.node() == tensor.node(); });
}

// The gradient as its argument takes it: undefined if it is zero.
Tensor checked_gradient(const char* name, std::size_t k, const Tensor& gradient,
                        const Tensor& argument) {
  if (!gradient.defined() || !is_floating(argument.dtype())) return {};
  if (gradient.shape() != argument.shape())
    throw make_error<ShapeError>(where(name), ": its backward function returns a gradient of ",
                                 gradient.shape(), " for argument ", k, ", which is ",
                                 argument.shape());
  if (!is_floating(gradient.dtype()))
    throw make_error<DTypeError>(where(name), ": its backward function returns a gradient of ",
                                 gradient.dtype(), " for argument ", k, ", which is ",
                                 argument.dtype(), ": cast it");
  return cast(gradient, argument.dtype());
}

}  // namespace

void FunctionContext::save(TensorList tensors) {
  saved_.insert(saved_.end(), tensors.begin(), tensors.end());
}
void FunctionContext::mark_non_differentiable(std::size_t k) { non_differentiable_.push_back(k); }

Function::Function(std::string name, detail::OnList<FunctionContext&> forward,
                   detail::OnList<const FunctionContext&> backward)
    : forward_(std::move(forward)) {
  const char* const kept_name = label_text(intern_label(name)).c_str();
  rule_ = std::make_shared<const FunctionRule>(FunctionRule{kept_name, std::move(backward)});
}

std::vector<Tensor> Function::apply(TensorList given) const {
  const char* const name = rule_->name;
  check_all_defined(name, "argument", given);
  if (forward_.count >= 0 && std::ssize(given) != forward_.count)
    throw make_error<ValueError>(where(name), ": it takes ", forward_.count,
                                 " arguments and was given ", given.size());
  const std::vector<Tensor> arguments(given.begin(), given.end());
  const std::uint64_t start = advance_clock();
  FunctionContext context;
  std::vector<Tensor> inputs = forward_.function(context, arguments);
  if (inputs.empty())
    throw make_error<ValueError>(where(name), ": its forward function returns no tensor");
  check_all_defined(name, "result", inputs);
  check_all_defined(name, "saved tensor", context.saved_);
  FunctionAttrs attrs;
  attrs.results = std::ssize(inputs);
  attrs.arguments = std::ssize(arguments);
  attrs.saved = std::ssize(context.saved_);
  attrs.rule = rule_;
  const std::vector<Tensor> captured = captured_by(inputs, arguments, start);
  append(inputs, arguments);
  append(inputs, context.saved_);
  append(inputs, captured);
  std::vector<Tensor> results = results_of(build(Op::Function, inputs, Attrs(attrs)));
  for (const std::size_t k : context.non_differentiable_) {
    if (k >= results.size())
      throw make_error<ValueError>(where(name), ": result ", k,
                                   " is marked as not differentiable, ", "there are ",
                                   results.size(), " results");
    results[k] = detach(results[k]);
  }
  return results;
}

Tensor Function::only_result(std::vector<Tensor> results) const {
  if (results.size() != 1)
    throw make_error<ValueError>(where(rule_->name), ": it has ", results.size(),
                                 " results: call apply()");
  return std::move(results[0]);
}

std::vector<Tensor> without_functions(std::span<const Tensor> roots) {
  return substitute(roots, {}, [](const Node& node, const std::vector<Tensor>& inputs) {
    const bool hides =
        node.op == Op::Result && !node.realised() && inputs[0].node()->op == Op::Function;
    return hides ? decompose_function(inputs[0], result_index(node)) : Tensor();
  });
}

const FunctionRule& rule_of_function(const Node& function) {
  return *function_attrs(function).rule;
}

bool is_hidden_input(const Node& function, int k) {
  const FunctionAttrs& attrs = function_attrs(function);
  const std::int64_t end = attrs.results + attrs.arguments;
  return k < attrs.results || (k >= end && k < end + attrs.saved);
}

void refuse_captured(const Node& function, int k) {
  const FunctionAttrs& attrs = function_attrs(function);
  if (k < attrs.results + attrs.arguments + attrs.saved) return;
  const Node& captured = *function.input(k);
  const std::string& label = label_text(captured.label);
  throw make_error<ValueError>(
      where(attrs.rule->name), ": its forward function reads a tensor ", captured.shape,
      label.empty() ? std::string() : cat(" (", label, ")"),
      " that is not an argument, so it has no gradient with respect to it: pass the tensor as an "
      "argument, or detach() it if it is a constant");
}

// ---- Rules --------------------------------------------------------------------------------------

Inferred infer_function_result(const Node& node, std::int64_t k) {
  const Node& value = *node.input(static_cast<int>(k));
  return {value.dtype, value.shape};
}

Inferred infer_function(const Node& node) { return infer_function_result(node, 0); }

std::int64_t count_function_results(const Node& node) { return function_attrs(node).results; }

Tensor decompose_function(const Tensor& out, std::int64_t k) {
  return input_of(out, static_cast<int>(k));
}

std::vector<Tensor> FunctionRule::gradients(const Tensor& out,
                                            std::span<const Tensor> cotangents) const {
  const Node& node = *out.node();
  const FunctionAttrs& attrs = function_attrs(node);
  FunctionContext context;
  context.results_ = results_of(out);
  context.arguments_ = inputs_of(node, attrs.results, attrs.arguments);
  context.saved_ = inputs_of(node, attrs.results + attrs.arguments, attrs.saved);
  // A saved result is the result with this gradient, not the value that it hides.
  for (Tensor& saved : context.saved_)
    for (std::int64_t k = 0; k < attrs.results; ++k)
      if (saved.node() == node.input(static_cast<int>(k)) && !is_one_of(saved, context.arguments_))
        saved = context.results_[at(k)];
  std::vector<Tensor> given;
  for (std::size_t k = 0; k < cotangents.size(); ++k)
    given.push_back(cotangents[k].defined() ? cotangents[k] : zeros_like(context.results_[k]));
  return backward.function(context, given);
}

Gradients vjp_function(const Tensor& out, std::span<const Tensor> cotangents) {
  const Node& node = *out.node();
  const FunctionAttrs& attrs = function_attrs(node);
  const FunctionRule& rule = *attrs.rule;
  if (rule.of_node) return rule.of_node(out, cotangents);
  if (!rule.backward.function)
    throw make_error<NotSupported>(where(rule.name),
                                   ": it has no backward function, so it has no gradient: give it "
                                   "one, or detach() its result");
  if (rule.backward.count >= 0 && rule.backward.count != attrs.results)
    throw make_error<ValueError>(where(rule.name), ": its backward function takes ",
                                 rule.backward.count, " gradients, it has ", attrs.results,
                                 " results");
  const std::vector<Tensor> gradients = rule.gradients(out, cotangents);
  if (std::ssize(gradients) != attrs.arguments)
    throw make_error<ValueError>(where(rule.name), ": its backward function returns ",
                                 gradients.size(), " gradients for ", attrs.arguments,
                                 " arguments");
  Gradients all(node.input_count);
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const std::size_t input = at(attrs.results) + k;
    all[input] =
        checked_gradient(rule.name, k, gradients[k], input_of(out, static_cast<int>(input)));
  }
  return all;
}

}  // namespace tenon
