// Leaves made of attributes: constants and ranges. Random leaves are in random.cpp.
#include <cmath>

#include <tenon/error.h>

#include "base/str.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {

Inferred infer_stored(const Node& node) { return {node.dtype, node.shape}; }
Inferred infer_constant(const Node& node) { return {node.dtype, node.shape}; }

Inferred infer_iota(const Node& node) {
  if (is_bool(node.dtype))
    throw DTypeError(cat(where(node), ": bool does not count; use an integer or floating type"));
  normalize_axis(static_cast<int>(node.attrs.as<AxisAttrs>().axis), node.shape.rank(),
                 where(node).c_str());
  return {node.dtype, node.shape};
}

Tensor full(const Shape& shape, Scalar value, DType dtype) {
  if (is_bool(dtype)) return constant(shape, value.value != 0, dtype);
  if (!is_floating(dtype) && !value.integral && std::trunc(value.value) != value.value)
    throw ValueError(
        cat(where("full"), ": ", dtype, " cannot hold ", value.value, "; ask for a floating type"));
  // The tensor's elements, not a number beside it: computed with as they are stored.
  value.value = stored_value(value.value, dtype);
  return scalar_operand("full", value, shape, dtype);
}

Tensor zeros(const Shape& shape, DType dtype) { return constant(shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return constant(shape, 1, dtype); }
Tensor zeros_like(const Tensor& x) { return constant(x.shape(), 0, x.dtype()); }
Tensor ones_like(const Tensor& x) { return constant(x.shape(), 1, x.dtype()); }
Tensor scalar(Scalar value, DType dtype) { return full({}, value, dtype); }

Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype) {
  if (step.value == 0) throw ValueError(cat(where("arange"), ": the step is 0"));
  const double count = std::ceil((end.value - start.value) / step.value);
  if (!(count < 0x1p62))
    throw ValueError(cat(where("arange"), ": from ", start.value, " to ", end.value,
                         " in steps of ", step.value, " has no end"));
  const bool whole = start.integral && step.integral;
  if (!is_floating(dtype) && !whole)
    throw DTypeError(cat(where("arange"), ": ", dtype,
                         " with a fractional start or step; ask for a floating type"));
  const Shape shape{count > 0 ? static_cast<std::int64_t>(count) : 0};
  // 16-bit types count in float32, so that the index itself is exact before the one rounding.
  const bool narrow = dtype == DType::Float16 || dtype == DType::BFloat16;
  Tensor x = build_as(Op::Iota, narrow ? DType::Float32 : dtype, shape, std::span<const Tensor>{},
                      AxisAttrs{0});
  if (step.value != 1) x = mul(x, step);
  if (start.value != 0) x = add(x, start);
  return cast(x, dtype);
}

}  // namespace tenon
