// Rearranging elements: repeating, rolling, masking and writing into slices, built from other ops.
// Primitives that move elements are in movement.cpp.
#include <algorithm>
#include <limits>

#include <tenon/error.h>
#include <tenon/functional.h>

#include "base/make_error.h"
#include "ops/embedding.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// row - column for the elements of the last two axes, int64 [rows, columns].
Tensor diagonals(const char* op, const Tensor& x) {
  if (x.rank() < 2)
    throw make_error<ShapeError>(where(op), ": input is ", x.shape(),
                                 "; a matrix has two axes or more");
  return unsqueeze(arange(0, x.size(-2)), 1) - arange(0, x.size(-1));
}

Tensor filled(const Tensor& mask, Scalar value, const Tensor& x) {
  if (!is_bool(mask.dtype()))
    throw make_error<DTypeError>(where("masked_fill"), ": the mask is ", mask.dtype(),
                                 ", not bool");
  return where(mask, scalar_operand("masked_fill", value, {}, x.dtype()), x);
}

}  // namespace

Tensor tril(const Tensor& x, std::int64_t diagonal) {
  require_defined("tril", x);
  return where(ge(diagonals("tril", x), -diagonal), x, constant({}, 0, x.dtype()));
}
Tensor triu(const Tensor& x, std::int64_t diagonal) {
  require_defined("triu", x);
  return where(le(diagonals("triu", x), -diagonal), x, constant({}, 0, x.dtype()));
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  const Called called("masked_fill");
  return filled(mask, value, x);
}

Tensor roll(const Tensor& x, const Ints& shifts, const Ints& axes) {
  const Called called("roll");
  if (axes.empty()) {
    if (shifts.size() != 1)
      throw make_error<ValueError>(where("roll"), ": ", shifts.size(), " shifts and no axes");
    return reshape(roll(reshape(x, {x.numel()}), shifts, {0}), to_ints(x.shape()));
  }
  if (shifts.size() != axes.size())
    throw make_error<ValueError>(where("roll"), ": ", shifts.size(), " shifts for ", axes.size(),
                                 " axes");
  Tensor out = x;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const int a = normalize_axis(static_cast<int>(axes[k]), x.rank(), where("roll"));
    const std::int64_t size = x.shape()[a];
    if (size == 0) continue;
    const std::int64_t by = (shifts[k] % size + size) % size;
    if (by == 0) continue;
    out = concat({slice(out, a, size - by, size), slice(out, a, 0, size - by)}, a);
  }
  return out;
}

namespace {

// Repeats an axis `count` times, one copy after another.
Tensor repeat_blocks(const Tensor& x, int axis, std::int64_t count) {
  Ints whole = to_ints(x.shape());
  std::int64_t outer = 1, block = 1;
  for (int a = 0; a < x.rank(); ++a) (a < axis ? outer : block) *= x.size(a);
  whole[static_cast<std::size_t>(axis)] *= count;
  return reshape(expand(reshape(x, {outer, 1, block}), {outer, count, block}), whole);
}

}  // namespace

Tensor repeat(const Tensor& x, const Ints& counts) {
  const Called called("repeat");
  const auto extra = static_cast<std::ptrdiff_t>(counts.size()) - x.rank();
  if (extra < 0)
    throw make_error<ShapeError>(where("repeat"), ": ", counts.size(), " counts for ", x.shape(),
                                 "; give one for each axis");
  Ints raised, expanded, sizes(static_cast<std::size_t>(extra), 1), merged;
  sizes.insert(sizes.end(), x.shape().begin(), x.shape().end());
  for (std::size_t a = 0; a < counts.size(); ++a) {
    if (counts[a] < 0) throw make_error<ValueError>(where("repeat"), ": ", counts[a], " times");
    if (counts[a] != 1) raised.push_back(1), expanded.push_back(counts[a]);
    if (counts[a] == 1 || sizes[a] != 1) raised.push_back(sizes[a]), expanded.push_back(sizes[a]);
    merged.push_back(size_product("repeat", counts[a], sizes[a]));
  }
  if (raised.size() <= std::size_t{kMaxRank})
    return reshape(expand(reshape(x, raised), expanded), merged);
  // The result would have too many axes for a shape, so one axis is repeated at a time, the last
  // one first.
  Tensor out = reshape(x, sizes);
  for (std::size_t a = counts.size(); a-- > 0;)
    if (counts[a] != 1) out = repeat_blocks(out, static_cast<int>(a), counts[a]);
  return out;
}

Tensor repeat_interleave(const Tensor& x, std::int64_t count, int axis) {
  const Called called("repeat_interleave");
  if (count < 0) throw make_error<ValueError>(where("repeat_interleave"), ": ", count, " times");
  const int a = normalize_axis(axis, x.rank(), where("repeat_interleave"));
  Ints merged = to_ints(x.shape());
  merged[static_cast<std::size_t>(a)] = size_product("repeat_interleave", x.size(a), count);
  if (x.rank() == kMaxRank) {  // no axis is free, so the others are merged
    std::int64_t outer = 1, inner = 1;
    for (int d = 0; d <= a; ++d) outer *= x.size(d);
    for (int d = a + 1; d < x.rank(); ++d) inner *= x.size(d);
    return reshape(expand(reshape(x, {outer, 1, inner}), {outer, count, inner}), merged);
  }
  Ints sizes = to_ints(x.shape());
  sizes.insert(sizes.begin() + a + 1, count);
  return reshape(expand(unsqueeze(x, a + 1), sizes), merged);
}

std::vector<Tensor> meshgrid(TensorList vectors, bool columns_first) {
  const Called called("meshgrid");
  Shape shape;
  for (const Tensor& v : vectors) {
    if (v.rank() > 1)
      throw make_error<ShapeError>(where("meshgrid"), ": takes vectors, not ", v.shape());
    shape.push_back(v.numel());
  }
  std::vector<Tensor> grids;
  for (std::size_t k = 0; k < vectors.size(); ++k) {
    Ints sizes(vectors.size(), 1);
    sizes[k] = vectors[k].numel();
    const Tensor grid = broadcast_to(reshape(vectors[k], sizes), shape);
    grids.push_back(columns_first && vectors.size() > 1 ? transpose(grid, 0, 1) : grid);
  }
  return grids;
}

Tensor index_add(const Tensor& base, int axis, const Tensor& index, const Tensor& updates,
                 Scalar alpha) {
  const Called called("index_add");
  const OpPlace at = where("index_add");
  const int a = normalize_axis(axis, base.rank(), at);
  Shape shape = base.shape();
  if (index.rank() != 1)
    throw make_error<ShapeError>(at, ": the index is a vector, not ", index.shape());
  shape[a] = index.size(0);
  if (updates.shape() != shape)
    throw make_error<ShapeError>(at, ": updates ", updates.shape(), " for ", index.size(0),
                                 " indices on axis ", axis, " of ", base.shape(), "; they must be ",
                                 shape);
  Ints column(static_cast<std::size_t>(base.rank()), 1);
  column[static_cast<std::size_t>(a)] = index.size(0);
  // bool has no sums; scatter_add() reports this error whatever the factor.
  const bool as_they_are = alpha.real() == 1 || is_bool(updates.dtype());
  const Tensor scaled = as_they_are ? updates : mul(updates, alpha);
  return scatter_add(base, a, broadcast_to(reshape(index, column), shape), scaled);
}

std::int64_t padding_row(std::int64_t padding_index, const Tensor& weight) {
  const std::int64_t entries = weight.size(0),
                     row = padding_index < 0 ? padding_index + entries : padding_index;
  if (row < 0 || row >= entries)
    throw make_error<ValueError>(where("embedding"), ": the padding index ", padding_index,
                                 " is outside ", entries, " entries");
  return row;
}

}  // namespace tenon
