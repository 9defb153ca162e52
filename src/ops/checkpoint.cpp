// checkpoint(): a function whose intermediate values are computed again for the gradient.
//
// The values are computed as usual. An Op::Function node holds them, the tensors that they are
// computed from, and a body that computes them from these tensors. The gradient (grad/recompute.h)
// evaluates the body again. Random draws read the generator's state, which is one of the tensors,
// so both computations draw the same numbers.
#include <limits>
#include <unordered_set>

#include <tenon/error.h>
#include <tenon/function.h>
#include <tenon/shapes_only.h>

#include "base/make_error.h"
#include "graph/effects.h"
#include "graph/tracing/body.h"
#include "ops/function_rule.h"
#include "ops/infer.h"
#include "ops/traced_call.h"

namespace tenon {
namespace {

constexpr const char* kCheckpoint = "checkpoint";
constexpr std::size_t kMostInputs = std::numeric_limits<decltype(Node::input_count)>::max();

// What values are computed from: arguments, then other tensors that existed before `start`, and
// leaves with a value.
class Origins {
 public:
  Origins(const std::vector<Tensor>& values, TensorList arguments, std::uint64_t start)
      : start_(start) {
    for (const Tensor& argument : arguments) add(argument.node());
    for (const Tensor& value : values) open_.push_back(value.node());
    while (!open_.empty()) {
      Node* const node = open_.back();
      open_.pop_back();
      if (seen_.insert(node).second) visit(*node);
    }
    for (const Tensor& origin : all_)
      if (assigned_.contains(origin.node())) refuse_assignment(*origin.node());
  }

  const std::vector<Tensor>& all() const { return all_; }
  /// Whether a value carries an assignment.
  bool assign() const { return !assigned_.empty(); }

 private:
  void add(Node* node) {
    seen_.insert(node);
    all_.emplace_back(node);
  }

  void visit(Node& node) {
    const bool is_older = node.built_at <= start_;
    const bool is_leaf = node.op == Op::Data || node.op == Op::Variable;
    if (is_leaf || (is_older && !is_number(Tensor(&node)))) return add(&node);
    if (node.realised())
      throw make_error<ValueError>(where(kCheckpoint), ": the function evaluates a tensor ",
                                   node.shape,
                                   " that it computes, so it cannot be computed again: read the "
                                   "value outside");
    if (node.op == Op::Assign) refuse_assignment(*node.input(0));
    const std::span<Node* const> inputs = value_inputs(node);
    open_.insert(open_.end(), inputs.begin(), inputs.end());
    for (const Node* in : node.in().subspan(inputs.size())) assigned_.insert(in->input(0));
  }

  [[noreturn]] static void refuse_assignment(const Node& variable) {
    const std::string& label = label_text(variable.label);
    throw make_error<NotSupported>(
        where(kCheckpoint), ": the function reads a variable",
        label.empty() ? "" : " (" + label + ")",
        " that it also assigns, so its value is gone when the function is computed again");
  }

  const std::uint64_t start_;
  std::vector<Tensor> all_;
  std::unordered_set<const Node*> seen_, assigned_;
  std::vector<Node*> open_;
};

// Computes the values from the origins, without the assignments that they carry.
std::shared_ptr<const Body> body_of(const std::vector<Tensor>& values,
                                    const std::vector<Tensor>& origins) {
  std::vector<Tensor> parameters;
  Substitution instead;
  for (const Tensor& origin : origins) {
    parameters.push_back(placeholder_for(origin, origin.device()));
    instead.emplace(origin.node(), parameters.back());
  }
  const auto without_updates = [](const Node& node, const std::vector<Tensor>& inputs) {
    return node.op == Op::WithUpdates ? inputs[0] : Tensor();
  };
  return make_body(parameters, substitute(values, instead, without_updates));
}

}  // namespace

std::vector<Tensor> checkpoint(const TensorFunction& f, TensorList inputs) {
  const std::vector<Tensor> arguments(inputs.begin(), inputs.end());
  const std::uint64_t start = advance_clock();
  std::vector<Tensor> read = traced_call(kCheckpoint, f, arguments);
  const Origins origins(read, arguments, start);
  FunctionAttrs attrs;
  attrs.results = std::ssize(read);
  attrs.arguments = std::ssize(origins.all());
  attrs.rule = std::make_shared<const FunctionRule>(
      FunctionRule{kCheckpoint, {}, {}, body_of(read, origins.all()), origins.assign()});
  read.insert(read.end(), origins.all().begin(), origins.all().end());
  if (read.size() > kMostInputs)
    throw make_error<ValueError>(where(kCheckpoint), ": the function reads ", attrs.arguments,
                                 " tensors and returns ", attrs.results, "; at most ", kMostInputs,
                                 " together: divide it into several calls of checkpoint()");
  return results_of(build(Op::Function, read, Attrs(attrs)));
}

Tensor checkpoint(const TensorFunction& f, const Tensor& input) {
  const std::vector<Tensor> results = checkpoint(f, TensorList{input});
  if (results.size() != 1)
    throw make_error<ValueError>(where(kCheckpoint), ": the function returns ", results.size(),
                                 " tensors: give a list of inputs");
  return results[0];
}

}  // namespace tenon
