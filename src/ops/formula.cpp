// The op of formulas: inference, decomposition and gradient, each through the formula's functions.
#include "ops/formula.h"

#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {
namespace {

struct Row {
  const char* name;
  bool in_double;
  Tensor (*value)(FormulaInputs operands, std::int64_t parameter);
  Gradients (*gradient)(const Tensor& out, const Tensor& g);
};

constexpr Row kRows[] = {
#define TENON_FORMULA(name, in_double) {#name, in_double, value_##name, gradient_##name},
#include "ops/formulas.inc"
};

const FormulaAttrs& formula_attrs(const Node& node) { return node.attrs.as<FormulaAttrs>(); }
const Row& row_of(const Node& node) {
  return kRows[static_cast<std::size_t>(formula_attrs(node).formula)];
}

constexpr const char* kUndifferentiable[] = {
    "zeta: there is no gradient with respect to the exponent",
    "igamma: there is no gradient with respect to the parameter a",
    "airy_ai: there is no gradient",
    ("a saved program: it holds the value of a function with a gradient of its own, not the "
     "gradient"),
};

// Of formulas that are not listed: one.
int operand_count(const Node& node) {
  switch (static_cast<Formula>(formula_attrs(node).formula)) {
    case Formula::zeta:
    case Formula::igamma:
    case Formula::igammac:
    case Formula::hypot:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

Tensor formula(Formula of, std::initializer_list<Tensor> operands, std::int64_t parameter) {
  return build(Op::Formula, operands, FormulaAttrs{static_cast<std::int64_t>(of), parameter});
}

std::int64_t formula_parameter(const Tensor& out) { return formula_attrs(*out.node()).parameter; }

const char* formula_name(std::int64_t formula) {
  return kRows[static_cast<std::size_t>(formula)].name;
}

std::int64_t formula_named(std::string_view name) {
  for (const Row& row : kRows)
    if (name == row.name) return &row - kRows;
  return -1;
}

Inferred infer_formula(const Node& node) {
  if (node.input_count != operand_count(node))
    throw make_error<InternalError>(where(row_of(node).name), ": takes ", operand_count(node),
                                    " tensors, not ", int{node.input_count});
  const Node& x = *node.input(0);
  if (!is_floating(x.dtype))
    throw make_error<DTypeError>(where(row_of(node).name), ": takes floating tensors, not ",
                                 x.dtype, ": cast it first");
  return {x.dtype, x.shape};
}

Tensor decompose_formula(const Tensor& out) {
  const Row& row = row_of(*out.node());
  std::vector<Tensor> operands;
  for (int k = 0; k < out.node()->input_count; ++k) {
    const Tensor x = input_of(out, k);
    operands.push_back(row.in_double && is_floating(x.dtype()) ? cast(x, DType::Float64) : x);
  }
  return cast(row.value(operands, formula_parameter(out)), out.dtype());
}

Gradients vjp_formula(const Tensor& out, const Tensor& g) {
  return row_of(*out.node()).gradient(out, g);
}

Tensor without_gradient(const Tensor& x, Undifferentiable what) {
  if (is_number(x) || !is_floating(x.dtype())) return x;
  return formula(Formula::without_gradient, {x}, static_cast<std::int64_t>(what));
}
Tensor value_without_gradient(FormulaInputs operands, std::int64_t /*parameter*/) {
  return operands[0];
}
Gradients gradient_without_gradient(const Tensor& out, const Tensor& /*g*/) {
  throw make_error<ValueError>(kUndifferentiable[static_cast<std::size_t>(formula_parameter(out))],
                               ": detach() the argument if it is a constant");
}

Tensor polynomial(const Tensor& x, std::span<const double> coefficients) {
  Tensor sum = full({}, coefficients[0], x.dtype());
  for (const double c : coefficients.subspan(1)) sum = sum * x + c;
  return sum;
}

Tensor chebyshev_series(const Tensor& x, std::span<const double> coefficients) {
  Tensor current = full({}, coefficients[0], x.dtype()), before = zeros({}, x.dtype()), oldest;
  for (const double c : coefficients.subspan(1)) {
    oldest = before, before = current;
    current = x * before - oldest + c;
  }
  return (current - oldest) * 0.5;
}

}  // namespace tenon
