// Builds nodes through their rows; promotion, conversion of numbers to constants, axes.
#include "ops/infer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <tenon/error.h>

#include "base/make_error.h"
#include "base/str.h"

namespace tenon {

OpPlace where(const Node& node) {
  OpPlace place = where(op_info(node.op).name);
  for (const Node* input : node.in()) place.operands.push_back(input->shape);
  return place;
}

void refuse_undefined(const char* op, std::size_t k, std::size_t count) {
  const std::string which = count > 1 ? cat("tensor ", k + 1, " of ", count) : "its tensor";
  throw make_error<ValueError>(where(op), ": ", which, " has no value: it was never assigned");
}

Tensor build_as(Op op, DType dtype, const Shape& shape, std::span<const Tensor> inputs,
                const Attrs& attrs) {
  const Node* placed = nullptr;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].defined()) refuse_undefined(op_info(op).name, k, inputs.size());
    const Node* node = inputs[k].node();
    if (!node->placed) continue;
    if (placed == nullptr) placed = node;
    if (node->device != placed->device && kind_of(op) != OpKind::Transfer &&
        kind_of(op) != OpKind::Function)
      throw make_error<DeviceError>(where(op_info(op).name), ": inputs on ", placed->device.str(),
                                    " and ", node->device.str(),
                                    "; they must be on one device: move one with to()");
  }
  Tensor out = make_node(op, dtype, shape, attrs, inputs);
  Node& node = *out.node();
  const Inferred inferred = op_info(op).infer(node);
  node.dtype = inferred.dtype;
  node.shape = inferred.shape;
  // make_node had to decide before the dtype was known.
  node.tracked &= is_floating(inferred.dtype) || has_trait(op, kSeveralResults);
  return out;
}

Tensor build_as(Op op, DType dtype, const Shape& shape, std::initializer_list<Tensor> inputs,
                const Attrs& attrs) {
  return build_as(op, dtype, shape, std::span<const Tensor>(inputs.begin(), inputs.size()), attrs);
}

Tensor build(Op op, std::span<const Tensor> inputs, const Attrs& attrs) {
  return build_as(op, DType::Float32, Shape{}, inputs, attrs);
}

Tensor build(Op op, std::initializer_list<Tensor> inputs, const Attrs& attrs) {
  return build(op, std::span<const Tensor>(inputs.begin(), inputs.size()), attrs);
}

Tensor new_node_of(const Tensor& x) { return build_as(Op::Cast, x.dtype(), x.shape(), {x}); }

// One canonical form for each number and dtype, so that equal constants are one node.
Tensor constant(const Shape& shape, Scalar value, DType dtype) {
  const Scalar held = is_floating(dtype) ? Scalar(value.real())
                      : is_bool(dtype)   ? Scalar(value.is_zero() ? 0 : 1)
                                         : Scalar(value.whole());
  return build_as(Op::Constant, dtype, shape, std::span<const Tensor>{}, ConstantAttrs{held});
}

double stored_value(double v, DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return static_cast<double>(static_cast<float>(float16(static_cast<float>(v))));
    case DType::BFloat16:
      return static_cast<double>(static_cast<float>(bfloat16(static_cast<float>(v))));
    case DType::Float32:
      return static_cast<double>(static_cast<float>(v));
    default:
      return v;
  }
}

void compute_once(const Tensor& x) {
  if (!is_floating(x.dtype()) || x.node()->tracked) (void)x.compute();
}

Tensor to_floating(const Tensor& x) { return is_floating(x.dtype()) ? x : cast(x, DType::Float32); }

DType scalar_dtype(DType tensor, Scalar scalar) {
  if (is_floating(tensor)) return tensor;
  if (!scalar.is_whole()) return DType::Float32;
  return is_bool(tensor) ? DType::Int64 : tensor;
}

DType operand_dtype(const char* op, const Tensor& a, const Tensor& b) {
  const bool mixed = is_floating(a.dtype()) && is_floating(b.dtype()) && a.dtype() != b.dtype() &&
                     (a.dtype() == DType::Float64 || b.dtype() == DType::Float64);
  if (mixed)
    throw make_error<DTypeError>(where(op), ": a ", a.dtype(), " tensor ", a.shape(), " meets a ",
                                 b.dtype(), " tensor ", b.shape(),
                                 ": convert one of them, for instance with to(DType::Float32); a "
                                 "list of doubles is float64");
  return promote(a.dtype(), b.dtype());
}

bool can_represent(DType dtype, Scalar value) {
  if (is_floating(dtype)) return true;
  if (!value.is_whole() && !(value.real() >= -0x1p63 && value.real() < 0x1p63)) return false;
  const std::int64_t v = value.whole();
  switch (dtype) {
    case DType::Bool:
      return v == 0 || v == 1;
    case DType::UInt8:
      return v >= 0 && v <= 255;
    case DType::Int8:
      return v >= -128 && v <= 127;
    case DType::Int32:
      return v >= std::numeric_limits<std::int32_t>::min() &&
             v <= std::numeric_limits<std::int32_t>::max();
    default:
      return true;
  }
}

Tensor scalar_operand(const char* op, Scalar value, const Shape& shape, DType dtype) {
  if (!can_represent(dtype, value))
    throw make_error<ValueError>(where(op), ": the number ", value, " does not fit ", dtype,
                                 ": cast the tensor to a larger type first");
  return constant(shape, value, dtype);
}

Shape keepdim_shape(const Shape& shape, std::int64_t mask) {
  Shape out = shape;
  for (int a = 0; a < shape.rank(); ++a)
    if ((mask >> a) & 1) out[a] = 1;
  return out;
}

int axis_of(const char* op, std::int64_t axis, int rank) {
  constexpr std::int64_t kFar = std::numeric_limits<int>::max();  // outside any rank
  const auto near = static_cast<int>(std::clamp(axis, -kFar, kFar));
  if (rank == 0 && near != 0 && near != -1)
    throw make_error<ShapeError>(where(op), ": axis ", near, " is outside [-1, 0] for a scalar");
  return normalize_axis(near, std::max(rank, 1), where(op));
}

int node_axis(const Node& node, int rank) {
  const std::int64_t axis = node.attrs.as<AxisAttrs>().axis;
  if (axis >= 0 && axis < rank) return static_cast<int>(axis);
  // Engines count axes from 0, and a saved program may hold any number.
  throw make_error<ShapeError>(where(node), ": axis ", axis, " of a tensor with ", rank,
                               rank == 1 ? " axis" : " axes");
}

std::int64_t axis_mask(const char* op, const Ints& axes, int rank) {
  const std::int64_t all = (std::int64_t{1} << rank) - 1;
  if (axes.empty()) return all;
  std::int64_t mask = 0;
  for (const std::int64_t axis : axes) {
    const int a = axis_of(op, axis, rank);
    if ((mask >> a) & 1)
      throw make_error<ShapeError>(where(op), ": axis ", axis, " is given twice");
    mask |= std::int64_t{1} << a;
  }
  return mask & all;
}

std::int64_t size_product(const char* op, std::int64_t a, std::int64_t b) {
  std::int64_t both = 0;
  if (__builtin_mul_overflow(a, b, &both))
    throw make_error<ShapeError>(where(op), ": ", a, " times ", b, " elements exceed int64");
  return both;
}

Shape to_shape(const Ints& sizes) { return Shape(sizes.data(), static_cast<int>(sizes.size())); }
Ints to_ints(const Shape& shape) { return Ints(shape.begin(), shape.end()); }

void require_floating(const Node& node, const char* advice) {
  for (const Node* in : node.in())
    if (!is_floating(in->dtype))
      throw make_error<DTypeError>(where(node), ": takes floating tensors, not ", in->dtype, ": ",
                                   advice);
}

void require_same_dtype(const Node& node) {
  for (const Node* in : node.in())
    if (in->dtype != node.input(0)->dtype)
      throw make_error<DTypeError>(where(node), ": inputs of ", node.input(0)->dtype, " and ",
                                   in->dtype, "; cast one of them");
}

void require_same_shape(const Node& node) {
  for (const Node* in : node.in())
    if (in->shape != node.input(0)->shape)
      throw make_error<ShapeError>(where(node), ": inputs of shapes ", node.input(0)->shape,
                                   " and ", in->shape, "; they must be equal");
}

}  // namespace tenon
