// What the language adds to each op's row: inference, gradient, decomposition, in the order of the
// enum. A missing, misplaced or incomplete row fails to compile.
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

using InferResult = Inferred(const Node&, std::int64_t);
using VjpResults = Gradients(const Tensor&, std::span<const Tensor>);
using ResultCount = std::int64_t(const Node&);

constexpr OpInfo row(Op op, Infer& infer, Vjp& vjp) {
  return {op_row(op), infer, vjp, nullptr, nullptr, nullptr, nullptr, nullptr};
}

constexpr OpInfo row(Op op, Infer& infer, const char* reason) {
  return {op_row(op), infer, nullptr, nullptr, reason, nullptr, nullptr, nullptr};
}

constexpr OpInfo composite(Op op, Infer& infer, Vjp& vjp, Decompose& decompose) {
  return {op_row(op), infer, vjp, decompose, nullptr, nullptr, nullptr, nullptr};
}

constexpr OpInfo loop(Op op, Infer& infer, InferResult& infer_result, ResultCount& count) {
  return {op_row(op), infer, nullptr, nullptr, nullptr, infer_result, nullptr, count};
}

constexpr OpInfo several(Op op, Infer& infer, InferResult& infer_result, ResultCount& count,
                         VjpResults& vjp) {
  return {op_row(op), infer, nullptr, nullptr, nullptr, infer_result, vjp, count};
}

constexpr std::array kRows = {
    row(Op::Data, infer_stored, kLeaf),
    row(Op::Variable, infer_stored, kLeaf),
    row(Op::Constant, infer_constant, kLeaf),
    row(Op::Iota, infer_iota, kLeaf),
    row(Op::Random, infer_random, "a random number does not depend on what could have a gradient"),

    row(Op::Neg, infer_unary_number, vjp_neg),
    row(Op::Abs, infer_unary_number, vjp_abs),
    row(Op::Sign, infer_unary_number, vjp_zero),
    row(Op::Exp, infer_unary_floating, vjp_exp),
    row(Op::Expm1, infer_unary_floating, vjp_expm1),
    row(Op::Log, infer_unary_floating, vjp_log),
    row(Op::Log1p, infer_unary_floating, vjp_log1p),
    row(Op::Sqrt, infer_unary_floating, vjp_sqrt),
    row(Op::Rsqrt, infer_unary_floating, vjp_rsqrt),
    row(Op::Reciprocal, infer_unary_floating, vjp_reciprocal),
    row(Op::Square, infer_unary_number, vjp_square),
    row(Op::Sin, infer_unary_floating, vjp_sin),
    row(Op::Cos, infer_unary_floating, vjp_cos),
    row(Op::Tanh, infer_unary_floating, vjp_tanh),
    row(Op::Sigmoid, infer_unary_floating, vjp_sigmoid),
    row(Op::Relu, infer_unary_number, vjp_relu),
    row(Op::Erf, infer_unary_floating, vjp_erf),
    row(Op::Floor, infer_unary_floating, vjp_zero),
    row(Op::Ceil, infer_unary_floating, vjp_zero),
    row(Op::Round, infer_unary_floating, vjp_zero),
    row(Op::Trunc, infer_unary_floating, vjp_zero),
    row(Op::LogicalNot, infer_logical_not, kBool),
    row(Op::IsNan, infer_unary_test, kBool),
    row(Op::IsInf, infer_unary_test, kBool),
    row(Op::Cast, infer_cast, vjp_cast),
    row(Op::StopGradient, infer_same, kStops),

    row(Op::Add, infer_arithmetic, vjp_add),
    row(Op::Sub, infer_arithmetic, vjp_sub),
    row(Op::Mul, infer_arithmetic, vjp_mul),
    row(Op::Div, infer_arithmetic, vjp_div),
    row(Op::Pow, infer_arithmetic, vjp_pow),
    row(Op::Maximum, infer_arithmetic, vjp_maximum),
    row(Op::Minimum, infer_arithmetic, vjp_minimum),
    row(Op::Remainder, infer_arithmetic, vjp_remainder),
    row(Op::Eq, infer_compare, kBool),
    row(Op::Ne, infer_compare, kBool),
    row(Op::Lt, infer_compare, kBool),
    row(Op::Le, infer_compare, kBool),
    row(Op::Gt, infer_compare, kBool),
    row(Op::Ge, infer_compare, kBool),
    row(Op::LogicalAnd, infer_logical, kBool),
    row(Op::LogicalOr, infer_logical, kBool),
    row(Op::LogicalXor, infer_logical, kBool),
    row(Op::Where, infer_where, vjp_where),

    row(Op::Sum, infer_sum, vjp_sum),
    row(Op::Prod, infer_sum, vjp_prod),
    row(Op::Max, infer_extremum, vjp_extremum),
    row(Op::Min, infer_extremum, vjp_extremum),
    row(Op::ArgMax, infer_arg_extremum, kIndex),
    row(Op::ArgMin, infer_arg_extremum, kIndex),

    row(Op::Reshape, infer_reshape, vjp_reshape),
    row(Op::Permute, infer_permute, vjp_permute),
    row(Op::Expand, infer_expand, vjp_expand),
    row(Op::Slice, infer_slice, vjp_slice),

    row(Op::Concat, infer_concat, vjp_concat),
    row(Op::Pad, infer_pad, vjp_pad),
    row(Op::Gather, infer_gather, vjp_gather),
    row(Op::ScatterAdd, infer_scatter_add, vjp_scatter_add),
    row(Op::ToDevice, infer_same, vjp_to),

    loop(Op::Scan, infer_scan, infer_scan_result, count_scan_results),
    loop(Op::Cond, infer_cond, infer_cond_result, count_cond_results),
    row(Op::Result, infer_result, "its gradient is part of what the op of the results is given"),

    row(Op::Matmul, infer_matmul, vjp_matmul),
    row(Op::Conv2d, infer_conv2d, vjp_conv2d),
    row(Op::Conv2dInputGrad, infer_conv2d_input_grad, vjp_conv2d_input_grad),
    row(Op::Conv2dWeightGrad, infer_conv2d_weight_grad, vjp_conv2d_weight_grad),

    row(Op::MaxPool2d, infer_max_pool2d, vjp_max_pool2d),
    row(Op::MaxPool2dGrad, infer_max_pool2d_grad, vjp_max_pool2d_grad),
    row(Op::MaxPool2dGather, infer_max_pool2d_gather, vjp_max_pool2d_gather),
    row(Op::AvgPool2d, infer_avg_pool2d, vjp_avg_pool2d),
    row(Op::AvgPool2dGrad, infer_avg_pool2d_grad, vjp_avg_pool2d_grad),

    composite(Op::Softmax, infer_softmax, vjp_softmax, decompose_softmax),
    composite(Op::LogSoftmax, infer_softmax, vjp_log_softmax, decompose_log_softmax),

    row(Op::Assign, infer_assign, vjp_assign),
    row(Op::WithUpdates, infer_with_updates, vjp_with_updates),

    row(Op::Tan, infer_unary_floating, vjp_tan),
    row(Op::Asin, infer_unary_floating, vjp_asin),
    row(Op::Acos, infer_unary_floating, vjp_acos),
    row(Op::Atan, infer_unary_floating, vjp_atan),
    row(Op::Sinh, infer_unary_floating, vjp_sinh),
    row(Op::Cosh, infer_unary_floating, vjp_cosh),
    row(Op::Atan2, infer_arithmetic_floating, vjp_atan2),
    several(Op::Sort, infer_sort, infer_sort_result, count_sort_results, vjp_sort),
};

constexpr bool is_composite(const OpInfo& info) { return info.kind == OpKind::Composite; }

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].op) != i ||
        is_composite(kRows[i]) != (kRows[i].decompose != nullptr))
      return false;
  return kRows.size() == static_cast<std::size_t>(kOpCount);
}
static_assert(in_order(), "a row for each op, in the order of the enum");

}  // namespace

const OpInfo& op_info(Op op) { return kRows[static_cast<std::size_t>(op)]; }

}  // namespace tenon
