// Reductions: nodes keep the reduced axes with size 1; builders drop them with a Reshape.
//
// Sum and Prod nodes take floating or int64 inputs and Max and Min anything but bool: the builders
// convert.
#include <bit>
#include <cmath>
#include <limits>

#include <tenon/error.h>
#include <tenon/functional.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/recurrence.h"
#include "ops/rules.h"

namespace tenon {
namespace {

Tensor drop_axes(const Tensor& x, std::int64_t mask) {
  Shape shape;
  for (int a = 0; a < x.rank(); ++a)
    if (((mask >> a) & 1) == 0) shape.push_back(x.shape()[a]);
  return reshape(x, to_ints(shape));
}

Tensor reduce(Op op, const Tensor& x, std::int64_t mask, bool keepdim) {
  if (mask == 0) return x;
  const Tensor reduced = build(op, {x}, ReduceAttrs{mask});
  return keepdim ? reduced : drop_axes(reduced, mask);
}

std::int64_t reduced_count(const Shape& shape, std::int64_t mask) {
  std::int64_t count = 1;
  for (int a = 0; a < shape.rank(); ++a)
    if ((mask >> a) & 1) count *= shape[a];
  return count;
}

// Statistics of 16-bit tensors are computed in float32: a float16 sum overflows where the mean
// would not.
Tensor upcast(const Tensor& x) {
  const bool half = is_floating(x.dtype()) && item_size(x.dtype()) == 2;
  return half ? cast(x, DType::Float32) : to_floating(x);
}

// Casts back to the dtype that a floating-point function of `x` returns.
Tensor downcast(const Tensor& result, const Tensor& x) {
  return is_floating(x.dtype()) ? cast(result, x.dtype()) : result;
}

Tensor accumulable(const Tensor& x) { return is_floating(x.dtype()) ? x : cast(x, DType::Int64); }

Tensor extremum(Op op, const char* name, const Tensor& x, const Ints& axes, bool keepdim) {
  const std::int64_t mask = axis_mask(name, axes, x.rank());
  if (!is_bool(x.dtype())) return reduce(op, x, mask, keepdim);
  return cast(reduce(op, cast(x, DType::UInt8), mask, keepdim), DType::Bool);
}

Tensor arg_extremum(Op op, const char* name, const Tensor& input, int axis, bool keepdim) {
  const Tensor x = is_bool(input.dtype()) ? cast(input, DType::UInt8) : input;
  const int a = axis_of(name, axis, x.rank());
  if (x.rank() == 0) return zeros({}, DType::Int64);
  if (x.shape()[a] == 0)
    throw make_error<ShapeError>(where(name), ": no elements to choose from on axis ", axis, " of ",
                                 x.shape());
  const Tensor index = transpose(build(op, {transpose(x, a, -1)}), a, -1);
  return keepdim ? index : squeeze(index, a);
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keepdim) {
  require_defined("sum", x);
  return reduce(Op::Sum, accumulable(x), axis_mask("sum", axes, x.rank()), keepdim);
}

Tensor prod(const Tensor& x, const Axes& axes, bool keepdim) {
  require_defined("prod", x);
  return reduce(Op::Prod, accumulable(x), axis_mask("prod", axes, x.rank()), keepdim);
}

Tensor mean(const Tensor& x, const Axes& axes, bool keepdim) {
  require_defined("mean", x);
  const std::int64_t mask = axis_mask("mean", axes, x.rank());
  const double count = static_cast<double>(reduced_count(x.shape(), mask));
  return downcast(reduce(Op::Sum, upcast(x), mask, keepdim) / count, x);
}

Tensor var(const Tensor& input, const Axes& axes, bool keepdim, double correction) {
  require_defined("var", input);
  const Tensor x = upcast(input);
  const std::int64_t mask = axis_mask("var", axes, x.rank());
  const double count = static_cast<double>(reduced_count(x.shape(), mask));
  const Tensor centred = x - reduce(Op::Sum, x, mask, true) / count;
  const Tensor squares = reduce(Op::Sum, square(centred), mask, keepdim);
  return downcast(squares / std::fmax(0.0, count - correction), input);
}

Tensor amax(const Tensor& x, const Axes& axes, bool keepdim) {
  require_defined("amax", x);
  return extremum(Op::Max, "amax", x, axes, keepdim);
}
Tensor amin(const Tensor& x, const Axes& axes, bool keepdim) {
  require_defined("amin", x);
  return extremum(Op::Min, "amin", x, axes, keepdim);
}
Tensor argmax(const Tensor& x, int axis, bool keepdim) {
  require_defined("argmax", x);
  return arg_extremum(Op::ArgMax, "argmax", x, axis, keepdim);
}
Tensor argmin(const Tensor& x, int axis, bool keepdim) {
  require_defined("argmin", x);
  return arg_extremum(Op::ArgMin, "argmin", x, axis, keepdim);
}

// By counting, so that empty reductions have a defined result.
Tensor all(const Tensor& x, const Axes& axes, bool keepdim) {
  const Called called("all");
  return eq(sum(logical_not(x), axes, keepdim), 0);
}
Tensor any(const Tensor& x, const Axes& axes, bool keepdim) {
  const Called called("any");
  return ne(sum(cast(x, DType::Bool), axes, keepdim), 0);
}

Tensor logsumexp(const Tensor& input, const Axes& axes, bool keepdim) {
  require_defined("logsumexp", input);
  const Tensor x = upcast(input);
  const std::int64_t mask = axis_mask("logsumexp", axes, x.rank());
  if (reduced_count(x.shape(), mask) == 0) {
    const Tensor nothing =
        full(keepdim_shape(x.shape(), mask), -std::numeric_limits<double>::infinity(), x.dtype());
    return downcast(keepdim ? nothing : drop_axes(nothing, mask), input);
  }
  const Tensor peak = detach(reduce(Op::Max, x, mask, true));
  // Infinity minus infinity is NaN, so an infinite maximum is replaced by the largest finite
  // number.
  const double largest = x.dtype() == DType::Float64 ? std::numeric_limits<double>::max()
                                                     : std::numeric_limits<float>::max();
  const Tensor shift = maximum(minimum(peak, largest), -largest);
  const Tensor result = log(reduce(Op::Sum, exp(x - shift), mask, true)) + shift;
  return downcast(keepdim ? result : drop_axes(result, mask), input);
}

namespace {

// A root whose gradient at 0 is defined as 0.
template <class F>
Tensor rooted(const Tensor& x, F&& root) {
  const Tensor zero = eq(x, 0);
  return where(zero, 0, root(where(zero, 1, x)));
}

}  // namespace

Tensor norm(const Tensor& input, const Axes& axes, bool keepdim) {
  require_defined("norm", input);
  const Tensor x = upcast(input);
  const Tensor squares = reduce(Op::Sum, square(x), axis_mask("norm", axes, x.rank()), keepdim);
  return downcast(rooted(squares, [](const Tensor& t) { return sqrt(t); }), input);
}

Tensor vector_norm(const Tensor& input, double p, const Axes& axes, bool keepdim) {
  constexpr const char* kName = "vector_norm";
  const Called called(kName);
  if (p == 2) return norm(input, axes, keepdim);
  const Tensor x = upcast(input);
  const std::int64_t mask = axis_mask(kName, axes, x.rank());
  if (std::isinf(p))
    return downcast(extremum(p > 0 ? Op::Max : Op::Min, kName, abs(x), axes, keepdim), input);
  if (p == 0) return downcast(reduce(Op::Sum, cast(ne(x, 0), x.dtype()), mask, keepdim), input);
  if (p == 1) return downcast(reduce(Op::Sum, abs(x), mask, keepdim), input);
  const auto power = [p](const Tensor& t) { return pow(t, p); };
  const Tensor sizes = abs(x), raised = p > 0 ? rooted(sizes, power) : power(sizes);
  const Tensor powers = reduce(Op::Sum, raised, mask, keepdim);
  return downcast(rooted(powers, [p](const Tensor& t) { return pow(t, 1 / p); }), input);
}

Tensor stddev(const Tensor& input, const Axes& axes, bool keepdim, double correction) {
  const Called called("stddev");
  const Tensor squares = var(upcast(input), axes, keepdim, correction);
  return downcast(rooted(squares, [](const Tensor& t) { return sqrt(t); }), input);
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int axis, double eps) {
  const Called called("cosine_similarity");
  const Shape all = broadcast_shapes(a.shape(), b.shape(), "cosine_similarity");
  const Tensor x = broadcast_to(upcast(a), all), y = broadcast_to(upcast(b), all);
  const auto size = [&](const Tensor& t) {
    const Tensor length = norm(t, {axis}, true);
    return where(lt(length, eps), eps, length);
  };
  const Tensor product = sum((x / size(x)) * (y / size(y)), {axis});
  return cast(product, promote(to_floating(a).dtype(), to_floating(b).dtype()));
}

// ---- Inference --------------------------------------------------------------------------------

namespace {
Inferred infer_reduced(const Node& node) {
  const Node& x = *node.input(0);
  const std::int64_t mask = node.attrs.as<ReduceAttrs>().axes;
  if ((mask >> x.shape.rank()) != 0)
    throw make_error<ShapeError>(where(node), ": the mask names axes that ", x.shape,
                                 " does not have");
  return {x.dtype, keepdim_shape(x.shape, mask)};
}
}  // namespace

Inferred infer_sum(const Node& node) {
  const DType dtype = node.input(0)->dtype;
  if (!is_floating(dtype) && dtype != DType::Int64)
    throw make_error<DTypeError>(where(node), ": the node takes floating or int64 inputs, not ",
                                 dtype);
  return infer_reduced(node);
}

Inferred infer_extremum(const Node& node) {
  const Node& x = *node.input(0);
  if (is_bool(x.dtype))
    throw make_error<DTypeError>(where(node), ": does not take bool: use any or all");
  if (reduced_count(x.shape, node.attrs.as<ReduceAttrs>().axes) == 0)
    throw make_error<ShapeError>(where(node), ": no elements to choose from in ", x.shape);
  return infer_reduced(node);
}

// Builders have moved the axis; their own message shows the shape as given by the user.
Inferred infer_arg_extremum(const Node& node) {
  const Node& x = *node.input(0);
  if (is_bool(x.dtype))
    throw make_error<DTypeError>(where(node), ": does not take bool: cast to uint8");
  if (x.shape.rank() == 0) throw make_error<ShapeError>(where(node), ": a scalar has no axis");
  if (x.shape.at(-1) == 0)
    throw make_error<ShapeError>(where(node), ": no elements to choose from in ", x.shape);
  return {DType::Int64, keepdim_shape(x.shape, std::int64_t{1} << (x.shape.rank() - 1))};
}

// ---- Gradients --------------------------------------------------------------------------------

Gradients vjp_sum(const Tensor& out, const Tensor& g) {
  return {broadcast_to(g, out.node()->input(0)->shape)};
}

// Ties share the gradient evenly.
Gradients vjp_extremum(const Tensor& out, const Tensor& g) {
  const Tensor x = input_of(out, 0);
  const Tensor hit = cast(eq(x, broadcast_to(out, x.shape())), x.dtype());
  const Tensor share = g / reduce(Op::Sum, hit, out.node()->attrs.as<ReduceAttrs>().axes, true);
  return {hit * broadcast_to(share, x.shape())};
}

namespace {

// For each element, the product of the others along the axis.
Tensor products_of_others(const Tensor& given, int axis) {
  const Tensor x = upcast(given);
  const auto before = [&](bool reverse) {
    const Tensor products = recurrence(RecurrenceKind::Product, {x}, axis, reverse);
    return shifted_by_one(products, axis, 1, reverse);
  };
  return downcast(before(false) * before(true), given);
}

}  // namespace

// The derivative for each element is the product of the others, computed without division, so zeros
// need no special case.
Gradients vjp_prod(const Tensor& out, const Tensor& g) {
  const Tensor x = input_of(out, 0);
  const std::int64_t mask = out.node()->attrs.as<ReduceAttrs>().axes,
                     count = reduced_count(x.shape(), mask);
  if (x.numel() == 0) return {zeros_like(x)};
  if (std::has_single_bit(static_cast<std::uint64_t>(mask))) {
    const int axis = std::countr_zero(static_cast<std::uint64_t>(mask));
    return {broadcast_to(g, x.shape()) * products_of_others(x, axis)};
  }
  Ints order, back(static_cast<std::size_t>(x.rank()));
  for (int reduced = 0; reduced < 2; ++reduced)
    for (int a = 0; a < x.rank(); ++a)
      if (((mask >> a) & 1) == reduced) order.push_back(a);
  for (std::size_t k = 0; k < order.size(); ++k)
    back[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(k);
  const Tensor moved = permute(x, order), rows = reshape(moved, {-1, count});
  const Tensor partial =
      permute(reshape(products_of_others(rows, 1), to_ints(moved.shape())), back);
  return {broadcast_to(g, x.shape()) * partial};
}

}  // namespace tenon
