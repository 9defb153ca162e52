// Sparse tensors as index vectors and values. Products gather rows of the dense operand, scale them
// and add them to rows of the result; all other operations are sums by index, too.
#include <tenon/elementwise.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/rearrange.h>
#include <tenon/scattering.h>
#include <tenon/sparse.h>
#include <tenon/statistics.h>

#include <algorithm>
#include <numeric>

#include "base/index.h"
#include "base/make_error.h"
#include "graph/tracing/traced_state.h"
#include "ops/embedding.h"
#include "ops/index_check.h"
#include "ops/infer.h"

namespace tenon {
namespace {

Tensor as_index(const char* op, const char* what, const Tensor& x, int rank) {
  require_defined(op, x);
  if (!is_integral(x.dtype()))
    throw make_error<DTypeError>(where(op), ": ", what, " are ", x.dtype(), ": cast them to int64");
  if (x.rank() != rank)
    throw make_error<ShapeError>(where(op), ": ", what, " are ", x.shape(), ", must have ", rank,
                                 rank == 1 ? " axis" : " axes");
  return cast(x, DType::Int64);
}

void require_values(const char* op, const Tensor& values, std::int64_t count) {
  require_defined(op, values);
  if (values.rank() != 1 || values.size(0) != count)
    throw make_error<ShapeError>(where(op), ": values are ", values.shape(), ", must be [", count,
                                 "], one for each index");
  if (is_bool(values.dtype()))
    throw make_error<DTypeError>(where(op), ": values are bool: cast them to a number");
}

void require_matrix(const char* op, const SparseTensor& x) {
  if (x.rank() != 2)
    throw make_error<ShapeError>(where(op), ": the sparse tensor is ", x.shape(),
                                 ", must be a matrix");
}

// An index that many evaluations are about to read.
Tensor computed(const Tensor& index) {
  if (!is_tracing()) compute_once(index);
  return index;
}

// Sums of 16-bit elements are formed in float32.
DType dtype_of_sums(DType dtype) {
  return is_floating(dtype) && item_size(dtype) == 2 ? DType::Float32 : dtype;
}

// The position of each element in a tensor of that shape; axes of size 1 in it are broadcast. The
// axes of the shape are the last ones of x. An index outside its axis gives -1, which whoever reads
// there refuses.
Tensor flat_place(const SparseTensor& x, const Shape& shape) {
  const int skipped = x.rank() - shape.rank();
  Tensor place = zeros({x.nnz()}, DType::Int64), inside = ones({x.nnz()}, DType::Bool);
  for (int a = 0; a < shape.rank(); ++a) {
    const Tensor& index = x.index(a + skipped);
    place = place * shape[a];
    if (shape[a] != 1) place = place + index;
    inside = inside & ge(index, 0) & lt(index, x.size(a + skipped));
  }
  return where(inside, place, -1);
}

// flat_place() of a coalesced tensor whose indices are known to be within their axes.
Tensor known_place(const char* op, const SparseTensor& x) {
  Tensor place = computed(flat_place(x, x.shape()));
  if (x.nnz() > 0 && amin(place).item() < 0)
    throw make_error<ValueError>(where(op), ": an index is outside of the shape ", x.shape());
  return place;
}

// Sums of values by their place in a tensor of that shape.
Tensor sums_at(const Tensor& place, const Tensor& values, const Shape& shape) {
  const Tensor wide = cast(values, dtype_of_sums(values.dtype()));
  const Tensor sums = index_add(zeros({shape.numel()}, wide.dtype()), 0, place, wide);
  return cast(reshape(sums, to_ints(shape)), values.dtype());
}

// The order of the elements by all axes, the first one first.
Tensor row_major_order(const SparseTensor& x) {
  Tensor order = arange(0, x.nnz());
  for (int a = x.rank() - 1; a >= 0; --a)
    order = index_select(order, 0, argsort(index_select(x.index(a), 0, order)));
  return computed(order);
}

// Where each row of sorted row numbers starts, and the end.
Tensor starts_of(const Tensor& row, std::int64_t rows) {
  const Tensor ones_of = ones({row.size(0)}, DType::Int64);
  const Tensor counts = index_add(zeros({rows}, DType::Int64), 0, row, ones_of);
  return computed(cumsum(concat({zeros({1}, DType::Int64), counts}), 0));
}

// The rows of a dense matrix that the elements of one axis name, times the values, added to the
// rows that the other axis names. axis: of the dense matrices, and of the result.
Tensor sparse_product(const SparseTensor& s, int summed, const Tensor& dense, int axis) {
  const DType dtype = operand_dtype("matmul", s.values(), dense), wide = dtype_of_sums(dtype);
  const int a = dense.rank() + axis;
  Ints column(at(dense.rank()), 1);
  column[at(a)] = s.nnz();
  const Tensor picked = index_select(cast(dense, wide), a, s.index(summed)),
               scaled = picked * reshape(cast(s.values(), wide), column);
  Shape shape = dense.shape();
  shape[a] = s.size(1 - summed);
  return cast(index_add(zeros(shape, wide), a, s.index(1 - summed), scaled), dtype);
}

[[noreturn]] void refuse_product(const Shape& a, const Shape& b) {
  throw make_error<ShapeError>(where("matmul"), ": ", a, " times ", b,
                               ": the columns of the first must be as many as the rows of the "
                               "second");
}

// Elements with the largest one of their row subtracted, and the place of each element's row.
struct SoftmaxParts {
  SparseTensor x;
  Tensor row, shifted;
  Tensor sums;  // of the exponentials of each row
};

SoftmaxParts softmax_parts(const char* op, const SparseTensor& given) {
  if (!is_floating(given.dtype()))
    throw make_error<DTypeError>(where(op), ": takes floating values, not ", given.dtype());
  if (given.rank() == 0) throw make_error<ShapeError>(where(op), ": takes an axis or more, not []");
  const SparseTensor x = given.coalesce();
  Shape rows = x.shape();
  rows[rows.rank() - 1] = 1;
  const Tensor row = flat_place(x, rows), values = cast(x.values(), dtype_of_sums(x.dtype()));
  const Tensor fixed = detach(values);
  const Tensor most = scatter_reduce(full({rows.numel()}, -kInfinity, values.dtype()), 0, row,
                                     fixed, ScatterReduction::Amax);
  const Tensor shifted = values - detach(index_select(most, 0, row));
  return {x, row, shifted, index_add(zeros({rows.numel()}, values.dtype()), 0, row, exp(shifted))};
}

}  // namespace

// ---- Making and converting

SparseTensor::SparseTensor(std::vector<Tensor> index, const Tensor& values, const Shape& shape)
    : shape_(shape), index_(std::move(index)), values_(values) {}

SparseTensor SparseTensor::coo(const Tensor& indices, const Tensor& values, const Shape& shape) {
  const Called called("SparseTensor::coo");
  const Tensor all = as_index("SparseTensor::coo", "indices", indices, 2);
  if (all.size(0) != shape.rank())
    throw make_error<ShapeError>(where("SparseTensor::coo"), ": indices are ", all.shape(),
                                 " for a tensor ", shape, ": they must be [", shape.rank(),
                                 ", count]");
  require_values("SparseTensor::coo", values, all.size(1));
  std::vector<Tensor> index;
  index.reserve(at(shape.rank()));
  for (int a = 0; a < shape.rank(); ++a) index.push_back(computed(select(all, 0, a)));
  return {std::move(index), values, shape};
}

SparseTensor SparseTensor::csr(const Tensor& row_starts, const Tensor& columns,
                               const Tensor& values, const Shape& shape) {
  const Called called("SparseTensor::csr");
  const char* const op = "SparseTensor::csr";
  const Tensor starts = as_index(op, "row_starts", row_starts, 1),
               column = as_index(op, "columns", columns, 1);
  if (shape.rank() != 2)
    throw make_error<ShapeError>(where(op), ": the shape is ", shape, ", must be that of a matrix");
  const std::int64_t rows = shape[0], count = column.size(0);
  if (starts.size(0) != rows + 1)
    throw make_error<ShapeError>(where(op), ": row_starts are ", starts.shape(), " for ", rows,
                                 " rows, must be [", rows + 1, "]");
  require_values(op, values, count);
  Tensor row = zeros({count}, DType::Int64);
  if (rows > 0) {
    const Scope scope("row_starts");
    // The end of the last row is the number of elements.
    const Tensor fits = zeros_within(count - narrow(starts, 0, rows, 1), 1);
    row = bags_of(count, narrow(starts, 0, 0, rows)) + fits;
  }
  SparseTensor out({computed(row), computed(column)}, values, shape);
  out.layout_ = SparseLayout::Csr;
  out.row_starts_ = computed(starts);
  return out;
}

SparseTensor SparseTensor::from_dense(const Tensor& dense) {
  const Called called("SparseTensor::from_dense");
  require_defined("SparseTensor::from_dense", dense);
  const Tensor flat = reshape(dense, {dense.numel()});
  const Tensor place = arange(0, dense.numel()).index({ne(flat, 0)});
  std::vector<Tensor> index;
  if (dense.rank() > 0)
    for (const Tensor& each : unravel_index(place, dense.shape())) index.push_back(computed(each));
  SparseTensor out(std::move(index), index_select(flat, 0, place), dense.shape());
  require_values("SparseTensor::from_dense", out.values_, place.size(0));
  out.is_coalesced_ = true;
  return out;
}

std::int64_t SparseTensor::size(int axis) const {
  return shape_[normalize_axis(axis, rank(), where("SparseTensor::size"))];
}

const Tensor& SparseTensor::index(int axis) const {
  return index_[at(normalize_axis(axis, rank(), where("SparseTensor::index")))];
}

Tensor SparseTensor::indices() const {
  return index_.empty() ? zeros({0, nnz()}, DType::Int64) : stack(index_);
}

const Tensor& SparseTensor::row_starts() const {
  if (layout_ != SparseLayout::Csr)
    throw ValueError(
        "SparseTensor::row_starts: the tensor is stored by coordinates: call to_csr()");
  return row_starts_;
}

SparseTensor SparseTensor::with_values(const Tensor& values) const {
  require_values("SparseTensor::with_values", values, nnz());
  SparseTensor out = *this;
  out.values_ = values;
  return out;
}

Tensor SparseTensor::to_dense() const {
  return sums_at(flat_place(*this, shape_), values_, shape_);
}

// The elements in another order, or some of them, by coordinates.
SparseTensor SparseTensor::picked(const Tensor& order) const {
  std::vector<Tensor> index;
  for (const Tensor& each : index_) index.push_back(computed(index_select(each, 0, order)));
  return {std::move(index), index_select(values_, 0, order), shape_};
}

SparseTensor SparseTensor::in_layout_of(const SparseTensor& other) const {
  return other.layout_ == SparseLayout::Csr ? to_csr() : to_coo();
}

// The elements are sorted. For each position, the first of its elements is kept, and the values of
// all are added.
SparseTensor SparseTensor::coalesce() const {
  if (is_coalesced_) return *this;
  const Called called("SparseTensor::coalesce");
  const std::int64_t n = nnz();
  SparseTensor sorted = picked(row_major_order(*this));
  Tensor differs = zeros({std::max<std::int64_t>(n - 1, 0)}, DType::Bool);
  for (const Tensor& each : sorted.index_)
    differs = differs | ne(slice(each, 0, 1, n), slice(each, 0, 0, n - 1));
  const Tensor begins = n == 0 ? differs : concat({ones({1}, DType::Bool), differs});
  const Tensor first = arange(0, n).index({begins});
  SparseTensor out = sorted.picked(first);
  out.values_ = sums_at(computed(cumsum(begins, 0) - 1), sorted.values_, {first.size(0)});
  out.is_coalesced_ = true;
  return out.in_layout_of(*this);
}

SparseTensor SparseTensor::to_coo() const {
  SparseTensor out = *this;
  out.layout_ = SparseLayout::Coo;
  out.row_starts_ = Tensor();
  return out;
}

SparseTensor SparseTensor::to_csr() const {
  if (layout_ == SparseLayout::Csr) return *this;
  const Called called("SparseTensor::to_csr");
  require_matrix("SparseTensor::to_csr", *this);
  SparseTensor out = is_coalesced_ ? *this : picked(row_major_order(*this));
  out.is_coalesced_ = is_coalesced_;
  out.layout_ = SparseLayout::Csr;
  out.row_starts_ = starts_of(out.index_[0], shape_[0]);
  return out;
}

SparseTensor SparseTensor::transpose() const {
  require_matrix("SparseTensor::transpose", *this);
  const SparseTensor swapped({index_[1], index_[0]}, values_, {shape_[1], shape_[0]});
  return swapped.in_layout_of(*this);
}

Tensor SparseTensor::matmul(const Tensor& dense) const { return tenon::matmul(*this, dense); }

// ---- Operations

Tensor matmul(const SparseTensor& a, const Tensor& b) {
  const Called called("matmul");
  require_defined("matmul", b);
  require_matrix("matmul", a);
  if (b.rank() == 0 || b.size(b.rank() == 1 ? 0 : -2) != a.size(1))
    refuse_product(a.shape(), b.shape());
  return sparse_product(a, 1, b, b.rank() == 1 ? -1 : -2);
}

Tensor matmul(const Tensor& a, const SparseTensor& b) {
  const Called called("matmul");
  require_defined("matmul", a);
  require_matrix("matmul", b);
  if (a.rank() == 0 || a.size(-1) != b.size(0)) refuse_product(a.shape(), b.shape());
  return sparse_product(b, 0, a, -1);
}

// Element e of `a` meets all elements of the row of `b` that its column names. The pairs are listed
// element by element, so sums are formed in the order of `a`.
SparseTensor matmul(const SparseTensor& a, const SparseTensor& b) {
  const Called called("matmul");
  require_matrix("matmul", a);
  require_matrix("matmul", b);
  if (a.size(1) != b.size(0)) refuse_product(a.shape(), b.shape());
  const SparseTensor rows = b.to_csr();
  const Tensor &column = a.index(1), &starts = rows.row_starts();
  const Tensor begin = index_select(starts, 0, column);
  const Tensor ends = computed(cumsum(index_select(starts, 0, column + 1) - begin, 0));
  const std::int64_t n = a.nnz(), pairs = n == 0 ? 0 : select(ends, 0, -1).item<std::int64_t>();
  const Tensor first =
      n == 0 ? ends : concat({zeros({1}, DType::Int64), narrow(ends, 0, 0, n - 1)});
  const Tensor left = computed(pairs == 0 ? zeros({0}, DType::Int64) : bags_of(pairs, first));
  const Tensor right = computed(arange(0, pairs) + index_select(begin - first, 0, left));
  const DType dtype = promote(a.dtype(), b.dtype()), wide = dtype_of_sums(dtype);
  const Tensor products = index_select(cast(a.values(), wide), 0, left) *
                          index_select(cast(rows.values(), wide), 0, right);
  const Tensor indices =
      stack({index_select(a.index(0), 0, left), index_select(rows.index(1), 0, right)});
  const SparseTensor sums = SparseTensor::coo(indices, products, {a.size(0), b.size(1)}).coalesce();
  const SparseTensor out = sums.with_values(cast(sums.values(), dtype));
  return a.layout() == SparseLayout::Csr ? out.to_csr() : out;
}

SparseTensor add(const SparseTensor& a, const SparseTensor& b) {
  const Called called("add");
  if (a.shape() != b.shape())
    throw make_error<ShapeError>(where("add"), ": sparse tensors ", a.shape(), " and ", b.shape(),
                                 ": shapes must be equal");
  const DType dtype = promote(a.dtype(), b.dtype());
  const SparseTensor both =
      SparseTensor::coo(concat({a.indices(), b.indices()}, 1),
                        concat({cast(a.values(), dtype), cast(b.values(), dtype)}), a.shape());
  return a.layout() == SparseLayout::Csr ? both.to_csr() : both;
}

SparseTensor mul(const SparseTensor& a, const Tensor& b) {
  const Called called("mul");
  require_defined("mul", b);
  if (b.rank() > a.rank() || broadcast_shapes(a.shape(), b.shape(), where("mul")) != a.shape())
    throw make_error<ShapeError>(where("mul"), ": ", b.shape(), " does not broadcast to ",
                                 a.shape());
  const Tensor factor = index_select(reshape(b, {b.numel()}), 0, flat_place(a, b.shape()));
  return a.with_values(a.values() * factor);
}

// Of the positions of `a`, those that a binary search finds in `b`.
SparseTensor mul(const SparseTensor& a, const SparseTensor& b) {
  const Called called("mul");
  if (a.shape() != b.shape())
    throw make_error<ShapeError>(where("mul"), ": sparse tensors ", a.shape(), " and ", b.shape(),
                                 ": shapes must be equal");
  const SparseTensor x = a.coalesce(), y = b.coalesce();
  const Tensor here = known_place("mul", x), there = known_place("mul", y);
  // Without positions in `b`, none is looked up.
  const std::int64_t last = y.nnz() - 1, compared = last < 0 ? 0 : x.nnz();
  const Tensor found = clamp_max(searchsorted(there, narrow(here, 0, 0, compared)), last);
  const Tensor is_common = eq(index_select(there, 0, found), narrow(here, 0, 0, compared));
  const Tensor kept = arange(0, compared).index({is_common});
  SparseTensor out = x.picked(kept);
  out.values_ = out.values_ * index_select(y.values(), 0, index_select(found, 0, kept));
  out.is_coalesced_ = true;
  return out.in_layout_of(a);
}

SparseTensor sub(const SparseTensor& a, const SparseTensor& b) {
  const Called called("sub");
  return add(a, mul(b, -1));
}

SparseTensor mul(const SparseTensor& a, Scalar b) { return a.with_values(mul(a.values(), b)); }

Tensor sum(const SparseTensor& x, const Ints& axes, bool keepdim) {
  const Called called("sum");
  const Shape kept = keepdim_shape(x.shape(), axis_mask("sum", axes, x.rank()));
  Tensor sums = sums_at(flat_place(x, kept), x.values(), kept);
  if (keepdim) return sums;
  const std::int64_t mask = axis_mask("sum", axes, x.rank());
  Ints rest;
  for (int a = 0; a < x.rank(); ++a)
    if ((mask >> a & 1) == 0) rest.push_back(kept[a]);
  return reshape(sums, rest);
}

SparseTensor softmax(const SparseTensor& x) {
  const Called called("softmax");
  const SoftmaxParts parts = softmax_parts("softmax", x);
  const Tensor share = exp(parts.shifted) / index_select(parts.sums, 0, parts.row);
  return parts.x.with_values(cast(share, x.dtype()));
}

SparseTensor log_softmax(const SparseTensor& x) {
  const Called called("log_softmax");
  const SoftmaxParts parts = softmax_parts("log_softmax", x);
  const Tensor share = parts.shifted - log(index_select(parts.sums, 0, parts.row));
  return parts.x.with_values(cast(share, x.dtype()));
}

SparseTensor sampled_matmul(const SparseTensor& pattern, const Tensor& a, const Tensor& b) {
  const Called called("sampled_matmul");
  require_defined("sampled_matmul", a, b);
  require_matrix("sampled_matmul", pattern);
  if (a.rank() != 2 || b.rank() != 2 || a.size(0) != pattern.size(0) ||
      b.size(1) != pattern.size(1) || a.size(1) != b.size(0))
    throw make_error<ShapeError>(where("sampled_matmul"), ": ", a.shape(), " times ", b.shape(),
                                 " at the positions of ", pattern.shape(),
                                 ": matrices [m, k], [k, n] and [m, n] are needed");
  const DType dtype = operand_dtype("sampled_matmul", a, b), wide = dtype_of_sums(dtype);
  const Tensor rows = index_select(cast(a, wide), 0, pattern.index(0)),
               columns = index_select(transpose(cast(b, wide), 0, 1), 0, pattern.index(1));
  return pattern.with_values(cast(sum(rows * columns, {1}), dtype));
}

}  // namespace tenon
