// Every row of the language, in the order of the enum. A missing, misplaced or incomplete row fails
// to compile.
#include "ops/table.h"

#include <array>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr const char* kLeaf = "a leaf has no inputs";
constexpr const char* kBool = "its result is bool, which has no gradient";
constexpr const char* kIndex = "its result is an index, which has no gradient";
constexpr const char* kStops = "it stops the gradient by definition";

// Functions come by reference, so that none can be missing: a row has inference, and a gradient or
// a reason for none.
using Infer = Inferred(const Node&);
using Vjp = Gradients(const Tensor&, const Tensor&);
using Decompose = Tensor(const Tensor&);

constexpr OpInfo row(Op op, const char* name, OpKind kind, int arity, Infer& infer, Vjp& vjp) {
  return {op, name, kind, arity, infer, vjp, nullptr, nullptr};
}

constexpr OpInfo row(Op op, const char* name, OpKind kind, int arity, Infer& infer,
                     const char* reason) {
  return {op, name, kind, arity, infer, nullptr, nullptr, reason};
}

constexpr OpInfo composite(Op op, const char* name, int arity, Infer& infer, Vjp& vjp,
                           Decompose& decompose) {
  return {op, name, OpKind::Composite, arity, infer, vjp, decompose, nullptr};
}

constexpr OpKind L = OpKind::Leaf, E = OpKind::Elementwise, R = OpKind::Reduction,
                 A = OpKind::ArgReduction, V = OpKind::View, M = OpKind::Movement,
                 C = OpKind::Contraction, P = OpKind::Pooling;

constexpr std::array kRows = {
    row(Op::Data, "data", L, 0, infer_stored, kLeaf),
    row(Op::Variable, "variable", L, 0, infer_stored, kLeaf),
    row(Op::Constant, "constant", L, 0, infer_constant, kLeaf),
    row(Op::Iota, "iota", L, 0, infer_iota, kLeaf),
    row(Op::Random, "random", L, 1, infer_random,
        "a random number does not depend on what could have a gradient"),

    row(Op::Neg, "neg", E, 1, infer_unary_number, vjp_neg),
    row(Op::Abs, "abs", E, 1, infer_unary_number, vjp_abs),
    row(Op::Sign, "sign", E, 1, infer_unary_number, vjp_zero),
    row(Op::Exp, "exp", E, 1, infer_unary_floating, vjp_exp),
    row(Op::Expm1, "expm1", E, 1, infer_unary_floating, vjp_expm1),
    row(Op::Log, "log", E, 1, infer_unary_floating, vjp_log),
    row(Op::Log1p, "log1p", E, 1, infer_unary_floating, vjp_log1p),
    row(Op::Sqrt, "sqrt", E, 1, infer_unary_floating, vjp_sqrt),
    row(Op::Rsqrt, "rsqrt", E, 1, infer_unary_floating, vjp_rsqrt),
    row(Op::Reciprocal, "reciprocal", E, 1, infer_unary_floating, vjp_reciprocal),
    row(Op::Square, "square", E, 1, infer_unary_number, vjp_square),
    row(Op::Sin, "sin", E, 1, infer_unary_floating, vjp_sin),
    row(Op::Cos, "cos", E, 1, infer_unary_floating, vjp_cos),
    row(Op::Tanh, "tanh", E, 1, infer_unary_floating, vjp_tanh),
    row(Op::Sigmoid, "sigmoid", E, 1, infer_unary_floating, vjp_sigmoid),
    row(Op::Relu, "relu", E, 1, infer_unary_number, vjp_relu),
    row(Op::Erf, "erf", E, 1, infer_unary_floating, vjp_erf),
    row(Op::Floor, "floor", E, 1, infer_unary_floating, vjp_zero),
    row(Op::Ceil, "ceil", E, 1, infer_unary_floating, vjp_zero),
    row(Op::Round, "round", E, 1, infer_unary_floating, vjp_zero),
    row(Op::Trunc, "trunc", E, 1, infer_unary_floating, vjp_zero),
    row(Op::LogicalNot, "logical_not", E, 1, infer_logical_not, kBool),
    row(Op::IsNan, "isnan", E, 1, infer_unary_test, kBool),
    row(Op::IsInf, "isinf", E, 1, infer_unary_test, kBool),
    row(Op::Cast, "cast", E, 1, infer_cast, vjp_cast),
    row(Op::StopGradient, "detach", E, 1, infer_same, kStops),

    row(Op::Add, "add", E, 2, infer_arithmetic, vjp_add),
    row(Op::Sub, "sub", E, 2, infer_arithmetic, vjp_sub),
    row(Op::Mul, "mul", E, 2, infer_arithmetic, vjp_mul),
    row(Op::Div, "div", E, 2, infer_arithmetic, vjp_div),
    row(Op::Pow, "pow", E, 2, infer_arithmetic, vjp_pow),
    row(Op::Maximum, "maximum", E, 2, infer_arithmetic, vjp_maximum),
    row(Op::Minimum, "minimum", E, 2, infer_arithmetic, vjp_minimum),
    row(Op::Remainder, "remainder", E, 2, infer_arithmetic, vjp_remainder),
    row(Op::Eq, "eq", E, 2, infer_compare, kBool),
    row(Op::Ne, "ne", E, 2, infer_compare, kBool),
    row(Op::Lt, "lt", E, 2, infer_compare, kBool),
    row(Op::Le, "le", E, 2, infer_compare, kBool),
    row(Op::Gt, "gt", E, 2, infer_compare, kBool),
    row(Op::Ge, "ge", E, 2, infer_compare, kBool),
    row(Op::LogicalAnd, "logical_and", E, 2, infer_logical, kBool),
    row(Op::LogicalOr, "logical_or", E, 2, infer_logical, kBool),
    row(Op::LogicalXor, "logical_xor", E, 2, infer_logical, kBool),
    row(Op::Where, "where", E, 3, infer_where, vjp_where),

    row(Op::Sum, "sum", R, 1, infer_sum, vjp_sum),
    row(Op::Prod, "prod", R, 1, infer_sum, vjp_prod),
    row(Op::Max, "amax", R, 1, infer_extremum, vjp_extremum),
    row(Op::Min, "amin", R, 1, infer_extremum, vjp_extremum),
    row(Op::ArgMax, "argmax", A, 1, infer_arg_extremum, kIndex),
    row(Op::ArgMin, "argmin", A, 1, infer_arg_extremum, kIndex),

    row(Op::Reshape, "reshape", V, 1, infer_reshape, vjp_reshape),
    row(Op::Permute, "permute", V, 1, infer_permute, vjp_permute),
    row(Op::Expand, "expand", V, 1, infer_expand, vjp_expand),
    row(Op::Slice, "slice", V, 1, infer_slice, vjp_slice),

    row(Op::Concat, "concat", M, -1, infer_concat, vjp_concat),
    row(Op::Pad, "pad", M, 1, infer_pad, vjp_pad),
    row(Op::Gather, "gather", M, 2, infer_gather, vjp_gather),
    row(Op::ScatterAdd, "scatter_add", M, 3, infer_scatter_add, vjp_scatter_add),
    row(Op::ToDevice, "to", M, 1, infer_same, vjp_to),

    row(Op::Matmul, "matmul", C, 2, infer_matmul, vjp_matmul),
    row(Op::Conv2d, "conv2d", C, 2, infer_conv2d, vjp_conv2d),
    row(Op::Conv2dInputGrad, "conv2d_input_grad", C, 2, infer_conv2d_input_grad,
        vjp_conv2d_input_grad),
    row(Op::Conv2dWeightGrad, "conv2d_weight_grad", C, 2, infer_conv2d_weight_grad,
        vjp_conv2d_weight_grad),

    row(Op::MaxPool2d, "max_pool2d", P, 1, infer_max_pool2d, vjp_max_pool2d),
    row(Op::MaxPool2dGrad, "max_pool2d_grad", P, 2, infer_max_pool2d_grad, vjp_max_pool2d_grad),
    row(Op::MaxPool2dGather, "max_pool2d_gather", P, 2, infer_max_pool2d_gather,
        vjp_max_pool2d_gather),
    row(Op::AvgPool2d, "avg_pool2d", P, 1, infer_avg_pool2d, vjp_avg_pool2d),
    row(Op::AvgPool2dGrad, "avg_pool2d_grad", P, 1, infer_avg_pool2d_grad, vjp_avg_pool2d_grad),

    composite(Op::Softmax, "softmax", 1, infer_softmax, vjp_softmax, decompose_softmax),
    composite(Op::LogSoftmax, "log_softmax", 1, infer_softmax, vjp_log_softmax,
              decompose_log_softmax),

    row(Op::Assign, "assign", OpKind::Effect, 2, infer_assign, vjp_assign),
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].op) != i) return false;
  return kRows.size() == static_cast<std::size_t>(kOpCount);
}
static_assert(in_order(), "a row for each op, in the order of the enum");

}  // namespace

const OpInfo& op_info(Op op) { return kRows[static_cast<std::size_t>(op)]; }

}  // namespace tenon
