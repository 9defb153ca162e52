// Sort and ops built on it.
//
// Sort works along the last axis and keeps the first elements of each row; builders transpose the
// axis. Indices are those of a stable sort, so that every engine returns the same ones.
#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/rules.h"
#include "ops/sorted_part.h"

namespace tenon {

namespace {
constexpr std::int64_t kValues = 0, kIndices = 1, kResults = 2;
}  // namespace

ValuesAndIndices sorted_part(const Tensor& x, int axis, std::int64_t first, std::int64_t count,
                             bool descending) {
  const Tensor rows = transpose(x, axis, -1);
  const Tensor node = build(Op::Sort, {rows}, SortAttrs{count, descending ? 1 : 0, first});
  return {transpose(result_of(node, kValues), axis, -1),
          transpose(result_of(node, kIndices), axis, -1)};
}

namespace {

ValuesAndIndices extremum(const char* name, const Tensor& x, int axis, bool keepdim, bool largest) {
  const Called called(name);
  const int a = axis_of(name, axis, x.rank());
  if (x.rank() == 0) return {x, zeros({}, DType::Int64)};
  const Tensor index = largest ? argmax(x, a, true) : argmin(x, a, true);
  const Tensor values = gather(x, a, index);
  return keepdim ? ValuesAndIndices{values, index}
                 : ValuesAndIndices{squeeze(values, a), squeeze(index, a)};
}

}  // namespace

ValuesAndIndices max(const Tensor& x, int axis, bool keepdim) {
  require_defined("max", x);
  return extremum("max", x, axis, keepdim, true);
}
ValuesAndIndices min(const Tensor& x, int axis, bool keepdim) {
  require_defined("min", x);
  return extremum("min", x, axis, keepdim, false);
}

ValuesAndIndices sort(const Tensor& x, int axis, bool descending, bool /*stable*/) {
  require_defined("sort", x);
  const int a = axis_of("sort", axis, x.rank());
  if (x.rank() == 0) return {x, zeros({}, DType::Int64)};
  return sorted_part(x, a, 0, x.shape()[a], descending);
}

Tensor argsort(const Tensor& x, int axis, bool descending, bool stable) {
  const Called called("argsort");
  return sort(x, axis, descending, stable).indices;
}

ValuesAndIndices topk(const Tensor& x, std::int64_t k, int axis, bool largest, bool /*sorted*/) {
  require_defined("topk", x);
  const Tensor row = x.rank() == 0 ? reshape(x, {1}) : x;
  const int a = axis_of("topk", axis, x.rank());
  if (k < 0 || k > row.shape()[a])
    throw make_error<ValueError>(where("topk"), ": k = ", k, ", axis ", axis, " of ", x.shape(),
                                 " has ", row.shape()[a], " elements");
  if (x.rank() == 0 && k == 1) return {x, zeros({}, DType::Int64)};
  return sorted_part(row, a, 0, k, largest);
}

// ---- Inference --------------------------------------------------------------------------------

Inferred infer_sort_result(const Node& node, std::int64_t k) {
  const Node& x = *node.input(0);
  const auto [count, descending, first] = node.attrs.as<SortAttrs>();
  if (x.shape.rank() == 0 || count < 0 || first < 0 || count > x.shape.at(-1) - first)
    throw make_error<ShapeError>(where(node), ": ", count, " elements from ", first,
                                 " on of rows of ", x.shape);
  Shape shape = x.shape;
  shape[shape.rank() - 1] = count;
  return {k == kIndices ? DType::Int64 : x.dtype, shape};
}

Inferred infer_sort(const Node& node) { return infer_sort_result(node, kValues); }

std::int64_t count_sort_results(const Node&) { return kResults; }

// ---- Gradients --------------------------------------------------------------------------------

Gradients vjp_sort(const Tensor& out, std::span<const Tensor> cotangents) {
  const Tensor x = input_of(out, 0);
  if (!cotangents[kValues].defined()) return {Tensor{}};
  return {scatter_add(zeros_like(x), -1, result_of(out, kIndices), cotangents[kValues])};
}

}  // namespace tenon
