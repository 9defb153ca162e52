// The whole language on one page. Everything that Tenon computes is one of these ops; everything
// else is built from them.
//
// A row for each stands in ops/table.cpp (name, kind, inference, gradient, decomposition).
// Attributes per op are in attrs.h.
#pragma once

#include <cstdint>

namespace tenon {

enum class Op : std::uint8_t {
  // Leaves: no inputs.
  Data,      // an immutable value held by the node
  Variable,  // a value that Assign may replace
  Constant,  // a scalar number in the attributes, any shape
  Iota,      // 0, 1, 2, … along one axis
  Random,  // Philox bits, as such, as uniform [0, 1) or as standard normal; input: int64[2] (seed,
           // counter)
  // Element-wise, one input.
  Neg,
  Abs,
  Sign,
  Exp,
  Expm1,
  Log,
  Log1p,
  Sqrt,
  Rsqrt,
  Reciprocal,
  Square,
  Sin,
  Cos,
  Tanh,
  Sigmoid,
  Relu,
  Erf,
  Floor,
  Ceil,
  Round,
  Trunc,
  LogicalNot,
  IsNan,
  IsInf,
  Cast,
  StopGradient,
  // Element-wise, two inputs of the same shape and dtype, not bool (comparisons take bool, the
  // logical ops nothing else). Div of
  // integers truncates; Remainder has the divisor's sign, as in Python.
  Add,
  Sub,
  Mul,
  Div,
  Pow,
  Maximum,
  Minimum,
  Remainder,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  LogicalAnd,
  LogicalOr,
  LogicalXor,
  // Element-wise, three inputs: (condition bool, a, b).
  Where,
  // Reductions over a set of axes, which stay with size 1 (the builders drop them by Reshape). Sum
  // and Prod take floating or
  // int64 inputs (the builders cast), Max and Min anything but bool.
  Sum,
  Prod,
  Max,
  Min,
  // Index of the first maximum or minimum along the last axis (kept with size 1), int64.
  ArgMax,
  ArgMin,
  // Views: no element changes.
  Reshape,
  Permute,
  Expand,
  Slice,
  // Movement.
  Concat,
  Pad,
  Gather,
  ScatterAdd,
  ToDevice,  // the same value on another device: what it reads is computed first, where it lives
  // Contractions.
  Matmul,
  Conv2d,
  Conv2dInputGrad,
  Conv2dWeightGrad,
  // Pooling. MaxPool2dGrad(x, g) sends g to each window's first maximum of x; MaxPool2dGather(x, g)
  // reads g there.
  MaxPool2d,
  MaxPool2dGrad,
  MaxPool2dGather,
  AvgPool2d,
  AvgPool2dGrad,
  // Composites that an engine may claim whole before they are decomposed.
  Softmax,
  LogSoftmax,
  // Effects.
  Assign,  // (variable, value): the variable holds the value afterwards; yields the value
  kCount
};

inline constexpr int kOpCount = static_cast<int>(Op::kCount);

enum class OpKind : std::uint8_t {
  Leaf,
  Elementwise,
  Reduction,
  ArgReduction,
  View,
  Movement,
  Contraction,
  Pooling,
  Composite,
  Effect
};

}  // namespace tenon
