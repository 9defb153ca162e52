// Leaves made from attributes: constants and ranges. Random leaves are in random.cpp.
#include <cmath>

#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {

Inferred infer_stored(const Node& node) { return {node.dtype, node.shape}; }
Inferred infer_constant(const Node& node) { return {node.dtype, node.shape}; }

Inferred infer_iota(const Node& node) {
  if (is_bool(node.dtype))
    throw make_error<DTypeError>(where(node),
                                 ": a range cannot be bool; use an integer or floating type");
  node_axis(node, node.shape.rank());
  return {node.dtype, node.shape};
}

namespace {

// A tensor, not a plain number: gradients with respect to it may be requested.
Tensor of_one_value(const Shape& shape, double value, DType dtype) {
  Tensor out = constant(shape, value, dtype);
  out.node()->differentiable = is_floating(dtype);
  return out;
}

}  // namespace

Tensor full(const Shape& shape, Scalar value, DType dtype) {
  if (is_bool(dtype)) return constant(shape, value, dtype);
  // Computed from the value as it is stored in the dtype.
  if (is_floating(dtype)) return of_one_value(shape, stored_value(value.real(), dtype), dtype);
  if (!value.is_whole() && std::trunc(value.real()) != value.real())
    throw make_error<ValueError>(where("full"), ": ", dtype, " cannot represent ", value,
                                 "; use a floating type");
  return scalar_operand("full", value, shape, dtype);
}

Tensor zeros(const Shape& shape, DType dtype) { return of_one_value(shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return of_one_value(shape, 1, dtype); }
Tensor zeros_like(const Tensor& x) {
  require_defined("zeros_like", x);
  return of_one_value(x.shape(), 0, x.dtype());
}
Tensor ones_like(const Tensor& x) {
  require_defined("ones_like", x);
  return of_one_value(x.shape(), 1, x.dtype());
}
Tensor scalar(Scalar value, DType dtype) { return full({}, value, dtype); }

namespace {

// Infinite or NaN if the range has no end.
double steps_between(Scalar start, Scalar end, Scalar step) {
  if (!start.is_whole() || !end.is_whole() || !step.is_whole())
    return std::ceil((end.real() - start.real()) / step.real());
  // Distances within int64 fit the unsigned type.
  const auto word = [](Scalar s) { return static_cast<std::uint64_t>(s.whole()); };
  const bool up = step.whole() > 0;
  if (up ? start.whole() >= end.whole() : start.whole() <= end.whole()) return 0;
  const std::uint64_t distance = up ? word(end) - word(start) : word(start) - word(end),
                      stride = up ? word(step) : 0 - word(step);
  const std::uint64_t whole_strides = (distance - 1) / stride;
  return static_cast<double>(whole_strides + 1);
}

}  // namespace

Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype) {
  if (step.is_zero()) throw make_error<ValueError>(where("arange"), ": the step is 0");
  const double count = steps_between(start, end, step);
  if (!(count < 0x1p62))
    throw make_error<ValueError>(where("arange"), ": from ", start, " to ", end, " in steps of ",
                                 step, " has no end");
  const bool whole = start.is_whole() && step.is_whole();
  if (!is_floating(dtype) && !whole)
    throw make_error<DTypeError>(where("arange"), ": ", dtype,
                                 " with a fractional start or step; use a floating type");
  const Shape shape{count > 0 ? static_cast<std::int64_t>(count) : 0};
  // 16-bit dtypes count in float32, so that the index is exact before it is rounded once. Integers
  // that the dtype cannot represent are computed in int64: uint8 can count down by -1.
  const bool half = dtype == DType::Float16 || dtype == DType::BFloat16;
  const DType counted = half                                                        ? DType::Float32
                        : can_represent(dtype, step) && can_represent(dtype, start) ? dtype
                                                                                    : DType::Int64;
  Tensor x = build_as(Op::Iota, counted, shape, std::span<const Tensor>{}, AxisAttrs{0});
  if (step.real() != 1) x = mul(x, step);
  if (!start.is_zero()) x = add(x, start);
  return cast(x, dtype);
}

}  // namespace tenon
