// Cumulative sums, products, extremes and sums of exponentials along an axis, and the recurrences
// behind them.
//
// A CPU takes in one element after another (Op::Recurrence). Elsewhere a row is cut into blocks.
// Inside a block, doubling needs five shifted sums for 32 elements. The prefix before each block is
// the same problem over the blocks' totals.
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/statistics.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/recurrence.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr std::int64_t kBlock = 32;

// The quantities that a running operation carries; all have the same shape.
using Parts = std::vector<Tensor>;
struct Running {
  Parts (*combine)(const Parts& earlier, const Parts& later) = nullptr;
  std::vector<Scalar> neutral;  // one for each part
};

Parts each(const Parts& parts, const std::function<Tensor(const Tensor&)>& f) {
  Parts out;
  for (const Tensor& x : parts) out.push_back(f(x));
  return out;
}

// rows [count, n]; the neutral elements are padded on both sides.
Parts running(const Parts& rows, const Running& how) {
  const std::int64_t count = rows[0].size(0), n = rows[0].size(1);
  const auto padded = [&how](const Parts& x, std::int64_t before, std::int64_t behind) {
    Parts out;
    for (std::size_t k = 0; k < x.size(); ++k)
      out.push_back(pad(x[k], {before, behind}, how.neutral[k]));
    return out;
  };
  const auto moved = [&](const Parts& x, std::int64_t by) {
    const std::int64_t length = x[0].size(1);
    return each(padded(x, by, 0), [&](const Tensor& t) { return slice(t, 1, 0, length); });
  };
  if (n <= kBlock) {
    Parts so_far = rows;
    for (std::int64_t step = 1; step < n; step *= 2)
      so_far = how.combine(moved(so_far, step), so_far);
    return so_far;
  }
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  const Parts inside = running(each(padded(rows, 0, blocks * kBlock - n),
                                    [&](const Tensor& t) {
                                      return reshape(t, {count * blocks, kBlock});
                                    }),
                               how);
  const Parts totals = each(inside, [&](const Tensor& t) {
    return reshape(slice(t, 1, kBlock - 1, kBlock), {count, blocks});
  });
  const Parts before =
      each(moved(running(totals, how), 1), [](const Tensor& t) { return unsqueeze(t, 2); });
  const Parts all = how.combine(before, each(inside, [&](const Tensor& t) {
                                  return reshape(t, {count, blocks, kBlock});
                                }));
  return each(all, [&](const Tensor& t) {
    return slice(reshape(t, {count, blocks * kBlock}), 1, 0, n);
  });
}

// The same along any axis, from its end if `reverse`.
Parts running_along(const Parts& parts, int axis, bool reverse, const Running& how) {
  const Shape& shape = parts[0].shape();
  const std::int64_t length = shape[axis];
  const auto from_front = [&](const Tensor& x) { return reverse ? flip(x, {axis}) : x; };
  const Parts rows = each(parts, [&](const Tensor& x) {
    return reshape(transpose(from_front(x), axis, -1), {x.numel() / length, length});
  });
  const Ints sizes = to_ints(transpose(parts[0], axis, -1).shape());
  return each(running(rows, how),
              [&](const Tensor& x) { return from_front(transpose(reshape(x, sizes), axis, -1)); });
}

Running sums() {
  return {[](const Parts& a, const Parts& b) { return Parts{a[0] + b[0]}; }, {0}};
}
Running products() {
  return {[](const Parts& a, const Parts& b) { return Parts{a[0] * b[0]}; }, {1}};
}
// (a, b) stands for the map y -> a y + b; a factor of 0 ends what came before, infinities and NaN
// included.
Running linear() {
  return {[](const Parts& first, const Parts& second) {
            const Tensor ends = eq(second[0], 0);
            return Parts{where(ends, 0, first[0] * second[0]),
                         where(ends, second[1], second[0] * first[1] + second[1])};
          },
          {1, 0}};
}

// The index of the extreme so far: in each step, an element takes over the better one of twice as
// many elements in front of it.
Tensor running_index(const Tensor& x, int axis, bool largest) {
  const std::int64_t n = x.size(axis);
  Ints ramp(static_cast<std::size_t>(x.rank()), 1);
  ramp[static_cast<std::size_t>(axis)] = n;
  Tensor best = x, index = broadcast_to(reshape(arange(0, n), ramp), x.shape());
  for (std::int64_t by = 1; by < n; by *= 2) {
    const Tensor earlier = slice(best, axis, 0, n - by), later = slice(best, axis, by, n);
    Tensor takes = largest ? earlier > later : earlier < later;
    if (is_floating(x.dtype())) takes = takes | (isnan(earlier) & ~isnan(later));
    const auto merged = [&](const Tensor& all) {
      return concat({slice(all, axis, 0, by),
                     where(takes, slice(all, axis, 0, n - by), slice(all, axis, by, n))},
                    axis);
    };
    best = merged(best), index = merged(index);
  }
  return index;
}

const RecurrenceAttrs& recurrence_attrs(const Node& node) {
  return node.attrs.as<RecurrenceAttrs>();
}
bool finds_index(RecurrenceKind kind) {
  return kind == RecurrenceKind::Largest || kind == RecurrenceKind::Smallest;
}

// What a recurrence computes with: 16-bit floats in float32, integers and bool in int64.
Tensor in_accumulation_dtype(const Tensor& x) {
  if (!is_floating(x.dtype())) return cast(x, DType::Int64);
  return item_size(x.dtype()) == 2 ? cast(x, DType::Float32) : x;
}

// Integers and bool accumulate in int64, unless another dtype is requested; 16-bit floats in
// float32, rounded at the end.
template <class F>
Tensor along(const char* op, const Tensor& given, int axis, std::optional<DType> wanted, F&& f) {
  const Called called(op);
  if (wanted && !is_floating(*wanted))
    return cast(along(op, cast(given, *wanted), axis, {}, f), *wanted);
  const Tensor input = wanted ? cast(given, *wanted) : given, x = in_accumulation_dtype(input);
  const int a = axis_of(op, axis, x.rank());
  const bool half = is_floating(input.dtype()) && item_size(input.dtype()) == 2;
  if (x.rank() == 0 || x.numel() == 0) return half ? input : x;
  const Tensor result = f(x, a);
  return half ? cast(result, input.dtype()) : result;
}

ValuesAndIndices running_extreme(const char* op, const Tensor& x, int axis, RecurrenceKind kind) {
  const Called called(op);
  require_defined(op, x);
  const int a = axis_of(op, axis, x.rank());
  if (x.rank() == 0) return {x, zeros({}, DType::Int64)};
  if (x.numel() == 0) return {x, zeros(x.shape(), DType::Int64)};
  const Tensor index = recurrence(kind, {in_accumulation_dtype(x)}, a);
  return {gather(x, a, index), index};
}

}  // namespace

Tensor recurrence(RecurrenceKind kind, TensorList inputs, int axis, bool reverse) {
  return build(Op::Recurrence, std::span(inputs.begin(), inputs.size()),
               RecurrenceAttrs{axis, kind, reverse ? 1 : 0});
}

Tensor shifted_by_one(const Tensor& x, int axis, Scalar first, bool reverse) {
  Shape one = x.shape();
  one[axis] = 1;
  const Tensor filled = constant(one, first, x.dtype());
  const std::int64_t n = x.size(axis);
  if (reverse) return concat({slice(x, axis, 1, n), filled}, axis);
  return concat({filled, slice(x, axis, 0, n - 1)}, axis);
}

Tensor cumsum(const Tensor& x, int axis, std::optional<DType> dtype) {
  require_defined("cumsum", x);
  return along("cumsum", x, axis, dtype,
               [](const Tensor& t, int a) { return recurrence(RecurrenceKind::Sum, {t}, a); });
}
Tensor cumprod(const Tensor& x, int axis, std::optional<DType> dtype) {
  require_defined("cumprod", x);
  return along("cumprod", x, axis, dtype,
               [](const Tensor& t, int a) { return recurrence(RecurrenceKind::Product, {t}, a); });
}

Tensor logcumsumexp(const Tensor& x, int axis) {
  require_defined("logcumsumexp", x);
  if (!is_floating(x.dtype()))
    throw make_error<DTypeError>(where("logcumsumexp"), ": takes floating tensors, not ", x.dtype(),
                                 ": cast it first");
  return along("logcumsumexp", x, axis, {}, [](const Tensor& t, int a) {
    const Running how{
        [](const Parts& one, const Parts& two) { return Parts{logaddexp(one[0], two[0])}; },
        {-std::numeric_limits<double>::infinity()}};
    return running_along({t}, a, false, how)[0];
  });
}

ValuesAndIndices cummax(const Tensor& x, int axis) {
  return running_extreme("cummax", x, axis, RecurrenceKind::Largest);
}
ValuesAndIndices cummin(const Tensor& x, int axis) {
  return running_extreme("cummin", x, axis, RecurrenceKind::Smallest);
}

// ---- Rules ------------------------------------------------------------------------------------

Inferred infer_recurrence(const Node& node) {
  require_same_dtype(node);
  require_same_shape(node);
  const Node& x = *node.input(0);
  const RecurrenceAttrs& attrs = recurrence_attrs(node);
  const bool known =
      x.dtype == DType::Float32 || x.dtype == DType::Float64 || x.dtype == DType::Int64;
  if (!known) throw make_error<DTypeError>(where(node), ": does not take ", x.dtype);
  const int count = attrs.kind == RecurrenceKind::Linear ? 2 : 1;
  if (node.input_count != count)
    throw make_error<ShapeError>(where(node), ": takes ", count, " tensors, not ",
                                 int{node.input_count});
  if (attrs.axis < 0 || attrs.axis >= x.shape.rank() || x.shape.numel() == 0)
    throw make_error<ShapeError>(where(node), ": axis ", attrs.axis, " of ", x.shape);
  return {finds_index(attrs.kind) ? DType::Int64 : x.dtype, x.shape};
}

Tensor decompose_recurrence(const Tensor& out) {
  const RecurrenceAttrs attrs = recurrence_attrs(*out.node());
  const Tensor x = input_of(out, 0);
  const bool reverse = attrs.reverse != 0;
  switch (attrs.kind) {
    case RecurrenceKind::Sum:
      return running_along({x}, attrs.axis, reverse, sums())[0];
    case RecurrenceKind::Product:
      return running_along({x}, attrs.axis, reverse, products())[0];
    case RecurrenceKind::Linear:
      return running_along({x, input_of(out, 1)}, attrs.axis, reverse, linear())[1];
    default:
      return running_index(x, attrs.axis, attrs.kind == RecurrenceKind::Largest);
  }
}

// The sum over t of g[t] dy[t] is the sum of s[t] db[t] with s[t] = g[t] + a[t+1] s[t+1], the same
// recurrence backwards. Nothing is divided, so zeros need no special case.
Gradients vjp_recurrence(const Tensor& out, const Tensor& g) {
  const RecurrenceAttrs attrs = recurrence_attrs(*out.node());
  const bool reverse = attrs.reverse != 0;
  const int axis = attrs.axis;
  if (attrs.kind == RecurrenceKind::Sum)
    return {recurrence(RecurrenceKind::Sum, {g}, axis, !reverse)};
  const Tensor next = shifted_by_one(input_of(out, 0), axis, 0, !reverse);
  const Tensor s = recurrence(RecurrenceKind::Linear, {next, g}, axis, !reverse);
  if (attrs.kind == RecurrenceKind::Product) return {s * shifted_by_one(out, axis, 1, reverse)};
  return {s * shifted_by_one(out, axis, 0, reverse), s};
}

}  // namespace tenon
