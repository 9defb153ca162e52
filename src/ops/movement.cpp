// Data movement: ops that copy elements to other positions. Concat; Pad; Gather and ScatterAdd,
// each the other's gradient; Scatter, which overwrites. Views are in view.cpp.
//
// Gather and scatter nodes need equal sizes on all axes but their own. PyTorch allows a smaller
// index, so builders slice.
#include <algorithm>

#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/losses.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr std::size_t kConcatInputs =
    128;  // a node takes at most 255 inputs; longer lists become trees

void require_index(const Node& node, const Node& index) {
  if (index.dtype != DType::Int64 && index.dtype != DType::Int32)
    throw make_error<DTypeError>(where(node), ": the index is ", index.dtype, "; cast it to int64");
}

void require_index_fits(const Node& node, const Shape& x, const Shape& index) {
  const int axis = node_axis(node, x.rank());
  bool fits = x.rank() == index.rank();
  for (int a = 0; fits && a < x.rank(); ++a) fits = a == axis || x[a] == index[a];
  if (!fits)
    throw make_error<ShapeError>(where(node), ": index ", index, " does not fit ", x,
                                 " along axis ", axis);
}

// Treats a tensor without axes as a vector of one element.
Tensor at_least_vector(const Tensor& x) { return x.rank() == 0 ? reshape(x, {1}) : x; }

// The part of x that an index of that shape can reach.
Tensor reachable(const char* op, const Tensor& x, int axis, const Shape& index) {
  if (x.rank() != index.rank())
    throw make_error<ShapeError>(where(op), ": index ", index, " and tensor ", x.shape(),
                                 " must have the same rank");
  Tensor part = x;
  for (int a = 0; a < x.rank(); ++a) {
    if (a == axis) continue;
    if (index[a] > x.shape()[a])
      throw make_error<ShapeError>(where(op), ": index ", index, " is larger than ", x.shape(),
                                   " on axis ", a);
    part = slice(part, a, 0, index[a]);
  }
  return part;
}

}  // namespace

// ---- Builders ---------------------------------------------------------------------------------

Tensor concat(TensorList tensors, int axis) {
  if (tensors.empty()) throw make_error<ValueError>(where("concat"), ": no tensors given");
  for (const Tensor& t : tensors) require_defined("concat", t);
  const int a = normalize_axis(axis, tensors[0].rank(), where("concat"));
  DType dtype = tensors[0].dtype();
  for (const Tensor& t : tensors) dtype = promote(dtype, t.dtype());
  std::vector<Tensor> level;
  level.reserve(tensors.size());
  for (const Tensor& t : tensors) level.push_back(cast(t, dtype));
  while (level.size() > 1) {
    std::vector<Tensor> next;
    for (std::size_t k = 0; k < level.size(); k += kConcatInputs) {
      const std::size_t count = std::min(kConcatInputs, level.size() - k);
      next.push_back(count == 1
                         ? level[k]
                         : build(Op::Concat, std::span(level).subspan(k, count), AxisAttrs{a}));
    }
    level = std::move(next);
  }
  return level[0];
}

Tensor stack(TensorList tensors, int axis) {
  const Called called("stack");
  if (tensors.empty()) throw make_error<ValueError>(where("stack"), ": no tensors given");
  const int a = normalize_axis(axis, tensors[0].rank() + 1, where("stack"));
  std::vector<Tensor> raised;
  for (const Tensor& t : tensors) {
    if (t.shape() != tensors[0].shape())
      throw make_error<ShapeError>(where("stack"), ": shapes ", tensors[0].shape(), " and ",
                                   t.shape(), "; they must be equal");
    raised.push_back(unsqueeze(t, a));
  }
  return concat(raised, a);
}

Tensor pad(const Tensor& x, const Ints& padding, Scalar value) {
  const Called called("pad");
  if (padding.size() % 2 != 0 || static_cast<int>(padding.size() / 2) > x.rank())
    throw make_error<ShapeError>(where("pad"), ": ", padding.size(),
                                 " numbers for a tensor of rank ", x.rank(),
                                 "; give (before, after) for each axis from the last one");
  Tensor t = x;
  PadAttrs attrs;
  Shape shape = x.shape();
  bool grows = false;
  for (std::size_t k = 0; k < padding.size() / 2; ++k) {
    const int a = x.rank() - 1 - static_cast<int>(k);
    const std::int64_t before = padding[2 * k], after = padding[2 * k + 1], size = x.shape()[a];
    if (std::max(before, after) > kLargestSize || std::min(before, after) < -kLargestSize)
      throw make_error<ShapeError>(where("pad"), ": padding (", before, ", ", after, ") on axis ",
                                   a, " is too large: sizes overflow");
    // Negative padding crops.
    const std::int64_t from = std::max<std::int64_t>(-before, 0),
                       to = size - std::max<std::int64_t>(-after, 0);
    if (from > to)
      throw make_error<ShapeError>(where("pad"), ": crops more than axis ", a, " of ", x.shape(),
                                   " has");
    t = slice(t, a, from, to);
    attrs.before[a] = std::max<std::int64_t>(before, 0);
    attrs.after[a] = std::max<std::int64_t>(after, 0);
    shape[a] = to - from + attrs.before[a] + attrs.after[a];
    grows = grows || before > 0 || after > 0;
  }
  if (!grows) return t;
  attrs.value = constant_value(scalar_operand("pad", value, {}, x.dtype()));
  return build(Op::Pad, {t}, attrs);
}

Tensor gather(const Tensor& x, int axis, const Tensor& index) {
  require_defined("gather", x, index);
  const int a = axis_of("gather", axis, x.rank());
  if (x.rank() == 0 || index.rank() == 0)
    return reshape(gather(at_least_vector(x), a, at_least_vector(index)), to_ints(index.shape()));
  return build(Op::Gather, {reachable("gather", x, a, index.shape()), index}, AxisAttrs{a});
}

Tensor scatter_add(const Tensor& base, int axis, const Tensor& index, const Tensor& updates) {
  require_defined("scatter_add", base, index, updates);
  const int a = axis_of("scatter_add", axis, base.rank());
  if (base.rank() == 0 || index.rank() == 0 || updates.rank() == 0)
    return reshape(
        scatter_add(at_least_vector(base), a, at_least_vector(index), at_least_vector(updates)),
        to_ints(base.shape()));
  const Tensor values =
      slice(reachable("scatter_add", updates, a, index.shape()), a, 0, index.shape()[a]);
  const Tensor target = reachable("scatter_add", base, a, index.shape());
  if (target.shape() == base.shape())
    return build(Op::ScatterAdd, {base, index, values}, AxisAttrs{a});
  Ints margin;
  for (int k = base.rank() - 1; k >= 0; --k)
    margin.insert(margin.end(), {0, base.shape()[k] - target.shape()[k]});
  return base +
         pad(build(Op::ScatterAdd, {zeros_like(target), index, values}, AxisAttrs{a}), margin);
}

Tensor scatter(const Tensor& base, int axis, const Tensor& index, const Tensor& updates) {
  require_defined("scatter", base, index, updates);
  const int a = axis_of("scatter", axis, base.rank());
  if (index.rank() != base.rank() || updates.rank() != base.rank())
    throw make_error<ShapeError>(where("scatter"), ": base ", base.shape(), ", index ",
                                 index.shape(), ", updates ", updates.shape(),
                                 "; they have the same axes");
  if (base.rank() == 0)
    return reshape(
        scatter(at_least_vector(base), a, at_least_vector(index), at_least_vector(updates)), {});
  for (int d = 0; d < base.rank(); ++d)
    if (index.shape()[d] > updates.shape()[d])
      throw make_error<ShapeError>(where("scatter"), ": index ", index.shape(),
                                   " is larger than updates ", updates.shape());
  const Tensor values =
      slice(reachable("scatter", updates, a, index.shape()), a, 0, index.shape()[a]);
  const Tensor target = reachable("scatter", base, a, index.shape());
  Tensor written = build(Op::Scatter, {target, index, values}, AxisAttrs{a});
  if (target.shape() == base.shape()) return written;
  std::vector<Index> corner;
  corner.reserve(static_cast<std::size_t>(base.rank()));
  for (int d = 0; d < base.rank(); ++d) corner.emplace_back(Slice(0, target.shape()[d]));
  return base.index_put(corner, written);
}

Tensor scatter(const Tensor& base, int axis, const Tensor& index, Scalar value) {
  const Called called("scatter");
  const Tensor number = scalar_operand("scatter", value, {}, base.dtype());
  return scatter(base, axis, index, broadcast_to(number, index.shape()));
}

Tensor index_select(const Tensor& x, int axis, const Tensor& index) {
  const Called called("index_select");
  const int a = axis_of("index_select", axis, x.rank());
  if (index.rank() != 1)
    throw make_error<ShapeError>(where("index_select"), ": the index is a vector, not ",
                                 index.shape());
  if (x.rank() == 0) {
    if (index.size(0) != 1)
      throw make_error<ShapeError>(where("index_select"), ": ", index.size(0),
                                   " indices into a scalar, which takes one");
    return reshape(gather(reshape(x, {1}), 0, index), {});
  }
  Shape shape = x.shape();
  shape[a] = index.size(0);
  Ints column(static_cast<std::size_t>(x.rank()), 1);
  column[static_cast<std::size_t>(a)] = index.size(0);
  return gather(x, a, broadcast_to(reshape(index, column), shape));
}

Tensor one_hot(const Tensor& index, std::int64_t classes, DType dtype) {
  const Called called("one_hot");
  if (!is_integral(index.dtype()))
    throw make_error<DTypeError>(where("one_hot"), ": the index is ", index.dtype(),
                                 "; cast it to int64");
  if (classes < 0) throw make_error<ValueError>(where("one_hot"), ": ", classes, " classes");
  const Tensor known = require_classes("one_hot", cast(index, DType::Int64), classes);
  return cast(eq(unsqueeze(known, -1), arange(0, classes, 1, DType::Int64)), dtype);
}

// ---- Inference --------------------------------------------------------------------------------

Inferred infer_concat(const Node& node) {
  require_same_dtype(node);
  Shape shape = node.input(0)->shape;
  const int axis = node_axis(node, shape.rank());
  shape[axis] = 0;
  for (const Node* in : node.in()) {
    bool fits = in->shape.rank() == shape.rank();
    for (int a = 0; fits && a < shape.rank(); ++a) fits = a == axis || in->shape[a] == shape[a];
    if (!fits)
      throw make_error<ShapeError>(where(node), ": shapes ", node.input(0)->shape, " and ",
                                   in->shape, " differ on an axis other than ", axis);
    shape[axis] += in->shape[axis];
  }
  return {node.input(0)->dtype, Shape(shape.begin(), shape.rank())};
}

Inferred infer_pad(const Node& node) {
  const Node& x = *node.input(0);
  const auto& margin = node.attrs.as<PadAttrs>();
  Shape shape = x.shape;
  for (int a = 0; a < shape.rank(); ++a) {
    if (margin.before[a] < 0 || margin.after[a] < 0)
      throw make_error<ShapeError>(where(node), ": negative padding on axis ", a);
    shape[a] += margin.before[a] + margin.after[a];
  }
  return {x.dtype, Shape(shape.begin(), shape.rank())};
}

Inferred infer_gather(const Node& node) {
  require_index(node, *node.input(1));
  require_index_fits(node, node.input(0)->shape, node.input(1)->shape);
  return {node.input(0)->dtype, node.input(1)->shape};
}

Inferred infer_scatter(const Node& node) {
  const Node &base = *node.input(0), &index = *node.input(1), &updates = *node.input(2);
  require_index(node, index);
  require_index_fits(node, base.shape, index.shape);
  if (updates.shape != index.shape)
    throw make_error<ShapeError>(where(node), ": updates ", updates.shape, " for index ",
                                 index.shape, "; they must be equal");
  if (updates.dtype != base.dtype)
    throw make_error<DTypeError>(where(node), ": updates of ", updates.dtype, " to a base of ",
                                 base.dtype, "; cast one of them");
  return {base.dtype, base.shape};
}

Inferred infer_scatter_add(const Node& node) {
  const Inferred out = infer_scatter(node);
  if (is_bool(out.dtype))
    throw make_error<DTypeError>(where(node), ": does not take bool: cast to a number");
  return out;
}

// ---- Gradients --------------------------------------------------------------------------------

Gradients vjp_concat(const Tensor& out, const Tensor& g) {
  const int axis = node_axis(*out.node(), g.rank());
  Gradients parts;
  std::int64_t start = 0;
  for (const Node* in : out.node()->in()) {
    const std::int64_t end = start + in->shape[axis];
    parts.push_back(slice(g, axis, start, end));
    start = end;
  }
  return parts;
}

Gradients vjp_pad(const Tensor& out, const Tensor& g) {
  const auto& margin = out.node()->attrs.as<PadAttrs>();
  Tensor t = g;
  for (int a = 0; a < g.rank(); ++a)
    t = slice(t, a, margin.before[a], g.shape()[a] - margin.after[a]);
  return {t};
}

Gradients vjp_gather(const Tensor& out, const Tensor& g) {
  const Tensor base = zeros_like(input_of(out, 0));
  return {build(Op::ScatterAdd, {base, input_of(out, 1), g}, out.node()->attrs), Tensor{}};
}

// Of several updates to one position only the last was written; the others get no gradient.
Gradients vjp_scatter(const Tensor& out, const Tensor& g) {
  const Tensor& index = input_of(out, 1);
  const int axis = node_axis(*out.node(), index.rank());
  Ints column(static_cast<std::size_t>(index.rank()), 1);
  column[static_cast<std::size_t>(axis)] = index.size(axis);
  const Tensor number = broadcast_to(reshape(arange(0, index.size(axis)), column), index.shape());
  const auto written = [&](const Tensor& base, const Tensor& updates) {
    return build(Op::Scatter, {base, index, updates}, out.node()->attrs);
  };
  const auto read = [&](const Tensor& x) {
    return build(Op::Gather, {x, index}, out.node()->attrs);
  };
  const Tensor last = read(written(zeros(g.shape(), DType::Int64), number));
  return {written(g, zeros(index.shape(), g.dtype())), Tensor{},
          where(eq(last, number), read(g), constant({}, 0, g.dtype()))};
}

Gradients vjp_scatter_add(const Tensor& out, const Tensor& g) {
  return {g, Tensor{}, build(Op::Gather, {g, input_of(out, 1)}, out.node()->attrs)};
}

}  // namespace tenon
