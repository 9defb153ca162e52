// Order statistics, counts and running extremes, composed from sorting, gathering and scattering.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/joining.h>
#include <tenon/statistics.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/sorted_part.h"

namespace tenon {
namespace {

Tensor drop(const Tensor& x, int axis, bool keepdim) { return keepdim ? x : squeeze(x, axis); }

void require_elements(const char* op, const Tensor& x, int axis) {
  if (x.rank() > 0 && x.size(axis) == 0)
    throw make_error<ShapeError>(where(op), ": axis ", axis, " of ", x.shape(), " has no elements");
}

void require_vector(const char* op, const char* what, const Tensor& x) {
  if (x.rank() != 1)
    throw make_error<ShapeError>(where(op), ": ", what, " is a vector, not ", x.shape());
}

void require_real(const char* op, const Tensor& x) {
  if (!is_floating(x.dtype()))
    throw make_error<DTypeError>(where(op), ": takes floating tensors, not ", x.dtype(),
                                 ": cast it first");
}

}  // namespace

ValuesAndIndices median(const Tensor& x, int axis, bool keepdim) {
  const Called called("median");
  require_defined("median", x);
  const int a = axis_of("median", axis, x.rank());
  if (x.rank() == 0) return {x, zeros({}, DType::Int64)};
  require_elements("median", x, a);
  auto [value, index] = sorted_part(x, a, (x.size(a) - 1) / 2, 1);
  if (is_floating(x.dtype())) {
    const Tensor last = x.size(a) - 1 - argmax(flip(x, {a}), a, true);  // the last NaN, if any
    const Tensor largest = gather(x, a, last), spoilt = isnan(largest);
    value = where(spoilt, largest, value), index = where(spoilt, last, index);
  }
  return {drop(value, a, keepdim), drop(index, a, keepdim)};
}

ValuesAndIndices nanmedian(const Tensor& x, int axis, bool keepdim) {
  const Called called("nanmedian");
  require_defined("nanmedian", x);
  const int a = axis_of("nanmedian", axis, x.rank());
  if (!is_floating(x.dtype()) || x.rank() == 0) return median(x, axis, keepdim);
  require_elements("nanmedian", x, a);
  const auto [values, indices] = sort(x, a, false, true);  // NaN is sorted to the end
  const Tensor count = sum(logical_not(isnan(x)), {a}, true);
  const Tensor middle = maximum(floor_divide(count - 1, 2), 0);
  return {drop(gather(values, a, middle), a, keepdim),
          drop(gather(indices, a, middle), a, keepdim)};
}

ValuesAndIndices mode(const Tensor& x, int axis, bool keepdim) {
  const Called called("mode");
  require_defined("mode", x);
  const int a = axis_of("mode", axis, x.rank());
  if (x.rank() == 0) return {x, zeros({}, DType::Int64)};
  require_elements("mode", x, a);
  const std::int64_t n = x.size(a);
  const auto [values, indices] = sort(x, a, false, true);
  // How many equal elements there are so far: the distance from the last change.
  Ints column(static_cast<std::size_t>(x.rank()), 1);
  column[static_cast<std::size_t>(a)] = n - 1;
  const Tensor changes = ne(slice(values, a, 1, n), slice(values, a, 0, n - 1));
  const Tensor places = where(changes, reshape(arange(1, n), column), 0);
  const Tensor start = concat({zeros_like(slice(indices, a, 0, 1)), places}, a);
  column[static_cast<std::size_t>(a)] = n;
  const Tensor run = reshape(arange(0, n), column) - cummax(start, a).values;
  const Tensor at = argmax(run, a, true);
  return {drop(gather(values, a, at), a, keepdim), drop(gather(indices, a, at), a, keepdim)};
}

Tensor median(const Tensor& x) {
  const Called called("median");
  require_defined("median", x);
  const Tensor flat = reshape(x, {x.numel()});
  Tensor value = median(flat, 0).values;
  if (!is_floating(x.dtype())) return value;
  // All elements that are the median share its gradient, as they share that of amax().
  const Tensor found = detach(value);
  return where(isnan(found), value, amax(where(eq(flat, found), flat, -kInfinity)));
}

namespace {

// The elements at fractional positions of sorted rows; `element` reads at whole positions.
template <class Element>
Tensor between_elements(const Tensor& place, QuantileMode mode, Element&& element) {
  switch (mode) {
    case QuantileMode::Lower:
      return element(floor(place));
    case QuantileMode::Higher:
      return element(ceil(place));
    case QuantileMode::Nearest:
      return element(round(place));
    default: {
      const Tensor low = floor(place), weight = mode == QuantileMode::Midpoint
                                                    ? where(place > low, 0.5, zeros_like(place))
                                                    : place - low;
      return lerp(element(low), element(ceil(place)), weight);
    }
  }
}

// Quantiles of the last axis of sorted elements [.., n]: [.., q]. NaN is sorted to the end.
Tensor row_quantiles(const Tensor& sorted, const Tensor& q, QuantileMode mode, bool skips_nan) {
  const int last = sorted.rank() - 1;
  const std::int64_t n = sorted.size(last);
  if (skips_nan) {
    const Tensor count = sum(logical_not(isnan(sorted)), {-1}, true);
    const Tensor place = q * cast(maximum(count - 1, 0), q.dtype());
    return between_elements(place, mode, [&](const Tensor& number) {
      return gather(sorted, last, cast(number, DType::Int64));
    });
  }
  const Tensor found = between_elements(
      q * static_cast<double>(n - 1), mode,
      [&](const Tensor& number) { return index_select(sorted, last, cast(number, DType::Int64)); });
  const Tensor largest = slice(sorted, -1, n - 1, n);
  return where(isnan(largest), largest, found);
}

// One quantile of the axis: [.., 1]. Only the elements around it are sorted.
Tensor one_row_quantile(const Tensor& x, int axis, double q, QuantileMode mode) {
  const std::int64_t n = x.size(axis);
  // As products of the dtype round it.
  const double place = x.dtype() == DType::Float32
                           ? static_cast<double>(static_cast<float>(q) * static_cast<float>(n - 1))
                           : q * static_cast<double>(n - 1);
  const auto low = std::clamp<std::int64_t>(static_cast<std::int64_t>(place), 0, n - 1);
  const Tensor part = sorted_part(x, axis, low, std::min<std::int64_t>(2, n - low)).values;
  const Tensor found =
      between_elements(full({1}, place, x.dtype()), mode, [&](const Tensor& number) {
        const Tensor inside = clamp(cast(number, DType::Int64) - low, 0, part.size(axis) - 1);
        return index_select(part, axis, inside);
      });
  const Tensor largest = max(x, axis, true).values;
  return transpose(where(isnan(largest), largest, found), axis, -1);
}

Tensor quantiles(const char* op, const Tensor& x, const Tensor& q, std::optional<int> axis,
                 bool keepdim, QuantileMode mode, bool skips_nan,
                 std::optional<double> known = {}) {
  const Called called(op);
  const OpPlace at = where(op);
  require_defined(op, x, q);
  if (x.dtype() != DType::Float32 && x.dtype() != DType::Float64)
    throw make_error<DTypeError>(at, ": takes float32 and float64, not ", x.dtype(),
                                 ": cast it first");
  if (q.rank() > 1)
    throw make_error<ShapeError>(at, ": q is a number or a vector, not ", q.shape());
  const Tensor flat = axis && x.rank() > 0 ? x : reshape(x, {x.numel()});
  const int a = axis ? axis_of(op, *axis, flat.rank()) : 0;
  require_elements(op, flat, a);
  const Tensor found = known && !skips_nan ? one_row_quantile(flat, a, *known, mode)
                                           : row_quantiles(transpose(sort(flat, a).values, a, -1),
                                                           cast(reshape(q, {q.numel()}), x.dtype()),
                                                           mode, skips_nan);
  // The axis of the quantiles goes in front.
  Tensor out = unsqueeze(found, 0);
  out = transpose(out, 0, -1);      // [q, .., 1]
  out = transpose(out, a + 1, -1);  // [q, .., 1 at the axis, ..]
  if (!axis) {
    Ints sizes(static_cast<std::size_t>(keepdim ? x.rank() : 0), 1);
    sizes.insert(sizes.begin(), q.numel());
    out = reshape(out, sizes);
  } else if (x.rank() == 0) {
    out = reshape(out, {q.numel()});
  } else if (!keepdim) {
    out = squeeze(out, a + 1);
  }
  return q.rank() == 0 ? squeeze(out, 0) : out;
}

Tensor one_quantile(const char* op, const Tensor& x, double q, std::optional<int> axis,
                    bool keepdim, QuantileMode mode, bool skips_nan) {
  if (!(q >= 0 && q <= 1))
    throw make_error<ValueError>(where(op), ": q is ", q, ", must be from 0 to 1");
  require_defined(op, x);
  return quantiles(op, x, scalar(q, is_floating(x.dtype()) ? x.dtype() : DType::Float32), axis,
                   keepdim, mode, skips_nan, q);
}

}  // namespace

Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int> axis, bool keepdim,
                QuantileMode mode) {
  return quantiles("quantile", x, q, axis, keepdim, mode, false);
}
Tensor quantile(const Tensor& x, double q, std::optional<int> axis, bool keepdim,
                QuantileMode mode) {
  return one_quantile("quantile", x, q, axis, keepdim, mode, false);
}
Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int> axis, bool keepdim,
                   QuantileMode mode) {
  return quantiles("nanquantile", x, q, axis, keepdim, mode, true);
}
Tensor nanquantile(const Tensor& x, double q, std::optional<int> axis, bool keepdim,
                   QuantileMode mode) {
  return one_quantile("nanquantile", x, q, axis, keepdim, mode, true);
}

Tensor histc(const Tensor& x, std::int64_t bins, double low, double high) {
  const Called called("histc");
  const OpPlace at = where("histc");
  require_defined("histc", x);
  require_real("histc", x);
  if (bins < 1) throw make_error<ValueError>(at, ": bins is ", bins, ", must be at least 1");
  if (!(low <= high))
    throw make_error<ValueError>(at, ": low is ", low, ", must not be above high, ", high);
  const Tensor flat =
      cast(reshape(x, {x.numel()}), x.dtype() == DType::Float64 ? DType::Float64 : DType::Float32);
  if (x.numel() == 0) return zeros({bins}, x.dtype());
  Tensor from = scalar(low, flat.dtype()), to = scalar(high, flat.dtype());
  if (low == high) from = amin(flat), to = amax(flat);
  const Tensor same = eq(from, to);
  from = where(same, from - 1.0, from), to = where(same, to + 1.0, to);
  const Tensor inside = (flat >= from) & (flat <= to);
  const Tensor place = floor((flat - from) * static_cast<double>(bins) / (to - from));
  const Tensor bin =
      cast(where(inside, minimum(place, static_cast<double>(bins - 1)), 0.0), DType::Int64);
  const Tensor counts =
      scatter_add(zeros({bins}, DType::Int64), 0, bin, cast(inside, DType::Int64));
  return cast(counts, x.dtype());
}

Tensor bincount(const Tensor& x, const Tensor& weights, std::int64_t min_length) {
  const Called called("bincount");
  const OpPlace at = where("bincount");
  require_defined("bincount", x);
  require_vector("bincount", "x", x);
  if (is_floating(x.dtype()) || is_bool(x.dtype()))
    throw make_error<DTypeError>(at, ": takes integers, not ", x.dtype());
  if (weights.defined() && weights.shape() != x.shape())
    throw make_error<ShapeError>(at, ": weights ", weights.shape(), " for ", x.shape(),
                                 "; they must have the same shape");
  if (min_length < 0) throw make_error<ValueError>(at, ": a length of ", min_length);
  std::int64_t length = min_length;
  if (x.numel() > 0) {
    (void)x.compute();  // it is read twice
    const Tensor ends = cast(stack({amin(x), amax(x)}), DType::Int64);
    const auto both = ends.to_vector<std::int64_t>();
    if (both[0] < 0) throw make_error<ValueError>(at, ": x has the number ", both[0]);
    length = std::max(length, both[1] + 1);
  }
  const Tensor each = weights.defined() ? weights : ones({x.numel()}, DType::Int64);
  return scatter_add(zeros({length}, each.dtype()), 0, cast(x, DType::Int64), each);
}

// Binary search: the position grows by halving steps as long as the element in front of it is too
// small.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right) {
  const Called called("searchsorted");
  require_defined("searchsorted", sorted, values);
  const bool vector = sorted.rank() == 1;
  bool fits = vector || sorted.rank() == values.rank();
  for (int k = 0; fits && !vector && k + 1 < sorted.rank(); ++k)
    fits = sorted.size(k) == values.size(k);
  if (!fits || sorted.rank() == 0)
    throw make_error<ShapeError>(where("searchsorted"), ": sorted numbers ", sorted.shape(),
                                 " for values ", values.shape(),
                                 "; give a vector, or the same sizes but for the last axis");
  const DType dtype = promote(sorted.dtype(), values.dtype());
  const std::int64_t n = sorted.size(-1);
  const Tensor in = cast(sorted, dtype),
               flat = cast(vector ? reshape(values, {values.numel()}) : values, dtype);
  Tensor place = zeros(flat.shape(), DType::Int64);
  std::int64_t step = 1;
  while (step <= n / 2) step *= 2;
  if (n > 0 && flat.numel() > 0)
    for (; step > 0; step /= 2) {
      const Tensor next = place + step, number = minimum(next, n) - 1;
      const Tensor element = gather(in, in.rank() - 1, number);
      Tensor less = right ? element <= flat : element < flat;
      if (is_floating(dtype)) less = less | (right ? isnan(flat) : isnan(flat) & ~isnan(element));
      place = where(less & (next <= n), next, place);
    }
  return vector ? reshape(place, to_ints(values.shape())) : place;
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right) {
  const Called called("bucketize");
  require_defined("bucketize", x, boundaries);
  require_vector("bucketize", "boundaries", boundaries);
  return searchsorted(boundaries, x, right);
}

namespace {

// Groups of equal neighbours in a vector; the inverse is the number of the group of each element.
UniqueElements groups_of(const Tensor& row) {
  const std::int64_t n = row.numel();
  const Tensor first =
      concat({ones({1}, DType::Bool), ne(slice(row, 0, 1, n), slice(row, 0, 0, n - 1))});
  compute_once(first);
  const Tensor number = cumsum(first, 0) - 1, values = row.index({first});
  return {values, number,
          scatter_add(zeros({values.size(0)}, DType::Int64), 0, number, ones({n}, DType::Int64))};
}

UniqueElements no_elements(const Tensor& x) {
  return {reshape(x, {0}), zeros(x.shape(), DType::Int64), zeros({0}, DType::Int64)};
}

}  // namespace

UniqueElements unique(const Tensor& x) {
  const Called called("unique");
  require_defined("unique", x);
  const std::int64_t n = x.numel();
  if (n == 0) return no_elements(x);
  const auto [sorted, from] = sort(reshape(x, {n}), 0);
  compute_once(sorted), compute_once(from);
  UniqueElements found = groups_of(sorted);
  found.inverse =
      reshape(scatter(zeros({n}, DType::Int64), 0, from, found.inverse), to_ints(x.shape()));
  return found;
}

UniqueElements unique_consecutive(const Tensor& x) {
  const Called called("unique_consecutive");
  require_defined("unique_consecutive", x);
  if (x.numel() == 0) return no_elements(x);
  UniqueElements found = groups_of(reshape(x, {x.numel()}));
  found.inverse = reshape(found.inverse, to_ints(x.shape()));
  return found;
}

Tensor diff(const Tensor& x, std::int64_t n, int axis) {
  const Called called("diff");
  require_defined("diff", x);
  if (n < 0) throw make_error<ValueError>(where("diff"), ": ", n, " times");
  if (x.rank() == 0) throw make_error<ShapeError>(where("diff"), ": takes an axis or more, not []");
  const int a = axis_of("diff", axis, x.rank());
  Tensor out = x;
  for (std::int64_t k = 0; k < n && out.size(a) > 0; ++k) {
    const Tensor later = slice(out, a, 1, out.size(a)), earlier = slice(out, a, 0, out.size(a) - 1);
    out = is_bool(x.dtype()) ? logical_xor(later, earlier) : later - earlier;
  }
  return out;
}

namespace {

Tensor neighbours(const Tensor& y, int axis) {
  const std::int64_t n = y.size(axis);
  return slice(y, axis, 1, n) + slice(y, axis, 0, std::max<std::int64_t>(n - 1, 0));
}

int integral_axis(const Tensor& y, int axis) {
  require_defined("trapezoid", y);
  if (y.rank() == 0)
    throw make_error<ShapeError>(where("trapezoid"), ": takes an axis or more, not []");
  return axis_of("trapezoid", axis, y.rank());
}

}  // namespace

Tensor trapezoid(const Tensor& y, double dx, int axis) {
  const Called called("trapezoid");
  const int a = integral_axis(y, axis);
  return sum(neighbours(to_floating(y), a), a) * (dx / 2);
}

Tensor trapezoid(const Tensor& y, const Tensor& x, int axis) {
  const Called called("trapezoid");
  const int a = integral_axis(y, axis);
  require_defined("trapezoid", x);
  Tensor places = x;
  if (x.rank() == 1) {
    Ints column(static_cast<std::size_t>(y.rank()), 1);
    column[static_cast<std::size_t>(a)] = x.size(0);
    places = reshape(x, column);
  }
  if (places.rank() != y.rank() || places.size(a) != y.size(a))
    throw make_error<ShapeError>(where("trapezoid"), ": places ", x.shape(), " for values ",
                                 y.shape(), " along axis ", a);
  return sum(neighbours(to_floating(y), a) * diff(to_floating(places), 1, a), a) / 2.0;
}

Tensor normalize(const Tensor& x, double p, int axis, double eps) {
  const Called called("normalize");
  require_defined("normalize", x);
  require_real("normalize", x);
  // The norm of 16-bit elements is not rounded before the division.
  const bool upcasts = item_size(x.dtype()) == 2;
  const Tensor in = upcasts ? cast(x, DType::Float32) : x;
  const Tensor out = in / maximum(vector_norm(in, p, axis, true), eps);
  return upcasts ? cast(out, x.dtype()) : out;
}

namespace {

constexpr std::int64_t kFewRows = 25;  // below, a product is not faster than differences

// Euclidean distances of float32 rows, from |x|² + |y|² - 2 xy in float64. The difference of close
// rows loses no digit of float32 there, because products of float32 are exact in float64. Squares
// that are only rounding errors of the sums become zero.
Tensor distances_by_products(const Tensor& a, const Tensor& b) {
  const Tensor x = cast(a, DType::Float64), y = cast(b, DType::Float64);
  const Tensor sizes = sum(square(x), {-1}, true) + unsqueeze(sum(square(y), {-1}), -2);
  const Tensor squares = sizes - matmul(x, transpose(y)) * 2.0;
  const Tensor apart = ~(squares <= sizes * 0x1p-48);  // or NaN
  return where(apart, sqrt(where(apart, squares, 1.0)), 0.0);
}

}  // namespace

Tensor cdist(const Tensor& a, const Tensor& b, double p) {
  const Called called("cdist");
  const OpPlace at = where("cdist");
  require_defined("cdist", a, b);
  require_real("cdist", a);
  if (a.rank() < 2 || b.rank() < 2 || a.size(-1) != b.size(-1))
    throw make_error<ShapeError>(at, ": rows ", a.shape(), " and ", b.shape(),
                                 "; they must be [..., P, M] and [..., R, M]");
  if (!(p >= 0)) throw make_error<ValueError>(at, ": p is ", p, ", must not be negative");
  const bool in_float32 = a.dtype() != DType::Float64 && b.dtype() != DType::Float64;
  if (p == 2 && in_float32 && (a.size(-2) > kFewRows || b.size(-2) > kFewRows))
    return cast(distances_by_products(a, b), promote(a.dtype(), b.dtype()));
  return vector_norm(unsqueeze(a, -2) - unsqueeze(b, -3), p, -1);
}

Tensor pdist(const Tensor& x, double p) {
  const Called called("pdist");
  require_defined("pdist", x);
  require_real("pdist", x);
  if (x.rank() != 2)
    throw make_error<ShapeError>(where("pdist"), ": takes rows [P, M], not ", x.shape());
  if (!(p >= 0))
    throw make_error<ValueError>(where("pdist"), ": p is ", p, ", must not be negative");
  const Tensor pairs = index_pairs(x.size(0), x.device());
  return vector_norm(
      index_select(x, 0, select(pairs, 0, 0)) - index_select(x, 0, select(pairs, 0, 1)), p, {-1});
}

}  // namespace tenon
