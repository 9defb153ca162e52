// Reductions of updates with equal indices: by scattering, by slices, and by segments of an axis.
//
// Sums scatter. Products sort the updates by their index and multiply along the axis. Extremes
// are operations of their own (Op::ScatterMax), composed where no engine has them.
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/scattering.h>
#include <tenon/statistics.h>

#include <limits>
#include <utility>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/recurrence.h"
#include "ops/rules.h"

namespace tenon {
namespace {

bool is_half(const Tensor& x) { return is_floating(x.dtype()) && item_size(x.dtype()) == 2; }

// Whether an update has the index of each element of `base`; bool.
Tensor touched(const Tensor& base, int axis, const Tensor& index) {
  return scatter(zeros(base.shape(), DType::Bool), axis, index, 1);
}

// The product of the updates of each element of `base`; 1 without one. In the order of their index,
// a factor of 0 begins the product of the next index.
Tensor products(const Tensor& base, int axis, const Tensor& index, const Tensor& updates) {
  const DType dtype = is_floating(base.dtype()) ? base.dtype() : DType::Int64;
  const Tensor order = argsort(index, axis, false, true), key = gather(index, axis, order);
  const Tensor factor = cast(gather(updates, axis, order), dtype);
  const Tensor begins = ne(key, shifted_by_one(key, axis, -1, false));
  const Tensor product = recurrence(RecurrenceKind::Linear,
                                    {where(begins, 0, factor), where(begins, factor, 0)}, axis);
  return scatter(ones_like(base), axis, key, cast(product, base.dtype()));
}

// The number that no update changes.
Scalar neutral_extreme(DType dtype, bool largest) {
  if (is_floating(dtype)) return largest ? -kInfinity : kInfinity;
  return largest ? std::numeric_limits<std::int64_t>::min()
                 : std::numeric_limits<std::int64_t>::max();
}

Tensor extreme(const Tensor& base, int axis, const Tensor& index, const Tensor& updates,
               bool largest, bool include_self) {
  const DType dtype = is_floating(base.dtype()) ? base.dtype() : DType::Int64;
  Tensor kept = cast(base, dtype);
  if (!include_self)
    kept = where(touched(base, axis, index), constant({}, neutral_extreme(dtype, largest), dtype),
                 kept);
  return cast(build(largest ? Op::ScatterMax : Op::ScatterMin, {kept, index, cast(updates, dtype)},
                    AxisAttrs{axis}),
              base.dtype());
}

Tensor mean_of(const Tensor& base, int axis, const Tensor& index, const Tensor& updates,
               const Tensor& kept, bool include_self) {
  const DType counted = is_floating(base.dtype()) ? base.dtype() : DType::Int64;
  const Tensor own = include_self ? ones(base.shape(), counted) : zeros(base.shape(), counted);
  const Tensor count = scatter_add(own, axis, index, ones(updates.shape(), counted));
  const Tensor sum = scatter_add(kept, axis, index, updates), divisor = maximum(count, 1);
  return is_floating(base.dtype()) ? sum / divisor : cast(floor_divide(sum, divisor), base.dtype());
}

// All operands have the same axes, and sizes that fit.
Tensor reduced(const Tensor& base, int axis, const Tensor& index, const Tensor& updates,
               ScatterReduction how, bool include_self) {
  if (how == ScatterReduction::Amax || how == ScatterReduction::Amin)
    return extreme(base, axis, index, updates, how == ScatterReduction::Amax, include_self);
  const std::int64_t neutral = how == ScatterReduction::Prod ? 1 : 0;
  const Tensor kept = include_self ? base : where(touched(base, axis, index), neutral, base);
  switch (how) {
    case ScatterReduction::Sum:
      return scatter_add(kept, axis, index, updates);
    case ScatterReduction::Prod:
      return kept * products(base, axis, index, updates);
    default:
      return mean_of(base, axis, index, updates, kept, include_self);
  }
}

void check(const char* op, const Tensor& base, const Tensor& index, const Tensor& updates) {
  require_defined(op, base, index, updates);
  if (is_bool(base.dtype()) || base.dtype() != updates.dtype())
    throw make_error<DTypeError>(where(op), ": base is ", base.dtype(), ", updates ",
                                 updates.dtype(), "; they must have one dtype, not bool");
}

}  // namespace

// The updates are sorted by value: of equal indices the last one written wins.
Tensor decompose_scatter_extreme(const Tensor& out) {
  const Node& node = *out.node();
  const Tensor index = input_of(out, 1), updates = input_of(out, 2);
  Tensor base = input_of(out, 0);
  const int a = node_axis(node, base.rank());
  const bool largest = node.op == Op::ScatterMax;
  if (index.numel() == 0) return base;
  auto [values, order] = sort(updates, a, !largest, true);
  const Tensor found = scatter(base, a, gather(index, a, order), values);
  Tensor value = largest ? maximum(base, found) : minimum(base, found);
  if (largest || !is_floating(base.dtype())) return value;
  // NaN is sorted as the largest number, so a minimum looks for it.
  const Tensor spoilt =
      scatter_add(zeros(base.shape(), DType::Int64), a, index, cast(isnan(updates), DType::Int64));
  return where(gt(spoilt, 0), std::numeric_limits<double>::quiet_NaN(), value);
}

// Equal elements share the gradient.
Gradients vjp_scatter_extreme(const Tensor& out, const Tensor& g) {
  const Tensor base = input_of(out, 0), index = input_of(out, 1), updates = input_of(out, 2);
  const int a = node_axis(*out.node(), base.rank());
  const Tensor own = cast(eq(base, out), g.dtype());
  const Tensor given = cast(eq(updates, gather(out, a, index)), g.dtype());
  const Tensor share = g / maximum(scatter_add(own, a, index, given), 1);
  return {own * share, Tensor(), given * gather(share, a, index)};
}

Tensor scatter_reduce(const Tensor& base, int axis, const Tensor& index, const Tensor& updates,
                      ScatterReduction reduction, bool include_self) {
  const Called called("scatter_reduce");
  check("scatter_reduce", base, index, updates);
  const int a = axis_of("scatter_reduce", axis, base.rank());
  bool fits = index.rank() == base.rank() && updates.rank() == base.rank();
  for (int d = 0; fits && d < base.rank(); ++d)
    fits = index.size(d) <= updates.size(d) && (d == a || index.size(d) <= base.size(d));
  if (!fits)
    throw make_error<ShapeError>(where("scatter_reduce"), ": base ", base.shape(), ", index ",
                                 index.shape(), ", updates ", updates.shape(),
                                 "; they have the same axes, and the index is not larger than the "
                                 "updates, nor than the base except along axis ",
                                 axis);
  if (base.rank() == 0)
    return reshape(scatter_reduce(reshape(base, {1}), 0, reshape(index, {1}), reshape(updates, {1}),
                                  reduction, include_self),
                   {});
  std::vector<Index> corner, part;
  for (int d = 0; d < base.rank(); ++d) {
    corner.emplace_back(Slice(0, d == a ? base.size(d) : index.size(d)));
    part.emplace_back(Slice(0, index.size(d)));
  }
  if (index.numel() == 0) return base;
  const Tensor reached = base.index(corner), given = updates.index(part);
  const DType computed = is_half(base) ? DType::Float32 : base.dtype();
  const Tensor result = cast(
      reduced(cast(reached, computed), a, index, cast(given, computed), reduction, include_self),
      base.dtype());
  return reached.shape() == base.shape() ? result : base.index_put(corner, result);
}

Tensor index_reduce(const Tensor& base, int axis, const Tensor& index, const Tensor& updates,
                    ScatterReduction reduction, bool include_self) {
  const Called called("index_reduce");
  check("index_reduce", base, index, updates);
  const int a = axis_of("index_reduce", axis, base.rank());
  Shape shape = base.shape();
  if (base.rank() > 0) shape[a] = index.numel();
  if (index.rank() > 1 || updates.shape() != shape)
    throw make_error<ShapeError>(where("index_reduce"), ": an index ", index.shape(),
                                 " and updates ", updates.shape(), " on axis ", axis, " of ",
                                 base.shape(), "; they must be a vector and ", shape);
  Ints column(static_cast<std::size_t>(base.rank()), 1);
  if (base.rank() > 0) column[static_cast<std::size_t>(a)] = index.numel();
  return scatter_reduce(base, axis, broadcast_to(reshape(index, column), shape), updates, reduction,
                        include_self);
}

Tensor segment_reduce(const Tensor& x, const Tensor& lengths, ScatterReduction reduction, int axis,
                      std::optional<double> initial) {
  const Called called("segment_reduce");
  require_defined("segment_reduce", x, lengths);
  const int a = normalize_axis(axis, x.rank(), where("segment_reduce"));
  if (lengths.rank() != 1 || is_floating(lengths.dtype()) || !is_floating(x.dtype()))
    throw make_error<ShapeError>(where("segment_reduce"), ": ", x.dtype(), x.shape(),
                                 " and lengths ", lengths.dtype(), lengths.shape(),
                                 "; they must be floating and a vector of integers");
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kEmpty[] = {0, 1, std::numeric_limits<double>::quiet_NaN(), -kInf, kInf};
  Shape shape = x.shape();
  shape[a] = lengths.size(0);
  // An element after the last segment has the index `segments`, which is refused at run time.
  const Tensor ends = cumsum(cast(lengths, DType::Int64), 0);
  const Tensor segment = searchsorted(ends, arange(0, x.size(a)), true);
  const double otherwise = initial.value_or(kEmpty[static_cast<int>(reduction)]);
  return index_reduce(full(shape, otherwise, x.dtype()), a, segment, x, reduction,
                      initial.has_value());
}

}  // namespace tenon
