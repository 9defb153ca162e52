// Views: the same elements under another shape. A view changes no element, and engines may
// implement it without copying. Ops that copy are in movement.cpp.
//
// Views that would change nothing return their input, and views of a number are numbers.
#include <algorithm>
#include <limits>

#include <tenon/error.h>

#include "base/make_error.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {
namespace {

Tensor view(Op op, const Tensor& x, const Shape& shape, const Attrs& attrs = {}) {
  Tensor made = build_as(op, x.dtype(), shape, {x}, attrs);  // checks constants too
  if (!is_number(x)) return made;
  return constant(shape, constant_value(x), x.dtype());
}

}  // namespace

// ---- Builders ---------------------------------------------------------------------------------

Tensor reshape(const Tensor& x, const Ints& sizes) {
  require_defined("reshape", x);
  Ints resolved = sizes;
  std::int64_t open = -1;
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    if (sizes[a] != -1) continue;
    if (std::exchange(open, static_cast<std::int64_t>(a)) != -1)
      throw make_error<ShapeError>(where("reshape"), ": more than one size is -1");
    resolved[a] = 1;
  }
  if (open >= 0) {
    const std::int64_t known = to_shape(resolved).numel();  // refuses sizes too large to multiply
    if (known == 0 || x.numel() % known != 0)
      throw make_error<ShapeError>(where("reshape"), ": ", x.shape(), " has ", x.numel(),
                                   " elements, which the given sizes (product ", known,
                                   ") do not divide");
    resolved[static_cast<std::size_t>(open)] = x.numel() / known;
  }
  const Shape shape = to_shape(resolved);
  return shape == x.shape() ? x : view(Op::Reshape, x, shape);
}

Tensor flatten(const Tensor& x, int start_axis, int end_axis) {
  require_defined("flatten", x);
  if (x.rank() == 0) return reshape(x, {1});
  const OpPlace at = where("flatten");
  const int first = normalize_axis(start_axis, x.rank(), at),
            last = normalize_axis(end_axis, x.rank(), at);
  if (first > last)
    throw make_error<ShapeError>(at, ": the start axis ", start_axis, " comes after the end axis ",
                                 end_axis);
  Shape shape;
  std::int64_t merged = 1;
  for (int a = 0; a < x.rank(); ++a) {
    if (a < first || a > last)
      shape.push_back(x.shape()[a]);
    else
      merged *= x.shape()[a];
    if (a == last) shape.push_back(merged);
  }
  return reshape(x, to_ints(shape));
}

Tensor permute(const Tensor& x, const Ints& axes) {
  require_defined("permute", x);
  const OpPlace at = where("permute");
  if (static_cast<int>(axes.size()) != x.rank())
    throw make_error<ShapeError>(at, ": ", axes.size(), " axes given for a tensor of rank ",
                                 x.rank());
  axis_mask("permute", axes, x.rank());  // refuses repeats
  PermuteAttrs attrs;
  Shape shape = x.shape();
  bool moves = false;
  for (int a = 0; a < x.rank(); ++a) {
    const int from =
        normalize_axis(static_cast<int>(axes[static_cast<std::size_t>(a)]), x.rank(), at);
    attrs.axes[a] = static_cast<std::uint8_t>(from);
    shape[a] = x.shape()[from];
    moves = moves || from != a;
  }
  return moves ? view(Op::Permute, x, shape, attrs) : x;
}

Tensor transpose(const Tensor& x, int a, int b) {
  require_defined("transpose", x);
  const int first = axis_of("transpose", a, x.rank()), second = axis_of("transpose", b, x.rank());
  if (x.rank() == 0) return x;
  Ints axes(static_cast<std::size_t>(x.rank()));
  for (std::size_t k = 0; k < axes.size(); ++k) axes[k] = static_cast<std::int64_t>(k);
  std::swap(axes[static_cast<std::size_t>(first)], axes[static_cast<std::size_t>(second)]);
  return permute(x, axes);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  const Called called("broadcast_to");
  if (x.shape() == shape) return x;
  const int extra = shape.rank() - x.rank();
  if (extra < 0)
    throw make_error<ShapeError>(where("broadcast_to"), ": ", x.shape(), " has more axes than ",
                                 shape);
  Ints padded(static_cast<std::size_t>(extra), 1);
  padded.insert(padded.end(), x.shape().begin(), x.shape().end());
  const Tensor aligned = reshape(x, padded);
  return aligned.shape() == shape ? aligned : view(Op::Expand, aligned, shape);
}

Tensor expand(const Tensor& x, const Ints& sizes) {
  const Called called("expand");
  Ints resolved = sizes;
  const int extra = static_cast<int>(sizes.size()) - x.rank();
  for (int a = 0; a < static_cast<int>(sizes.size()); ++a)
    if (sizes[static_cast<std::size_t>(a)] == -1) {
      if (a < extra)
        throw make_error<ShapeError>(where("expand"), ": -1 keeps a size, but ", x.shape(),
                                     " has none for axis ", a);
      resolved[static_cast<std::size_t>(a)] = x.shape()[a - extra];
    }
  return broadcast_to(x, to_shape(resolved));
}

Tensor squeeze(const Tensor& x, int axis) {
  require_defined("squeeze", x);
  const int a = axis_of("squeeze", axis, x.rank());
  if (x.rank() == 0 || x.shape()[a] != 1) return x;
  Ints sizes = to_ints(x.shape());
  sizes.erase(sizes.begin() + a);
  return reshape(x, sizes);
}

Tensor squeeze(const Tensor& x) {
  require_defined("squeeze", x);
  Ints sizes;
  for (const std::int64_t size : x.shape())
    if (size != 1) sizes.push_back(size);
  return reshape(x, sizes);
}

Tensor unsqueeze(const Tensor& x, int axis) {
  require_defined("unsqueeze", x);
  const int a = normalize_axis(axis, x.rank() + 1, where("unsqueeze"));
  Ints sizes = to_ints(x.shape());
  sizes.insert(sizes.begin() + a, 1);
  return reshape(x, sizes);
}

Tensor slice(const Tensor& x, int axis, std::int64_t start, std::int64_t end, std::int64_t step) {
  require_defined("slice", x);
  const int a = normalize_axis(axis, x.rank(), where("slice"));
  if (step == 0 || step == std::numeric_limits<std::int64_t>::min())
    throw make_error<ValueError>(where("slice"), ": the step is ", step);
  const std::int64_t size = x.shape()[a];
  // NumPy's clipping: nothing exists past either end; with a negative step the range may end before
  // the first element.
  const std::int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
  const auto clip = [&](std::int64_t i) { return std::clamp(i < 0 ? i + size : i, low, high); };
  const std::int64_t from = clip(start), to = clip(end);
  const std::int64_t span = step < 0 ? from - to : to - from, stride = step < 0 ? -step : step;
  const std::int64_t length = span <= 0 ? 0 : (span - 1) / stride + 1;
  if (length == size && (step == 1 || size == 0)) return x;
  Shape shape = x.shape();
  shape[a] = length;
  SliceAttrs attrs;
  std::fill_n(attrs.step, x.rank(), 1);
  attrs.start[a] = length == 0 ? 0 : from;
  attrs.step[a] = length <= 1 ? 1 : step;
  return view(Op::Slice, x, shape, attrs);
}

Tensor select(const Tensor& x, int axis, std::int64_t index) {
  require_defined("select", x);
  const int a = normalize_axis(axis, x.rank(), where("select"));
  const std::int64_t size = x.shape()[a], i = index < 0 ? index + size : index;
  if (i < 0 || i >= size)
    throw make_error<ShapeError>(where("select"), ": index ", index, " is outside axis ", axis,
                                 " of ", x.shape());
  return squeeze(slice(x, a, i, i + 1), a);
}

Tensor flip(const Tensor& x, const Axes& axes) {
  require_defined("flip", x);
  Tensor out = x;
  if (!axes.empty()) axis_mask("flip", axes, x.rank());  // refuses repeats
  if (x.rank() == 0) return x;
  for (const std::int64_t axis : axes)
    out = slice(out, static_cast<int>(axis), -1, std::numeric_limits<std::int64_t>::min(), -1);
  return out;
}

Tensor narrow(const Tensor& x, int axis, std::int64_t start, std::int64_t length) {
  require_defined("narrow", x);
  const int a = normalize_axis(axis, x.rank(), where("narrow"));
  const std::int64_t size = x.shape()[a], first = start < 0 ? start + size : start;
  if (first < 0 || length < 0 || first > size || length > size - first)
    throw make_error<ValueError>(where("narrow"), ": ", length, " elements from ", start,
                                 " reach outside axis ", axis, " of ", x.shape());
  return slice(x, a, first, first + length);
}

std::vector<Tensor> split(const Tensor& x, const Ints& sizes, int axis) {
  require_defined("split", x);
  const int a = normalize_axis(axis, x.rank(), where("split"));
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0) throw make_error<ValueError>(where("split"), ": the size of a part is ", size);
    if (size > kLargestSize - total)
      throw make_error<ShapeError>(where("split"), ": the parts add up to more than 2^59 elements");
    total += size;
  }
  if (total != x.shape()[a])
    throw make_error<ShapeError>(where("split"), ": the parts add up to ", total, ", axis ", axis,
                                 " of ", x.shape(), " has ", x.shape()[a]);
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(slice(x, a, start, start + size));
    start += size;
  }
  return parts;
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t count, int axis) {
  require_defined("chunk", x);
  if (count < 1) throw make_error<ValueError>(where("chunk"), ": into ", count, " parts");
  const std::int64_t total = x.size(normalize_axis(axis, x.rank(), where("chunk")));
  // An axis without elements yields as many parts as requested, as in PyTorch.
  constexpr std::int64_t kMostEmpty = 1 << 20;
  if (total == 0 && count > kMostEmpty)
    throw make_error<ValueError>(where("chunk"), ": axis ", axis, " of ", x.shape(), " into ",
                                 count, " parts; without elements it has at most ", kMostEmpty);
  if (total == 0) return std::vector<Tensor>(static_cast<std::size_t>(count), x);
  return split(x, (total - 1) / count + 1, axis);
}

std::vector<Tensor> unbind(const Tensor& x, int axis) {
  require_defined("unbind", x);
  const int a = normalize_axis(axis, x.rank(), where("unbind"));
  std::vector<Tensor> parts;
  for (std::int64_t k = 0; k < x.shape()[a]; ++k) parts.push_back(select(x, a, k));
  return parts;
}

std::vector<Tensor> split(const Tensor& x, std::int64_t size, int axis) {
  require_defined("split", x);
  if (size < 1) throw make_error<ValueError>(where("split"), ": the size of a part is ", size);
  const std::int64_t total = x.size(normalize_axis(axis, x.rank(), where("split")));
  std::vector<Tensor> parts;
  for (std::int64_t start = 0; start < total; start += size)
    parts.push_back(slice(x, axis, start, std::min(start + size, total)));
  if (parts.empty()) parts.push_back(x);
  return parts;
}

// ---- Inference --------------------------------------------------------------------------------

Inferred infer_reshape(const Node& node) {
  const Node& x = *node.input(0);
  if (x.shape.numel() != node.shape.numel())
    throw make_error<ShapeError>(where(node), ": ", x.shape, " has ", x.shape.numel(),
                                 " elements, ", node.shape, " has ", node.shape.numel());
  return {x.dtype, node.shape};
}

Inferred infer_permute(const Node& node) {
  const Node& x = *node.input(0);
  Shape shape = x.shape;
  const auto& axes = node.attrs.as<PermuteAttrs>().axes;
  unsigned seen = 0;
  for (int a = 0; a < x.shape.rank(); ++a) {
    const int from = axes[a];
    if (from >= x.shape.rank() || ((seen >> from) & 1u) != 0)
      throw make_error<ShapeError>(where(node), ": the axes are not a permutation of those of ",
                                   x.shape);
    seen |= 1u << from;
    shape[a] = x.shape[from];
  }
  return {x.dtype, shape};
}

Inferred infer_expand(const Node& node) {
  const Node& x = *node.input(0);
  bool fits = x.shape.rank() == node.shape.rank();
  for (int a = 0; fits && a < x.shape.rank(); ++a)
    fits = x.shape[a] == node.shape[a] || x.shape[a] == 1;
  if (!fits)
    throw make_error<ShapeError>(where(node), ": ", x.shape, " does not broadcast to ", node.shape);
  return {x.dtype, node.shape};
}

Inferred infer_slice(const Node& node) {
  const Node& x = *node.input(0);
  const auto& slice = node.attrs.as<SliceAttrs>();
  bool fits = x.shape.rank() == node.shape.rank();
  for (int a = 0; fits && a < x.shape.rank(); ++a) {
    const std::int64_t start = slice.start[a], step = slice.step[a], length = node.shape[a];
    if (step == 0) fits = false;
    if (length == 0 || !fits) continue;
    std::int64_t reach = 0, end = 0;
    fits = !__builtin_mul_overflow(length - 1, step, &reach) &&
           !__builtin_add_overflow(start, reach, &end) && start >= 0 && start < x.shape[a] &&
           end >= 0 && end < x.shape[a];
  }
  if (!fits)
    throw make_error<ShapeError>(where(node), ": the slice ", node.shape, " reaches outside ",
                                 x.shape);
  return {x.dtype, node.shape};
}

// ---- Gradients --------------------------------------------------------------------------------

Gradients vjp_reshape(const Tensor& out, const Tensor& g) {
  return {reshape(g, to_ints(out.node()->input(0)->shape))};
}

Gradients vjp_permute(const Tensor& out, const Tensor& g) {
  Ints back(static_cast<std::size_t>(g.rank()));
  const auto& axes = out.node()->attrs.as<PermuteAttrs>().axes;
  for (int a = 0; a < g.rank(); ++a) back[axes[a]] = a;
  return {permute(g, back)};
}

Gradients vjp_expand(const Tensor& out, const Tensor& g) {
  const Shape& shape = out.node()->input(0)->shape;
  Ints axes;
  for (int a = 0; a < shape.rank(); ++a)
    if (shape[a] != out.shape()[a]) axes.push_back(a);
  return {axes.empty() ? g : sum(g, axes, true)};
}

namespace {

// Puts element k of an axis at start + k * step of an axis of `size` zeros (step > 0).
Tensor spread(const Tensor& g, int axis, std::int64_t start, std::int64_t step, std::int64_t size) {
  const std::int64_t length = g.shape()[axis];
  if (length == 0) {
    Shape shape = g.shape();
    shape[axis] = size;
    return zeros(shape, g.dtype());
  }
  if (step == 1) {
    Ints margin(static_cast<std::size_t>(2 * (g.rank() - axis)), 0);
    margin[margin.size() - 2] = start;
    margin[margin.size() - 1] = size - start - length;
    return pad(g, margin);
  }
  std::int64_t outer = 1, inner = 1;
  for (int a = 0; a < axis; ++a) outer *= g.shape()[a];
  for (int a = axis + 1; a < g.rank(); ++a) inner *= g.shape()[a];
  Tensor t = pad(reshape(g, {outer, length, 1, inner}), {0, 0, 0, step - 1});
  const std::int64_t reached = std::min(length * step, size - start);
  t = slice(reshape(t, {outer, length * step, inner}), 1, 0, reached);
  t = pad(t, {0, 0, start, size - start - reached});
  Ints sizes = to_ints(g.shape());
  sizes[static_cast<std::size_t>(axis)] = size;
  return reshape(t, sizes);
}

}  // namespace

Gradients vjp_slice(const Tensor& out, const Tensor& g) {
  const Node& node = *out.node();
  const auto& taken = node.attrs.as<SliceAttrs>();
  const Shape& shape = node.input(0)->shape;
  Tensor t = g;
  for (int a = 0; a < shape.rank(); ++a) {
    std::int64_t start = taken.start[a], step = taken.step[a];
    if (step < 0) {
      t = flip(t, {a});
      start += (node.shape[a] - 1) * step;
      step = -step;
    }
    if (t.shape()[a] != shape[a]) t = spread(t, a, start, step, shape[a]);
  }
  return {t};
}

}  // namespace tenon
