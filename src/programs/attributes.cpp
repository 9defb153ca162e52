// Every attribute struct by name: which members it has, and which operations have it.
//
// each_field() names all members in a structured binding, so a struct with a new member does not
// compile until its function here knows the member.
#include "programs/attributes.h"

#include <cstdint>
#include <utility>

#include "graph/tracing/body.h"

namespace tenon {
namespace {

constexpr const char* kRandomKinds[] = {"uniform", "normal", "bits"};
constexpr const char* kRecurrenceKinds[] = {"sum", "product", "linear", "largest", "smallest"};

template <class Enum>
void field_by_name(AttributeFields& field, const char* key, Enum& value,
                   std::span<const char* const> names) {
  NamedNumber named{static_cast<std::int64_t>(value), names};
  field(key, named);
  value = static_cast<Enum>(named.number);
}

void each_field(ConstantAttrs& attrs, AttributeFields& field) {
  auto& [value] = attrs;
  field("value", value);
}
// The form of gradients changes no value, so embeddings of a loaded program have dense gradients.
void each_field(AxisAttrs& attrs, AttributeFields& field) {
  auto& [axis, rows] = attrs;
  field("axis", axis);
}
void each_field(RandomAttrs& attrs, AttributeFields& field) {
  auto& [kind, offset] = attrs;
  field_by_name(field, "kind", kind, kRandomKinds);
  field("offset", offset);
}
void each_field(ResultAttrs& attrs, AttributeFields& field) {
  auto& [index] = attrs;
  field("index", index);
}
void each_field(ReduceAttrs& attrs, AttributeFields& field) {
  auto& [axes] = attrs;
  field("axes", axes);
}
void each_field(PermuteAttrs& attrs, AttributeFields& field) {
  auto& [axes] = attrs;
  field("axes", axes);
}
void each_field(SliceAttrs& attrs, AttributeFields& field) {
  auto& [start, step] = attrs;
  field("start", start);
  field("step", step);
}
void each_field(PadAttrs& attrs, AttributeFields& field) {
  auto& [before, after, value] = attrs;
  field("before", before);
  field("after", after);
  field("value", value);
}
void each_field(SortAttrs& attrs, AttributeFields& field) {
  auto& [count, descending, first] = attrs;
  field("count", count);
  field("descending", descending);
  field("first", first);
}
// Inference refuses the axis -1.
void each_field(RecurrenceAttrs& attrs, AttributeFields& field) {
  auto& [axis, kind, reverse] = attrs;
  std::int64_t wide = axis;
  field("axis", wide);
  axis = std::in_range<std::int32_t>(wide) ? static_cast<std::int32_t>(wide) : -1;
  field_by_name(field, "kind", kind, kRecurrenceKinds);
  field("reverse", reverse);
}
void each_field(FourierAttrs& attrs, AttributeFields& field) {
  auto& [axis, inverse, mirrored, length, kept, scale] = attrs;
  std::int64_t wide = axis, backwards = inverse, conjugates = mirrored;
  field("axis", wide);
  field("inverse", backwards);
  field("mirrored", conjugates);
  axis = std::in_range<std::int32_t>(wide) ? static_cast<std::int32_t>(wide) : -1;
  inverse = backwards != 0 ? 1 : 0;
  mirrored = conjugates != 0 ? 1 : 0;
  field("length", length);
  field("kept", kept);
  field("scale", scale);
}
void each_field(ConvAttrs& attrs, AttributeFields& field) {
  auto& [stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups] = attrs;
  field("stride_h", stride_h);
  field("stride_w", stride_w);
  field("pad_h", pad_h);
  field("pad_w", pad_w);
  field("dil_h", dil_h);
  field("dil_w", dil_w);
  field("groups", groups);
}
void each_field(ContractionAttrs& attrs, AttributeFields& field) {
  auto& [conv, precision, unused] = attrs;
  each_field(conv, field);
  field("precision", precision);
}
void each_field(AttentionAttrs& attrs, AttributeFields& field) {
  auto& [scale, precision, causal, unused] = attrs;
  field("scale", scale);
  field("precision", precision);
  field("causal", causal);
}
void each_field(PoolAttrs& attrs, AttributeFields& field) {
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
void each_field(ResponseAttrs& attrs, AttributeFields& field) {
  auto& [size, alpha, beta, k] = attrs;
  field("size", size);
  field("alpha", alpha);
  field("beta", beta);
  field("k", k);
}
void each_field(FormulaAttrs& attrs, AttributeFields& field) {
  auto& [formula, parameter] = attrs;
  FormulaNumber number{formula};
  field("formula", number);
  field("parameter", parameter);
}
// The keys of bodies are computed from them.
void each_field(ScanAttrs& attrs, AttributeFields& field) {
  auto& [key, length, reverse, carries, rows, body] = attrs;
  field("length", length);
  field("reverse", reverse);
  field("carries", carries);
  field("rows", rows);
  field("body", body);
}
void each_field(CondAttrs& attrs, AttributeFields& field) {
  auto& [key_true, key_false, operands, captured, on_true, on_false] = attrs;
  field("operands", operands);
  field("captured", captured);
  field("on_true", on_true);
  field("on_false", on_false);
}

template <class T>
bool visit(Attrs& attrs, AttributeFields& fields) {
  T value = has_attributes(attrs) ? attrs.as<T>() : T{};
  each_field(value, fields);
  if constexpr (requires { value.body; }) value.key = value.body->key;
  if constexpr (requires { value.on_true; }) {
    value.key_true = value.on_true->key;
    value.key_false = value.on_false->key;
  }
  attrs = value;
  return true;
}

}  // namespace

bool has_attributes(const Attrs& attrs) {
  std::uint64_t kind = 0;
  bool first = true;
  attrs.each_word([&](std::uint64_t word) {
    if (first) kind = word;
    first = false;
  });
  return kind != 0;
}

bool visit_attributes(Op op, Attrs& attrs, AttributeFields& fields) {
  switch (op) {
    case Op::Constant:
      return visit<ConstantAttrs>(attrs, fields);
    case Op::Iota:
    case Op::Concat:
    case Op::Gather:
    case Op::ScatterAdd:
    case Op::Scatter:
    case Op::ScatterMax:
    case Op::ScatterMin:
      return visit<AxisAttrs>(attrs, fields);
    case Op::Fourier:
      return visit<FourierAttrs>(attrs, fields);
    case Op::Recurrence:
      return visit<RecurrenceAttrs>(attrs, fields);
    case Op::Random:
      return visit<RandomAttrs>(attrs, fields);
    case Op::Result:
      return visit<ResultAttrs>(attrs, fields);
    case Op::Sum:
    case Op::Prod:
    case Op::Max:
    case Op::Min:
      return visit<ReduceAttrs>(attrs, fields);
    case Op::Permute:
      return visit<PermuteAttrs>(attrs, fields);
    case Op::Slice:
      return visit<SliceAttrs>(attrs, fields);
    case Op::Pad:
      return visit<PadAttrs>(attrs, fields);
    case Op::Sort:
      return visit<SortAttrs>(attrs, fields);
    case Op::Matmul:
    case Op::Conv2d:
    case Op::Conv2dInputGrad:
    case Op::Conv2dWeightGrad:
      return visit<ContractionAttrs>(attrs, fields);
    case Op::Attention:
    case Op::AttentionGrad:
      return visit<AttentionAttrs>(attrs, fields);
    case Op::MaxPool2d:
    case Op::MaxPool2dGrad:
    case Op::MaxPool2dGather:
    case Op::AvgPool2d:
    case Op::AvgPool2dGrad:
      return visit<PoolAttrs>(attrs, fields);
    case Op::ResponseNorm:
    case Op::ResponseNormGrad:
      return visit<ResponseAttrs>(attrs, fields);
    case Op::Formula:
      return visit<FormulaAttrs>(attrs, fields);
    case Op::Scan:
      return visit<ScanAttrs>(attrs, fields);
    case Op::Cond:
      return visit<CondAttrs>(attrs, fields);
    default:
      return false;
  }
}

}  // namespace tenon
