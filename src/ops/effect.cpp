// Effects: what evaluation changes besides computing values.
#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/make_error.h"
#include "graph/effects.h"
#include "graph/tracing/traced_state.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {

Tensor assign(const Tensor& target, const Tensor& value) {
  require_defined("assign", target, value);
  Tensor out = build(Op::Assign, {target, value});
  out.node()->unheeded = true;
  return out;
}

Inferred infer_assign(const Node& node) {
  const Node &target = *node.input(0), &value = *node.input(1);
  if (target.op != Op::Variable)
    throw make_error<ValueError>(where(node), ": the target is the result of ",
                                 op_info(target.op).name, ", not a variable");
  if (target.shape != value.shape)
    throw make_error<ShapeError>(where(node), ": the variable", target.label == 0 ? "" : " ",
                                 label_text(target.label), " is ", target.shape, ", the value ",
                                 value.shape);
  if (target.dtype != value.dtype)
    throw make_error<DTypeError>(where(node), ": the variable", target.label == 0 ? "" : " ",
                                 label_text(target.label), " is ", target.dtype, ", the value ",
                                 value.dtype, ": cast it");
  return {value.dtype, value.shape};
}

// The result is the new value; the variable's old value has no influence.
Gradients vjp_assign(const Tensor&, const Tensor& g) { return {Tensor{}, g}; }

// A tick of the graph's clock identifies the assignments of one carrier and orders the carriers.
Tensor with_updates(const Tensor& value, TensorList assignments) {
  if (assignments.empty()) return value;
  std::vector<Tensor> inputs{value};
  inputs.insert(inputs.end(), assignments.begin(), assignments.end());
  Tensor out = build(Op::WithUpdates, inputs);
  const std::uint64_t made = advance_clock();
  for (const Tensor& a : assignments) {
    a.node()->unheeded = false;
    a.node()->built_at = made;
  }
  return out;
}

Inferred infer_with_updates(const Node& node) {
  for (const Node* in : node.in().subspan(1))
    if (in->op != Op::Assign)
      throw make_error<ValueError>(
          where(node), ": a value can carry assignments only, not the result of ",
          op_info(in->op).name, ": create one with assign(variable, value)");
  return {node.input(0)->dtype, node.input(0)->shape};
}

// The gradient carries the same assignments, so evaluating only gradients, not the loss, also
// carries out the assignments.
Gradients vjp_with_updates(const Tensor& out, const Tensor& g) {
  std::vector<Tensor> inputs{g};
  for (Node* in : out.node()->in().subspan(1))
    if (!in->realised()) inputs.emplace_back(in);
  Gradients gradients(out.node()->input_count);
  gradients[0] = inputs.size() == 1 ? g : build(Op::WithUpdates, inputs);
  return gradients;
}

// The copy is computed before an assignment can change the variable.
Tensor clone(const Tensor& x) {
  require_defined("clone", x);
  if (!is_variable(x)) return x;
  const Tensor copy = is_bool(x.dtype()) ? logical_or(x, x) : mul(x, 1);
  return is_tracing() ? copy : copy.compute();
}

Tensor guarded(const Tensor& assignment, const Tensor& guard) {
  Node* node = assignment.defined() ? assignment.node() : nullptr;
  if (node == nullptr || node->op != Op::Assign || node->realised())
    throw ValueError("guarded: it takes an assignment that is still to be evaluated");
  node->unheeded = false;
  const Tensor variable(node->input(0));
  LabelGuard label(node->label);
  return assign(variable, where(guard, Tensor(node->input(1)), variable));
}

std::vector<Tensor> take_updates(std::vector<Tensor>& values) {
  Taken taken = take_effects(values);
  values = std::move(taken.values);
  return std::move(taken.assignments);
}

}  // namespace tenon
