// Element-wise ops of one tensor that are primitives of the graph: inference, builders, gradients.
// Functions that are composed of them are in activations.cpp.
#include <cmath>
#include <numbers>

#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {

// ---- Inference --------------------------------------------------------------------------------

Inferred infer_same(const Node& node) { return {node.input(0)->dtype, node.input(0)->shape}; }

Inferred infer_unary_number(const Node& node) {
  if (is_bool(node.input(0)->dtype))
    throw make_error<DTypeError>(where(node),
                                 ": does not take bool: cast to a number, or use logical_not");
  return infer_same(node);
}

Inferred infer_unary_floating(const Node& node) {
  require_floating(node, "cast it first");
  return infer_same(node);
}

Inferred infer_unary_test(const Node& node) {
  require_floating(node, "only floating numbers can be NaN or infinite");
  return {DType::Bool, node.input(0)->shape};
}

Inferred infer_logical_not(const Node& node) {
  if (!is_bool(node.input(0)->dtype))
    throw make_error<DTypeError>(where(node), ": the node takes bool, not ", node.input(0)->dtype);
  return infer_same(node);
}

Inferred infer_cast(const Node& node) { return {node.dtype, node.input(0)->shape}; }

// ---- Builders ---------------------------------------------------------------------------------

Tensor neg(const Tensor& x) { return build(Op::Neg, {x}); }
Tensor abs(const Tensor& x) { return build(Op::Abs, {x}); }
Tensor sign(const Tensor& x) { return build(Op::Sign, {x}); }
Tensor square(const Tensor& x) { return build(Op::Square, {x}); }
Tensor relu(const Tensor& x) { return build(Op::Relu, {x}); }

#define TENON_FLOATING(name, op)            \
  Tensor name(const Tensor& x) {            \
    require_defined(#name, x);              \
    return build(Op::op, {to_floating(x)}); \
  }
TENON_FLOATING(exp, Exp)
TENON_FLOATING(exp2, Exp2)
TENON_FLOATING(expm1, Expm1)
TENON_FLOATING(log, Log)
TENON_FLOATING(log1p, Log1p)
TENON_FLOATING(sqrt, Sqrt)
TENON_FLOATING(rsqrt, Rsqrt)
TENON_FLOATING(reciprocal, Reciprocal)
TENON_FLOATING(sin, Sin)
TENON_FLOATING(cos, Cos)
TENON_FLOATING(tan, Tan)
TENON_FLOATING(asin, Asin)
TENON_FLOATING(acos, Acos)
TENON_FLOATING(atan, Atan)
TENON_FLOATING(sinh, Sinh)
TENON_FLOATING(cosh, Cosh)
TENON_FLOATING(tanh, Tanh)
TENON_FLOATING(sigmoid, Sigmoid)
TENON_FLOATING(erf, Erf)
#undef TENON_FLOATING

// Integers are their own floor, and are never NaN or infinite.
#define TENON_ROUNDING(name, op)                            \
  Tensor name(const Tensor& x) {                            \
    require_defined(#name, x);                              \
    return is_integral(x.dtype()) ? x : build(Op::op, {x}); \
  }
TENON_ROUNDING(floor, Floor)
TENON_ROUNDING(ceil, Ceil)
TENON_ROUNDING(round, Round)
TENON_ROUNDING(trunc, Trunc)
#undef TENON_ROUNDING

Tensor isnan(const Tensor& x) {
  require_defined("isnan", x);
  return is_floating(x.dtype()) ? build(Op::IsNan, {x}) : zeros(x.shape(), DType::Bool);
}
Tensor isinf(const Tensor& x) {
  require_defined("isinf", x);
  return is_floating(x.dtype()) ? build(Op::IsInf, {x}) : zeros(x.shape(), DType::Bool);
}
Tensor isfinite(const Tensor& x) {
  require_defined("isfinite", x);
  return logical_not(logical_or(isnan(x), isinf(x)));
}

Tensor logical_not(const Tensor& x) {
  require_defined("logical_not", x);
  return build(Op::LogicalNot, {cast(x, DType::Bool)});
}

Tensor cast(const Tensor& x, DType dtype) {
  require_defined("cast", x);
  if (x.dtype() == dtype) return x;
  if (is_number(x) || (is_constant(x) && !is_floating(dtype))) {
    const Scalar v = is_floating(x.dtype())
                         ? Scalar(stored_value(constant_value(x).real(), x.dtype()))
                         : constant_value(x);
    // Numbers out of range convert at run time, like all other values.
    if (is_bool(dtype) || can_represent(dtype, v)) return constant(x.shape(), v, dtype);
  }
  return build_as(Op::Cast, dtype, x.shape(), {x});
}

Tensor detach(const Tensor& x) { return build(Op::StopGradient, {x}); }

// ---- Gradients --------------------------------------------------------------------------------

Gradients vjp_zero(const Tensor&, const Tensor&) { return {Tensor{}}; }
Gradients vjp_neg(const Tensor&, const Tensor& g) { return {-g}; }
Gradients vjp_abs(const Tensor& out, const Tensor& g) { return {g * sign(input_of(out, 0))}; }
Gradients vjp_exp(const Tensor& out, const Tensor& g) { return {g * out}; }
Gradients vjp_exp2(const Tensor& out, const Tensor& g) { return {g * (out * std::numbers::ln2)}; }
// Not out + 1, which has lost the digits of small exponentials.
Gradients vjp_expm1(const Tensor& out, const Tensor& g) { return {g * exp(input_of(out, 0))}; }
Gradients vjp_log(const Tensor& out, const Tensor& g) { return {g / input_of(out, 0)}; }
Gradients vjp_log1p(const Tensor& out, const Tensor& g) { return {g / (input_of(out, 0) + 1)}; }
Gradients vjp_sqrt(const Tensor& out, const Tensor& g) { return {g / (out * 2)}; }
Gradients vjp_rsqrt(const Tensor& out, const Tensor& g) { return {g * (out * out * out) * -0.5}; }
Gradients vjp_reciprocal(const Tensor& out, const Tensor& g) { return {-(g * out * out)}; }
// Doubled last: if x * 2 overflows, g may be 0.
Gradients vjp_square(const Tensor& out, const Tensor& g) { return {g * input_of(out, 0) * 2}; }
Gradients vjp_sin(const Tensor& out, const Tensor& g) { return {g * cos(input_of(out, 0))}; }
Gradients vjp_cos(const Tensor& out, const Tensor& g) { return {-(g * sin(input_of(out, 0)))}; }
Gradients vjp_tan(const Tensor& out, const Tensor& g) { return {g * (1 + square(out))}; }
Gradients vjp_asin(const Tensor& out, const Tensor& g) {
  return {g * rsqrt(1 - square(input_of(out, 0)))};
}
Gradients vjp_acos(const Tensor& out, const Tensor& g) {
  return {-(g * rsqrt(1 - square(input_of(out, 0))))};
}
Gradients vjp_atan(const Tensor& out, const Tensor& g) {
  return {g / (1 + square(input_of(out, 0)))};
}
Gradients vjp_sinh(const Tensor& out, const Tensor& g) { return {g * cosh(input_of(out, 0))}; }
Gradients vjp_cosh(const Tensor& out, const Tensor& g) { return {g * sinh(input_of(out, 0))}; }
Gradients vjp_tanh(const Tensor& out, const Tensor& g) { return {g * (1 - square(out))}; }
Gradients vjp_sigmoid(const Tensor& out, const Tensor& g) { return {g * (out * (1 - out))}; }
// A NaN passes its gradient on, as in PyTorch.
Gradients vjp_relu(const Tensor& out, const Tensor& g) { return {where(le(out, 0), 0, g)}; }

Gradients vjp_erf(const Tensor& out, const Tensor& g) {
  return {g * (exp(-square(input_of(out, 0))) * (2 * std::numbers::inv_sqrtpi))};
}

Gradients vjp_cast(const Tensor& out, const Tensor& g) {
  const DType from = out.node()->input(0)->dtype;
  return {is_floating(from) ? cast(g, from) : Tensor{}};
}

}  // namespace tenon
