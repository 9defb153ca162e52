// The fields of attribute structs by name, for saved programs.
//
// each_field(attrs, field) calls field(name, member) for every member that the others do not
// determine. It names all members in a structured binding, so a struct with a new member does not
// compile until its function here knows the member. with_attributes_of() selects the struct of an
// operation; write_node() refuses an operation with attributes that is not in it.
#pragma once

#include <cstdint>
#include <span>

#include "graph/attrs.h"
#include "graph/op.h"

namespace tenon {

/// Names of the values of an enumeration, in their order. Files hold names.
inline constexpr const char* kRandomKinds[] = {"uniform", "normal", "bits"};
inline constexpr const char* kRecurrenceKinds[] = {"sum", "product", "linear", "largest",
                                                   "smallest"};
inline std::span<const char* const> names_of(RandomKind) { return kRandomKinds; }
inline std::span<const char* const> names_of(RecurrenceKind) { return kRecurrenceKinds; }

/// The number of a formula, which a file holds by name.
struct FormulaNumber {
  std::int64_t& number;
};

template <class F>
void each_field(ConstantAttrs& attrs, F&& field) {
  auto& [value] = attrs;
  field("value", value);
}
// The form of gradients changes no value, and embeddings of a loaded program have dense gradients.
template <class F>
void each_field(AxisAttrs& attrs, F&& field) {
  auto& [axis, rows] = attrs;
  field("axis", axis);
}
template <class F>
void each_field(RandomAttrs& attrs, F&& field) {
  auto& [kind, offset] = attrs;
  field("kind", kind);
  field("offset", offset);
}
template <class F>
void each_field(ResultAttrs& attrs, F&& field) {
  auto& [index] = attrs;
  field("index", index);
}
template <class F>
void each_field(ReduceAttrs& attrs, F&& field) {
  auto& [axes] = attrs;
  field("axes", axes);
}
template <class F>
void each_field(PermuteAttrs& attrs, F&& field) {
  auto& [axes] = attrs;
  field("axes", axes);
}
template <class F>
void each_field(SliceAttrs& attrs, F&& field) {
  auto& [start, step] = attrs;
  field("start", start);
  field("step", step);
}
template <class F>
void each_field(PadAttrs& attrs, F&& field) {
  auto& [before, after, value] = attrs;
  field("before", before);
  field("after", after);
  field("value", value);
}
template <class F>
void each_field(SortAttrs& attrs, F&& field) {
  auto& [count, descending, first] = attrs;
  field("count", count);
  field("descending", descending);
  field("first", first);
}
template <class F>
void each_field(RecurrenceAttrs& attrs, F&& field) {
  auto& [axis, kind, reverse] = attrs;
  field("axis", axis);
  field("kind", kind);
  field("reverse", reverse);
}
template <class F>
void each_field(ConvAttrs& attrs, F&& field) {
  auto& [stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups] = attrs;
  field("stride_h", stride_h);
  field("stride_w", stride_w);
  field("pad_h", pad_h);
  field("pad_w", pad_w);
  field("dil_h", dil_h);
  field("dil_w", dil_w);
  field("groups", groups);
}
template <class F>
void each_field(ContractionAttrs& attrs, F&& field) {
  auto& [conv, precision, unused] = attrs;
  each_field(conv, field);
  field("precision", precision);
}
template <class F>
void each_field(AttentionAttrs& attrs, F&& field) {
  auto& [scale, precision, causal, unused] = attrs;
  field("scale", scale);
  field("precision", precision);
  field("causal", causal);
}
template <class F>
void each_field(PoolAttrs& attrs, F&& field) {
  auto& [kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, ceil_mode,
         count_include_pad] = attrs;
  field("kernel_h", kernel_h);
  field("kernel_w", kernel_w);
  field("stride_h", stride_h);
  field("stride_w", stride_w);
  field("pad_h", pad_h);
  field("pad_w", pad_w);
  field("dil_h", dil_h);
  field("dil_w", dil_w);
  field("ceil_mode", ceil_mode);
  field("count_include_pad", count_include_pad);
}
template <class F>
void each_field(ResponseAttrs& attrs, F&& field) {
  auto& [size, alpha, beta, k] = attrs;
  field("size", size);
  field("alpha", alpha);
  field("beta", beta);
  field("k", k);
}
template <class F>
void each_field(FormulaAttrs& attrs, F&& field) {
  auto& [formula, parameter] = attrs;
  FormulaNumber number{formula};
  field("formula", number);
  field("parameter", parameter);
}
// The keys of bodies are computed from them.
template <class F>
void each_field(ScanAttrs& attrs, F&& field) {
  auto& [key, length, reverse, carries, rows, body] = attrs;
  field("length", length);
  field("reverse", reverse);
  field("carries", carries);
  field("rows", rows);
  field("body", body);
}
template <class F>
void each_field(CondAttrs& attrs, F&& field) {
  auto& [key_true, key_false, operands, captured, on_true, on_false] = attrs;
  field("operands", operands);
  field("captured", captured);
  field("on_true", on_true);
  field("on_false", on_false);
}

/// Calls f with default attributes of the struct that nodes of this operation have; not for
/// operations without attributes. Returns whether it called f.
template <class F>
bool with_attributes_of(Op op, F&& f) {
  switch (op) {
    case Op::Constant:
      return f(ConstantAttrs{}), true;
    case Op::Iota:
    case Op::Concat:
    case Op::Gather:
    case Op::ScatterAdd:
    case Op::Scatter:
    case Op::ScatterMax:
    case Op::ScatterMin:
      return f(AxisAttrs{}), true;
    case Op::Recurrence:
      return f(RecurrenceAttrs{}), true;
    case Op::Random:
      return f(RandomAttrs{}), true;
    case Op::Result:
      return f(ResultAttrs{}), true;
    case Op::Sum:
    case Op::Prod:
    case Op::Max:
    case Op::Min:
      return f(ReduceAttrs{}), true;
    case Op::Permute:
      return f(PermuteAttrs{}), true;
    case Op::Slice:
      return f(SliceAttrs{}), true;
    case Op::Pad:
      return f(PadAttrs{}), true;
    case Op::Sort:
      return f(SortAttrs{}), true;
    case Op::Matmul:
    case Op::Conv2d:
    case Op::Conv2dInputGrad:
    case Op::Conv2dWeightGrad:
      return f(ContractionAttrs{}), true;
    case Op::Attention:
    case Op::AttentionGrad:
      return f(AttentionAttrs{}), true;
    case Op::MaxPool2d:
    case Op::MaxPool2dGrad:
    case Op::MaxPool2dGather:
    case Op::AvgPool2d:
    case Op::AvgPool2dGrad:
      return f(PoolAttrs{}), true;
    case Op::ResponseNorm:
    case Op::ResponseNormGrad:
      return f(ResponseAttrs{}), true;
    case Op::Formula:
      return f(FormulaAttrs{}), true;
    case Op::Scan:
      return f(ScanAttrs{}), true;
    case Op::Cond:
      return f(CondAttrs{}), true;
    default:
      return false;
  }
}

}  // namespace tenon
