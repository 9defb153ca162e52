// Binary element-wise ops: two tensors, or a tensor and a number. Also where().
//
// A binary node always has two inputs of one shape and dtype. The builders here promote (Cast),
// broadcast (Reshape, Expand) and turn numbers into constants.
#include <cmath>
#include <utility>

#include <tenon/error.h>
#include <tenon/functional.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {
namespace {

struct Operands {
  Tensor a, b;
  DType dtype() const { return a.dtype(); }
};

Operands align(const char* op, const Tensor& a, const Tensor& b) {
  auto [first, second] = aligned(op, a, b);
  return {std::move(first), std::move(second)};
}

Operands align(const char* op, const Tensor& a, Scalar b) {
  require_defined(op, a);
  const DType dtype = scalar_dtype(a.dtype(), b);
  return {cast(a, dtype), scalar_operand(op, b, a.shape(), dtype)};
}

Operands align(const char* op, Scalar a, const Tensor& b) {
  Operands p = align(op, b, a);
  return {p.b, p.a};
}

// A number as an element of the tensor: in float16, 0.1 means float16's 0.1.
Tensor as_element(const Tensor& x) {
  if (!is_constant(x) || !is_floating(x.dtype())) return x;
  return constant(x.shape(), stored_value(constant_value(x).real(), x.dtype()), x.dtype());
}

// In remainders, powers and angles, PyTorch rounds a number to a 16-bit tensor's dtype, on CPUs and
// GPUs. Products and quotients take the exact number, in Tenon and in PyTorch.
Operands rounded_numbers(const Operands& p) {
  const bool small = p.dtype() == DType::Float16 || p.dtype() == DType::BFloat16;
  return small ? Operands{as_element(p.a), as_element(p.b)} : p;
}

Tensor refuse_bool(Op op, const char* name, const Operands& p, const char* advice) {
  if (is_bool(p.dtype()))
    throw make_error<DTypeError>(where(name), ": does not take bool tensors: ", advice);
  return build(op, {p.a, p.b});
}

// On bool, sums and maxima are "or", products and minima "and", as in PyTorch.
Tensor either(Op op, Op on_bool, const Operands& p) {
  return build(is_bool(p.dtype()) ? on_bool : op, {p.a, p.b});
}

Tensor add_pair(const Operands& p) { return either(Op::Add, Op::LogicalOr, p); }
Tensor mul_pair(const Operands& p) { return either(Op::Mul, Op::LogicalAnd, p); }
Tensor maximum_pair(const Operands& p) { return either(Op::Maximum, Op::LogicalOr, p); }
Tensor minimum_pair(const Operands& p) { return either(Op::Minimum, Op::LogicalAnd, p); }
Tensor sub_pair(const Operands& p) {
  return refuse_bool(Op::Sub, "sub", p, "use logical_xor, or cast to a number");
}
// A base that rounds to 0 stays exact, because its power has a gradient.
Tensor pow_pair(const Operands& p) {
  Operands e = rounded_numbers(p);
  if (is_constant(e.a) && constant_value(e.a).is_zero()) e.a = p.a;
  return refuse_bool(Op::Pow, "pow", e, "cast to a number");
}
Tensor remainder_pair(const Operands& p) {
  return refuse_bool(Op::Remainder, "remainder", rounded_numbers(p), "cast to a number");
}
Tensor atan2_pair(const Operands& p) {
  const Operands e = rounded_numbers(p);
  return build(Op::Atan2, {to_floating(e.a), to_floating(e.b)});
}
Tensor div_pair(const Operands& p) { return build(Op::Div, {to_floating(p.a), to_floating(p.b)}); }

// A divisor is exact, as in div(); PyTorch rounds only a number that is divided.
Tensor floor_divide_pair(const Operands& given) {
  const Operands p{rounded_numbers(given).a, given.b};
  const Tensor rest = refuse_bool(Op::Remainder, "floor_divide", p, "cast to a number");
  if (is_floating(p.dtype())) {
    // (a - rest) / b is a whole number except for its rounding error; a division by zero stays as
    // it is. The rest is infinite if b is infinite with the other sign: a is then less than one b
    // below zero. A zero has the sign of the quotient.
    const Tensor quotient = detach(p.a / p.b);
    const Tensor scale = where(isinf(p.a - rest), 0.5, ones_like(rest));  // halving is exact
    const Tensor exact = round((p.a * scale - rest * scale) / (p.b * scale));
    const Tensor whole = where(isinf(rest), -1, exact);
    return where(eq(p.b, 0), quotient, where(eq(whole, 0), quotient * 0, whole));
  }
  // Truncation is one too high if there is a rest and the signs differ; a - rest itself could
  // overflow.
  const Tensor inexact = logical_and(ne(rest, 0), ne(lt(p.a, 0), lt(p.b, 0)));
  return build(Op::Sub, {build(Op::Div, {p.a, p.b}), cast(inexact, p.dtype())});
}

// As in PyTorch, a number is compared as an element of the tensor, also in float32.
#define TENON_COMPARE(name, op)                               \
  Tensor name##_pair(const Operands& p) {                     \
    return build(Op::op, {as_element(p.a), as_element(p.b)}); \
  }
TENON_COMPARE(eq, Eq)
TENON_COMPARE(ne, Ne)
TENON_COMPARE(lt, Lt)
TENON_COMPARE(le, Le)
TENON_COMPARE(gt, Gt)
TENON_COMPARE(ge, Ge)
#undef TENON_COMPARE

#define TENON_LOGICAL(name, op)                                             \
  Tensor name##_pair(const Operands& p) {                                   \
    return build(Op::op, {cast(p.a, DType::Bool), cast(p.b, DType::Bool)}); \
  }
TENON_LOGICAL(logical_and, LogicalAnd)
TENON_LOGICAL(logical_or, LogicalOr)
TENON_LOGICAL(logical_xor, LogicalXor)
#undef TENON_LOGICAL

}  // namespace

std::pair<Tensor, Tensor> aligned(const char* op, const Tensor& a, const Tensor& b) {
  require_defined(op, a, b);
  const DType dtype = promote(a.dtype(), b.dtype());
  if (a.shape() == b.shape()) return {cast(a, dtype), cast(b, dtype)};
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), where(op));
  return {broadcast_to(cast(a, dtype), shape), broadcast_to(cast(b, dtype), shape)};
}

#define TENON_TENSORS(name) \
  Tensor name(const Tensor& a, const Tensor& b) { return name##_pair(align(#name, a, b)); }
#define TENON_NUMBER_RIGHT(name) \
  Tensor name(const Tensor& a, Scalar b) { return name##_pair(align(#name, a, b)); }
#define TENON_NUMBER_LEFT(name) \
  Tensor name(Scalar a, const Tensor& b) { return name##_pair(align(#name, a, b)); }
#define TENON_BINARY(name) \
  TENON_TENSORS(name)      \
  TENON_NUMBER_RIGHT(name) \
  TENON_NUMBER_LEFT(name)
TENON_BINARY(add)
TENON_BINARY(sub)
TENON_BINARY(mul)
TENON_BINARY(div)
TENON_BINARY(atan2)
TENON_BINARY(maximum)
TENON_BINARY(minimum)
TENON_BINARY(remainder)
TENON_BINARY(floor_divide)
TENON_BINARY(eq)
TENON_BINARY(ne)
TENON_BINARY(lt)
TENON_BINARY(le)
TENON_BINARY(gt)
TENON_BINARY(ge)
TENON_BINARY(logical_and)
TENON_BINARY(logical_or)
TENON_BINARY(logical_xor)
TENON_TENSORS(pow)
TENON_NUMBER_LEFT(pow)
#undef TENON_BINARY
#undef TENON_TENSORS
#undef TENON_NUMBER_RIGHT
#undef TENON_NUMBER_LEFT

Tensor pow(const Tensor& a, Scalar b) {
  require_defined("pow", a);
  const DType dtype = scalar_dtype(a.dtype(), b);
  if (!is_floating(dtype) && b.real() < 0)
    throw make_error<ValueError>(where("pow"), ": ", dtype, " to the negative power ", b,
                                 ": cast to a floating type first");
  Tensor x = cast(a, dtype);
  const double power = b.real();
  if (power == 1 && !is_bool(a.dtype())) return x;
  if (power == 2 && !is_bool(a.dtype())) return square(x);
  if (power == 0.5) return sqrt(x);
  return pow_pair(align("pow", a, b));
}

// Uses branches, not abs and maximum, so that all derivatives exist at ties. Equal infinities have
// distance 0; each side then gets half the gradient.
Tensor logaddexp(const Tensor& left, const Tensor& right) {
  const Called called("logaddexp");
  const Tensor a = to_floating(left), b = to_floating(right);
  const Tensor same = logical_and(eq(a, b), isinf(a));
  const Tensor x = where(same, 0, a), y = where(same, 0, b), first = ge(x, y);
  const Tensor sum = where(first, x, y) + log1p(exp(where(first, y - x, x - y)));
  return where(same, maximum(a, b), sum);
}

Tensor isclose(const Tensor& left, const Tensor& right, double rtol, double atol, bool equal_nan) {
  const Called called("isclose");
  if (!(rtol >= 0 && atol >= 0))
    throw make_error<ValueError>(where("isclose"), ": the tolerances are ", rtol, " and ", atol,
                                 "; they must not be negative");
  const auto number = [](const Tensor& x) {
    return is_floating(x.dtype()) ? x : cast(x, DType::Float64);
  };
  const Tensor a = number(left), b = number(right);
  const Tensor near = isfinite(b) & le(abs(a - b), abs(b) * rtol + atol),
               close = near | eq(left, right);
  return equal_nan ? close | (isnan(a) & isnan(b)) : close;
}
bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  const Called called("allclose");
  return all(isclose(a, b, rtol, atol, equal_nan)).item<bool>();
}
bool equal(const Tensor& a, const Tensor& b) {
  const Called called("equal");
  return a.shape() == b.shape() && all(eq(a, b)).item<bool>();
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  require_defined("where", condition, a, b);
  if (!is_bool(condition.dtype()))
    throw make_error<DTypeError>(where("where"), ": the condition is ", condition.dtype(),
                                 ", not bool: compare it, as in ne(x, 0)");
  const Operands p = align("where", a, b);
  if (condition.shape() == p.a.shape()) return build(Op::Where, {condition, p.a, p.b});
  const Shape shape = broadcast_shapes(condition.shape(), p.a.shape(), where("where"));
  return build(Op::Where, {broadcast_to(condition, shape), broadcast_to(p.a, shape),
                           broadcast_to(p.b, shape)});
}

Tensor where(const Tensor& condition, Scalar a, const Tensor& b) {
  require_defined("where", condition, b);
  const Operands p = align("where", a, b);
  return where(condition, p.a, p.b);
}

Tensor where(const Tensor& condition, const Tensor& a, Scalar b) {
  require_defined("where", condition, a);
  const Operands p = align("where", a, b);
  return where(condition, p.a, p.b);
}

// ---- Inference --------------------------------------------------------------------------------

Inferred infer_arithmetic(const Node& node) {
  require_same_dtype(node);
  require_same_shape(node);
  if (is_bool(node.input(0)->dtype))
    throw make_error<DTypeError>(where(node), ": does not take bool");
  return {node.input(0)->dtype, node.input(0)->shape};
}

Inferred infer_arithmetic_floating(const Node& node) {
  require_floating(node, "cast it first");
  return infer_arithmetic(node);
}

Inferred infer_compare(const Node& node) {
  require_same_dtype(node);
  require_same_shape(node);
  return {DType::Bool, node.input(0)->shape};
}

Inferred infer_logical(const Node& node) {
  require_same_dtype(node);
  require_same_shape(node);
  if (!is_bool(node.input(0)->dtype))
    throw make_error<DTypeError>(where(node), ": the node takes bool, not ", node.input(0)->dtype);
  return {DType::Bool, node.input(0)->shape};
}

Inferred infer_where(const Node& node) {
  require_same_shape(node);
  const DType a = node.input(1)->dtype, b = node.input(2)->dtype;
  if (!is_bool(node.input(0)->dtype))
    throw make_error<DTypeError>(where(node), ": the condition is ", node.input(0)->dtype,
                                 ", not bool");
  if (a != b)
    throw make_error<DTypeError>(where(node), ": choices of ", a, " and ", b, "; cast one of them");
  return {a, node.input(0)->shape};
}

// ---- Gradients --------------------------------------------------------------------------------

Gradients vjp_add(const Tensor&, const Tensor& g) { return {g, g}; }
Gradients vjp_sub(const Tensor&, const Tensor& g) { return {g, -g}; }
Gradients vjp_mul(const Tensor& out, const Tensor& g) {
  return {g * input_of(out, 1), g * input_of(out, 0)};
}

Gradients vjp_div(const Tensor& out, const Tensor& g) {
  const Tensor b = input_of(out, 1), ga = g / b;
  return {ga, is_number(b) ? Tensor{} : -(ga * out)};
}

// d a^b / da = b a^(b-1), and 0 for b = 0 whatever a; d/db = a^b log a, and 0 where a = 0 and b >=
// 0. The guards are inside the functions that would overflow, so that second derivatives are finite
// too.
Gradients vjp_pow(const Tensor& out, const Tensor& g) {
  const Tensor a = input_of(out, 0), b = input_of(out, 1);
  if (is_number(b)) {
    const double power = constant_value(b).real();
    return {power == 0 ? Tensor{} : g * (pow(a, power - 1) * power), Tensor{}};
  }
  const Tensor ga = g * (b * pow(a, where(eq(b, 0), 0, b - 1)));
  // A plain number is tested here, so that the graph has no test for each element.
  const bool nonzero = is_constant(a) && !constant_value(a).is_zero();
  const Tensor base = nonzero ? a : where(logical_and(eq(a, 0), ge(b, 0)), 1, a);
  return {ga, g * (out * log(base))};
}

namespace {
// If one operand is NaN, both get the gradient, as in PyTorch.
Gradients vjp_larger(const Tensor& g, const Tensor& a_wins, const Tensor& b_wins,
                     const Tensor& tie) {
  const Tensor half = g * 0.5;
  return {where(tie, half, where(b_wins, 0, g)), where(tie, half, where(a_wins, 0, g))};
}
}  // namespace

Gradients vjp_maximum(const Tensor& out, const Tensor& g) {
  const Tensor a = input_of(out, 0), b = input_of(out, 1);
  return vjp_larger(g, gt(a, b), lt(a, b), eq(a, b));
}

Gradients vjp_minimum(const Tensor& out, const Tensor& g) {
  const Tensor a = input_of(out, 0), b = input_of(out, 1);
  return vjp_larger(g, lt(a, b), gt(a, b), eq(a, b));
}

Gradients vjp_atan2(const Tensor& out, const Tensor& g) {
  const Tensor y = input_of(out, 0), x = input_of(out, 1), length = square(x) + square(y);
  const Tensor scaled = g / where(eq(length, 0), 1, length);  // zero gradient at the origin
  return {scaled * x, -(scaled * y)};
}

Gradients vjp_remainder(const Tensor& out, const Tensor& g) {
  const Tensor a = input_of(out, 0), b = input_of(out, 1);
  return {g, is_number(b) ? Tensor{} : -(g * floor_divide(a, b))};
}

Gradients vjp_where(const Tensor& out, const Tensor& g) {
  const Tensor condition = input_of(out, 0);
  return {Tensor{}, where(condition, g, 0), where(condition, 0, g)};
}

}  // namespace tenon
