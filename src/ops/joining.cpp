// Joining, splitting, selecting parts and statistics of several results, composed from views and
// the ops of ops.h.
#include <algorithm>
#include <functional>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/joining.h>
#include <tenon/rearrange.h>
#include <tenon/statistics.h>

#include "base/contains.h"
#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/sorted_part.h"

namespace tenon {
namespace {

void require_all(const char* op, TensorList tensors) {
  if (tensors.empty()) throw make_error<ValueError>(where(op), ": no tensors");
  for (std::size_t k = 0; k < tensors.size(); ++k)
    if (!tensors[k].defined()) refuse_undefined(op, k, tensors.size());
}

std::vector<Tensor> each(TensorList tensors, const std::function<Tensor(const Tensor&)>& change) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(change(t));
  return out;
}

// Places of slices along an axis, as an index of the updates' shape for scatter().
Tensor spread(const char* op, const Tensor& base, int axis, const Tensor& index, Shape& shape) {
  if (index.rank() > 1)
    throw make_error<ShapeError>(where(op), ": the index is a vector, not ", index.shape());
  if (index.dtype() != DType::Int64 && index.dtype() != DType::Int32)
    throw make_error<DTypeError>(where(op), ": the index is int64 or int32, not ", index.dtype());
  shape = base.shape();
  shape[axis] = index.numel();
  Ints column(static_cast<std::size_t>(base.rank()), 1);
  column[static_cast<std::size_t>(axis)] = index.numel();
  return broadcast_to(reshape(index, column), shape);
}

Tensor triangle(const char* op, std::int64_t rows, std::int64_t columns, std::int64_t offset,
                bool lower, Device home) {
  if (rows < 0 || columns < 0)
    throw make_error<ValueError>(where(op), ": a matrix [", rows, ", ", columns, "]");
  Ints all[2];
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t begin = lower ? 0 : std::max<std::int64_t>(i + offset, 0),
                       end = lower ? std::min(columns, i + offset + 1) : columns;
    for (std::int64_t j = begin; j < end; ++j) all[0].push_back(i), all[1].push_back(j);
  }
  const std::int64_t count = std::ssize(all[0]);
  all[0].insert(all[0].end(), all[1].begin(), all[1].end());
  return Tensor::from_data(all[0].data(), {2, count}, DType::Int64, home);
}

}  // namespace

Tensor atleast_1d(const Tensor& x) {
  require_defined("atleast_1d", x);
  return x.rank() == 0 ? reshape(x, {1}) : x;
}
Tensor atleast_2d(const Tensor& x) {
  require_defined("atleast_2d", x);
  return x.rank() < 2 ? reshape(x, {1, x.numel()}) : x;
}
Tensor atleast_3d(const Tensor& x) {
  require_defined("atleast_3d", x);
  const Tensor rows = atleast_2d(x);
  return rows.rank() == 2 ? unsqueeze(rows, 2) : rows;
}

Tensor hstack(TensorList tensors) {
  const Called called("hstack");
  require_all("hstack", tensors);
  const std::vector<Tensor> all = each(tensors, atleast_1d);
  return concat(all, all[0].rank() == 1 ? 0 : 1);
}
Tensor vstack(TensorList tensors) {
  const Called called("vstack");
  require_all("vstack", tensors);
  return concat(each(tensors, atleast_2d), 0);
}
Tensor dstack(TensorList tensors) {
  const Called called("dstack");
  require_all("dstack", tensors);
  return concat(each(tensors, atleast_3d), 2);
}
Tensor column_stack(TensorList tensors) {
  const Called called("column_stack");
  require_all("column_stack", tensors);
  return concat(each(tensors,
                     [](const Tensor& x) {
                       return x.rank() < 2 ? reshape(x, {x.numel(), 1}) : x;
                     }),
                1);
}

Tensor block_diag(TensorList tensors) {
  const Called called("block_diag");
  require_all("block_diag", tensors);
  std::vector<Tensor> rows;
  std::int64_t columns = 0, before = 0;
  for (const Tensor& t : tensors) {
    if (t.rank() > 2)
      throw make_error<ShapeError>(where("block_diag"), ": takes matrices, not ", t.shape());
    columns += atleast_2d(t).size(1);
  }
  for (const Tensor& t : tensors) {
    const Tensor block = atleast_2d(t);
    rows.push_back(pad(block, {before, columns - before - block.size(1)}));
    before += block.size(1);
  }
  return concat(rows, 0);
}

std::vector<Tensor> tensor_split(const Tensor& x, std::int64_t count, int axis) {
  const Called called("tensor_split");
  require_defined("tensor_split", x);
  if (count < 1) throw make_error<ValueError>(where("tensor_split"), ": into ", count, " parts");
  const std::int64_t size = x.size(normalize_axis(axis, x.rank(), where("tensor_split")));
  Ints places;
  for (std::int64_t k = 1; k < count; ++k)
    places.push_back(k * (size / count) + std::min(k, size % count));
  return tensor_split(x, places, axis);
}

std::vector<Tensor> tensor_split(const Tensor& x, const Ints& indices, int axis) {
  const Called called("tensor_split");
  require_defined("tensor_split", x);
  const int a = normalize_axis(axis, x.rank(), where("tensor_split"));
  std::vector<Tensor> out;
  std::int64_t begin = 0;
  for (const std::int64_t index : indices) {
    out.push_back(slice(x, a, begin, index));
    begin = index;
  }
  out.push_back(slice(x, a, begin, x.size(a)));
  return out;
}

Tensor cartesian_prod(TensorList vectors) {
  const Called called("cartesian_prod");
  require_all("cartesian_prod", vectors);
  if (vectors.size() == 1) return vectors[0];
  return stack(each(meshgrid(vectors), [](const Tensor& x) { return reshape(x, {x.numel()}); }), 1);
}

Tensor combinations(const Tensor& x, std::int64_t count, bool with_replacement) {
  const Called called("combinations");
  const OpPlace at = where("combinations");
  require_defined("combinations", x);
  if (x.rank() != 1) throw make_error<ShapeError>(at, ": takes a vector, not ", x.shape());
  if (count < 1) throw make_error<ValueError>(at, ": the count is ", count, ", must be at least 1");
  // Selections of positions in ascending order, by appending every later one to all shorter ones.
  std::vector<Ints> selections{{}};
  for (std::int64_t k = 0; k < count; ++k) {
    std::vector<Ints> longer;
    for (const Ints& chosen : selections)
      for (std::int64_t next = chosen.empty() ? 0 : chosen.back() + (with_replacement ? 0 : 1);
           next < x.size(0); ++next) {
        longer.push_back(chosen);
        longer.back().push_back(next);
      }
    selections = std::move(longer);
  }
  std::vector<std::int64_t> flat;
  for (const Ints& chosen : selections) flat.insert(flat.end(), chosen.begin(), chosen.end());
  const Tensor index = Tensor::from_data(flat.data(), {std::ssize(flat)}, DType::Int64, x.device());
  return reshape(index_select(x, 0, index), {std::ssize(selections), count});
}

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  const Called called("broadcast_tensors");
  require_all("broadcast_tensors", tensors);
  Shape shape = tensors[0].shape();
  for (const Tensor& t : tensors)
    shape = broadcast_shapes(shape, t.shape(), where("broadcast_tensors"));
  return each(tensors, [&](const Tensor& x) { return broadcast_to(x, shape); });
}

Tensor movedim(const Tensor& x, const Ints& from, const Ints& to) {
  const Called called("movedim");
  require_defined("movedim", x);
  if (from.size() != to.size())
    throw make_error<ValueError>(where("movedim"), ": ", from.size(), " axes to ", to.size(),
                                 " positions");
  (void)axis_mask("movedim", from, x.rank());  // refuses an axis that is given twice
  (void)axis_mask("movedim", to, x.rank());
  Ints order(static_cast<std::size_t>(x.rank()), -1), moved;
  for (std::size_t k = 0; k < from.size(); ++k) {
    moved.push_back(axis_of("movedim", from[k], x.rank()));
    if (x.rank() > 0)
      order[static_cast<std::size_t>(axis_of("movedim", to[k], x.rank()))] = moved.back();
  }
  std::int64_t next = 0;
  for (std::int64_t& axis : order) {
    if (axis >= 0) continue;
    while (contains(moved, next)) ++next;
    axis = next++;
  }
  return permute(x, order);
}

Tensor rot90(const Tensor& x, std::int64_t times, int axis_a, int axis_b) {
  const Called called("rot90");
  require_defined("rot90", x);
  if (x.rank() < 2)
    throw make_error<ShapeError>(where("rot90"), ": takes two axes or more, not ", x.shape());
  const int a = axis_of("rot90", axis_a, x.rank()), b = axis_of("rot90", axis_b, x.rank());
  if (a == b) throw make_error<ValueError>(where("rot90"), ": axis ", a, " is given twice");
  switch ((times % 4 + 4) % 4) {
    case 1:
      return transpose(flip(x, {b}), a, b);
    case 2:
      return flip(x, {a, b});
    case 3:
      return flip(transpose(x, a, b), {b});
    default:
      return x;
  }
}

Tensor unflatten(const Tensor& x, int axis, const Ints& sizes) {
  const Called called("unflatten");
  const OpPlace at = where("unflatten");
  require_defined("unflatten", x);
  const int a = normalize_axis(axis, x.rank(), at);
  Ints whole = to_ints(x.shape()), parts = sizes;
  std::int64_t product = 1;
  const auto open = std::find(parts.begin(), parts.end(), -1);
  for (const std::int64_t size : parts)
    if (size != -1) product = size_product("unflatten", product, size);
  if (open != parts.end() && product != 0) *open = x.size(a) / product;
  std::int64_t all = 1;
  for (const std::int64_t size : parts) all = size_product("unflatten", all, size);
  std::string list;
  for (const std::int64_t size : sizes) list += cat(list.empty() ? "" : ", ", size);
  if (parts.empty() || std::any_of(parts.begin(), parts.end(), [](auto s) { return s < 0; }) ||
      all != x.size(a))
    throw make_error<ShapeError>(at, ": axis ", axis, " of ", x.shape(), " does not divide into [",
                                 list, "]");
  const auto place = whole.erase(whole.begin() + a);
  whole.insert(place, parts.begin(), parts.end());
  return reshape(x, whole);
}

Tensor take(const Tensor& x, const Tensor& index) {
  const Called called("take");
  require_defined("take", x, index);
  if (is_floating(index.dtype()) || is_bool(index.dtype()))
    throw make_error<DTypeError>(where("take"), ": indices are ", index.dtype(),
                                 ", must be integers");
  const std::int64_t n = x.numel();
  const Tensor flat = cast(reshape(index, {index.numel()}), DType::Int64);
  const Tensor counted = where((flat < 0) & (flat >= -n), flat + n, flat);
  return reshape(index_select(reshape(x, {n}), 0, counted), to_ints(index.shape()));
}

Tensor put(const Tensor& base, const Tensor& index, const Tensor& updates, bool accumulate) {
  const Called called("put");
  require_defined("put", base, index, updates);
  if (index.numel() != updates.numel())
    throw make_error<ShapeError>(where("put"), ": an index ", index.shape(), " for updates ",
                                 updates.shape(), "; they must have the same number of elements");
  if (index.numel() == 0) return base;
  const std::int64_t n = base.numel();
  const Tensor flat = reshape(base, {n}), given = reshape(updates, {index.numel()});
  const Tensor number = reshape(index, {index.numel()}),
               at = where(lt(number, 0), number + n, number);
  const Tensor out = accumulate ? scatter_add(flat, 0, at, given) : scatter(flat, 0, at, given);
  return reshape(out, to_ints(base.shape()));
}

Tensor diagonal_scatter(const Tensor& base, const Tensor& part, std::int64_t offset, int axis_a,
                        int axis_b) {
  const Called called("diagonal_scatter");
  require_defined("diagonal_scatter", base, part);
  const Tensor numbers = reshape(arange(0, base.numel()), to_ints(base.shape()));
  const Tensor at = diagonal(numbers, offset, axis_a, axis_b);
  if (at.shape() != part.shape())
    throw make_error<ShapeError>(where("diagonal_scatter"), ": ", part.shape(), " for a diagonal ",
                                 at.shape(), " of ", base.shape());
  return put(base, at, part);
}

Tensor index_copy(const Tensor& base, int axis, const Tensor& index, const Tensor& updates) {
  const Called called("index_copy");
  require_defined("index_copy", base, index, updates);
  const int a = normalize_axis(axis, base.rank(), where("index_copy"));
  Shape shape;
  const Tensor places = spread("index_copy", base, a, index, shape);
  if (updates.shape() != shape)
    throw make_error<ShapeError>(where("index_copy"), ": updates ", updates.shape(), ", must be ",
                                 shape);
  return scatter(base, a, places, updates);
}

Tensor index_fill(const Tensor& base, int axis, const Tensor& index, Scalar value) {
  const Called called("index_fill");
  require_defined("index_fill", base, index);
  const int a = normalize_axis(axis, base.rank(), where("index_fill"));
  Shape shape;
  const Tensor places = spread("index_fill", base, a, index, shape);
  return scatter(base, a, places, value);
}

Tensor select_scatter(const Tensor& base, const Tensor& part, int axis, std::int64_t index) {
  const Called called("select_scatter");
  require_defined("select_scatter", base, part);
  const int a = normalize_axis(axis, base.rank(), where("select_scatter"));
  const std::int64_t n = base.size(a), at = index < 0 ? index + n : index;
  if (at < 0 || at >= n)
    throw make_error<ValueError>(where("select_scatter"), ": index ", index, " is outside axis ",
                                 axis, " of ", base.shape());
  return slice_scatter(base, unsqueeze(part, a), a, at, at + 1);
}

Tensor slice_scatter(const Tensor& base, const Tensor& part, int axis, std::int64_t start,
                     std::int64_t end, std::int64_t step) {
  const Called called("slice_scatter");
  require_defined("slice_scatter", base, part);
  const int a = normalize_axis(axis, base.rank(), where("slice_scatter"));
  const Tensor places = slice(arange(0, base.size(a)), 0, start, end, step);
  Shape shape;
  const Tensor index = spread("slice_scatter", base, a, places, shape);
  if (part.shape() != shape)
    throw make_error<ShapeError>(where("slice_scatter"), ": the part ", part.shape(), ", must be ",
                                 shape);
  return scatter(base, a, index, part);
}

Tensor diag(const Tensor& x, std::int64_t offset) {
  const Called called("diag");
  require_defined("diag", x);
  if (x.rank() == 1) return diag_embed(x, offset);
  if (x.rank() != 2)
    throw make_error<ShapeError>(where("diag"), ": takes a vector or a matrix, not ", x.shape());
  return diagonal(x, offset);
}

Tensor index_pairs(std::int64_t count, Device home) {
  return triangle("pdist", count, count, 1, false, home);
}
Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  return triangle("tril_indices", rows, columns, offset, true, default_device());
}
Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  return triangle("triu_indices", rows, columns, offset, false, default_device());
}

std::pair<Tensor, Tensor> aminmax(const Tensor& x, const Axes& axes, bool keepdim) {
  const Called called("aminmax");
  return {amin(x, axes, keepdim), amax(x, axes, keepdim)};
}
std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Axes& axes, bool keepdim,
                                   double correction) {
  const Called called("var_mean");
  return {var(x, axes, keepdim, correction), mean(x, axes, keepdim)};
}
std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Axes& axes, bool keepdim,
                                   double correction) {
  const Called called("std_mean");
  return {stddev(x, axes, keepdim, correction), mean(x, axes, keepdim)};
}

Tensor count_nonzero(const Tensor& x, const Axes& axes) {
  const Called called("count_nonzero");
  require_defined("count_nonzero", x);
  return sum(cast(cast(x, DType::Bool), DType::Int64), axes);
}
Tensor nansum(const Tensor& x, const Axes& axes, bool keepdim) {
  const Called called("nansum");
  require_defined("nansum", x);
  return sum(is_floating(x.dtype()) ? where(isnan(x), 0.0, x) : x, axes, keepdim);
}
Tensor nanmean(const Tensor& x, const Axes& axes, bool keepdim) {
  const Called called("nanmean");
  require_defined("nanmean", x);
  const Tensor known = ~isnan(x);
  return sum(where(known, x, 0.0), axes, keepdim) / sum(cast(known, x.dtype()), axes, keepdim);
}

ValuesAndIndices kthvalue(const Tensor& x, std::int64_t k, int axis, bool keepdim) {
  const Called called("kthvalue");
  require_defined("kthvalue", x);
  const int a = axis_of("kthvalue", axis, x.rank());
  const std::int64_t n = x.rank() == 0 ? 1 : x.size(a);
  if (k < 1 || k > n)
    throw make_error<ValueError>(where("kthvalue"), ": element ", k, " of ", n, ", counted from 1");
  if (x.rank() == 0) return {x, zeros({}, DType::Int64)};
  const auto [value, index] = sorted_part(x, a, k - 1, 1);
  if (keepdim) return {value, index};
  return {squeeze(value, a), squeeze(index, a)};
}

Tensor msort(const Tensor& x) {
  const Called called("msort");
  require_defined("msort", x);
  return x.rank() == 0 ? x : sort(x, 0).values;
}

namespace {

// In at least 32 bits, [variables, variables].
Tensor covariances(const char* op, const Tensor& x, double correction) {
  require_defined(op, x);
  if (x.rank() > 2)
    throw make_error<ShapeError>(where(op), ": takes [variables, observations], not ", x.shape());
  const Tensor given = to_floating(atleast_2d(x));
  const Tensor rows = item_size(given.dtype()) == 2 ? cast(given, DType::Float32) : given;
  const Tensor centred = rows - mean(rows, 1, true);
  const double count = static_cast<double>(rows.size(1)) - correction;
  return matmul(centred, transpose(centred)) / std::max(count, 0.0);
}

// A number for one variable, in the dtype of x.
Tensor finished(const Tensor& x, const Tensor& all) {
  return cast(all.numel() == 1 ? reshape(all, {}) : all, to_floating(x).dtype());
}

}  // namespace

Tensor cov(const Tensor& x, double correction) {
  const Called called("cov");
  return finished(x, covariances("cov", x, correction));
}

Tensor corrcoef(const Tensor& x) {
  const Called called("corrcoef");
  const Tensor c = covariances("corrcoef", x, 1);
  const Tensor deviation = sqrt(diagonal(c));
  return finished(x, clamp(c / unsqueeze(deviation, 1) / unsqueeze(deviation, 0), -1.0, 1.0));
}

Tensor cumulative_trapezoid(const Tensor& y, double dx, int axis) {
  const Called called("cumulative_trapezoid");
  require_defined("cumulative_trapezoid", y);
  if (y.rank() == 0)
    throw make_error<ShapeError>(where("cumulative_trapezoid"), ": takes an axis or more, not []");
  const int a = axis_of("cumulative_trapezoid", axis, y.rank());
  const Tensor x = to_floating(y);
  const std::int64_t n = x.size(a);
  const Tensor pairs = slice(x, a, 1, n) + slice(x, a, 0, std::max<std::int64_t>(n - 1, 0));
  return cumsum(pairs * (dx / 2), a);
}

}  // namespace tenon
