// Diagonals, windows of images, borders and selections: elements are read at computed places.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/rearrange.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon {
namespace {

// The places of a window's elements along one axis, for the window's element k and position o at
// [k * positions + o].
Tensor places(std::int64_t kernel, std::int64_t dilation, std::int64_t positions,
              std::int64_t stride) {
  return flatten(unsqueeze(arange(0, kernel) * dilation, 1) + arange(0, positions) * stride);
}

struct Windows {
  std::int64_t rows, columns;  // of positions
  std::int64_t padded_height, padded_width;
};

Windows windows_of(const char* op, std::int64_t height, std::int64_t width,
                   const WindowOptions& o) {
  const auto count = [&](std::int64_t size, std::int64_t kernel, std::int64_t dilation,
                         std::int64_t stride, std::int64_t padding) {
    if (kernel < 1 || dilation < 1 || stride < 1 || padding < 0 || kernel > kLargestSize ||
        dilation > kLargestSize / kernel || stride > kLargestSize || padding > kLargestSize)
      throw make_error<ValueError>(where(op), ": kernel ", kernel, ", dilation ", dilation,
                                   ", stride ", stride, ", padding ", padding,
                                   "; the first three must be positive");
    const std::int64_t room = size + 2 * padding - (dilation * (kernel - 1) + 1);
    if (room < 0)
      throw make_error<ShapeError>(where(op), ": a window of ", dilation * (kernel - 1) + 1,
                                   " elements does not fit ", size, " elements with a padding of ",
                                   padding);
    return room / stride + 1;
  };
  return {count(height, o.kernel.h, o.dilation.h, o.stride.h, o.padding.h),
          count(width, o.kernel.w, o.dilation.w, o.stride.w, o.padding.w), height + 2 * o.padding.h,
          width + 2 * o.padding.w};
}

}  // namespace

Tensor diagonal(const Tensor& x, std::int64_t offset, int axis_a, int axis_b) {
  const Called called("diagonal");
  require_defined("diagonal", x);
  if (x.rank() < 2)
    throw make_error<ShapeError>(where("diagonal"), ": takes two axes or more, not ", x.shape());
  const int a = axis_of("diagonal", axis_a, x.rank()), b = axis_of("diagonal", axis_b, x.rank());
  if (a == b) throw make_error<ValueError>(where("diagonal"), ": axis ", a, " is given twice");
  Ints order, sizes;
  for (int k = 0; k < x.rank(); ++k)
    if (k != a && k != b) order.push_back(k), sizes.push_back(x.size(k));
  order.insert(order.end(), {a, b});
  const std::int64_t rows = x.size(a), columns = x.size(b),
                     row = std::max<std::int64_t>(-offset, 0),
                     column = std::max<std::int64_t>(offset, 0),
                     count = std::max<std::int64_t>(std::min(rows - row, columns - column), 0);
  sizes.push_back(rows * columns);
  return index_select(reshape(permute(x, order), sizes), static_cast<int>(sizes.size()) - 1,
                      arange(0, count) * (columns + 1) + (row * columns + column));
}

Tensor diag_embed(const Tensor& x, std::int64_t offset) {
  const Called called("diag_embed");
  require_defined("diag_embed", x);
  if (x.rank() < 1)
    throw make_error<ShapeError>(where("diag_embed"), ": takes an axis or more, not []");
  const std::int64_t n = x.size(-1) + std::abs(offset);
  const Tensor padded =
      pad(x, {std::max<std::int64_t>(offset, 0), std::max<std::int64_t>(-offset, 0)});
  const Tensor on = eq(unsqueeze(arange(0, n), 1) + offset, arange(0, n));
  return where(on, unsqueeze(padded, -2), constant({}, 0, x.dtype()));
}

Tensor trace(const Tensor& x) {
  const Called called("trace");
  require_defined("trace", x);
  if (x.rank() != 2)
    throw make_error<ShapeError>(where("trace"), ": takes a matrix, not ", x.shape());
  return sum(diagonal(x));
}

namespace {

constexpr std::int64_t kFewSlices = 32;  // of a window's width

// The columns of each of a window's elements: x [N, C, H, W] as [N, C, kw, H, columns].
Tensor window_columns(const Tensor& x, const WindowOptions& o, std::int64_t columns) {
  const std::int64_t width = o.kernel.w, n = x.size(0), c = x.size(1), h = x.size(2);
  if (width > kFewSlices) {
    const Tensor all = index_select(x, 3, places(width, o.dilation.w, columns, o.stride.w));
    return permute(reshape(all, {n, c, h, width, columns}), {0, 1, 3, 2, 4});
  }
  std::vector<Tensor> parts;
  for (std::int64_t k = 0; k < width; ++k) {
    const std::int64_t first = k * o.dilation.w;
    parts.push_back(slice(x, 3, first, first + (columns - 1) * o.stride.w + 1, o.stride.w));
  }
  return stack(parts, 2);
}

// Adds the columns of each of a window's elements at their places: the reverse of window_columns().
Tensor sum_of_columns(const Tensor& x, const WindowOptions& o, std::int64_t padded) {
  const std::int64_t width = o.kernel.w, n = x.size(0), c = x.size(1), h = x.size(3),
                     columns = x.size(4);
  if (width > kFewSlices || o.stride.w > 1) {
    const Tensor all = reshape(permute(x, {0, 1, 3, 2, 4}), {n, c, h, width * columns});
    return index_add(zeros({n, c, h, padded}, x.dtype()), 3,
                     places(width, o.dilation.w, columns, o.stride.w), all);
  }
  Tensor sum;
  for (std::int64_t k = 0; k < width; ++k) {
    const std::int64_t first = k * o.dilation.w;
    const Tensor part = pad(select(x, 2, k), {first, padded - first - columns});
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

}  // namespace

// Columns are selected first, then whole rows of them.
Tensor unfold(const Tensor& x, const WindowOptions& o) {
  const Called called("unfold");
  require_defined("unfold", x);
  if (x.rank() == 3) return squeeze(unfold(unsqueeze(x, 0), o), 0);
  if (x.rank() != 4)
    throw make_error<ShapeError>(where("unfold"), ": takes [N, C, H, W] or [C, H, W], not ",
                                 x.shape());
  const Windows w = windows_of("unfold", x.size(2), x.size(3), o);
  (void)size_product("unfold", size_product("unfold", o.kernel.h, o.kernel.w),
                     size_product("unfold", w.rows, w.columns));
  const Tensor padded = pad(x, {o.padding.w, o.padding.w, o.padding.h, o.padding.h});
  const Tensor all = index_select(window_columns(padded, o, w.columns), 3,
                                  places(o.kernel.h, o.dilation.h, w.rows, o.stride.h));
  const std::int64_t n = x.size(0), c = x.size(1);
  return reshape(
      permute(reshape(all, {n, c, o.kernel.w, o.kernel.h, w.rows, w.columns}), {0, 1, 3, 2, 4, 5}),
      {n, c * o.kernel.h * o.kernel.w, w.rows * w.columns});
}

Tensor fold(const Tensor& x, Pair output, const WindowOptions& o) {
  const Called called("fold");
  require_defined("fold", x);
  if (x.rank() == 2) return squeeze(fold(unsqueeze(x, 0), output, o), 0);
  if (output.h < 1 || output.w < 1)
    throw make_error<ValueError>(where("fold"), ": an output of ", output.h, " x ", output.w);
  const Windows w = windows_of("fold", output.h, output.w, o);
  const std::int64_t window = size_product("fold", o.kernel.h, o.kernel.w),
                     windows = size_product("fold", w.rows, w.columns);
  if (x.rank() != 3 || x.size(1) % window != 0 || x.size(2) != windows)
    throw make_error<ShapeError>(where("fold"), ": columns ", x.shape(), "; for an output of ",
                                 output.h, " x ", output.w, " they must be [N, C · ", window, ", ",
                                 windows, "]");
  const std::int64_t n = x.size(0), c = x.size(1) / window;
  const Tensor all = reshape(
      permute(reshape(x, {n, c, o.kernel.h, o.kernel.w, w.rows, w.columns}), {0, 1, 3, 2, 4, 5}),
      {n, c, o.kernel.w, o.kernel.h * w.rows, w.columns});
  const Tensor columns = index_add(zeros({n, c, o.kernel.w, w.padded_height, w.columns}, x.dtype()),
                                   3, places(o.kernel.h, o.dilation.h, w.rows, o.stride.h), all);
  const Tensor padded = sum_of_columns(columns, o, w.padded_width);
  return narrow(narrow(padded, 2, o.padding.h, output.h), 3, o.padding.w, output.w);
}

namespace {

// x with padding before and after it, at most as much as one repetition of the mode provides.
Tensor with_ends(const Tensor& x, int axis, std::int64_t before, std::int64_t behind,
                 PadMode mode) {
  const std::int64_t n = x.size(axis);
  const auto end = [&](std::int64_t count, bool front) {
    switch (mode) {
      case PadMode::Reflect:
        return flip(narrow(x, axis, front ? 1 : n - 1 - count, count), {axis});
      case PadMode::Circular:
        return narrow(x, axis, front ? n - count : 0, count);
      default: {
        Ints sizes = to_ints(x.shape());
        sizes[static_cast<std::size_t>(axis)] = count;
        return expand(narrow(x, axis, front ? 0 : n - 1, 1), sizes);
      }
    }
  };
  std::vector<Tensor> parts;
  if (before > 0) parts.push_back(end(before, true));
  parts.push_back(x);
  if (behind > 0) parts.push_back(end(behind, false));
  return concat(parts, axis);
}

}  // namespace

Tensor pad(const Tensor& x, const Ints& padding, PadMode mode) {
  const Called called("pad");
  const OpPlace at = where("pad");
  require_defined("pad", x);
  if (padding.size() % 2 != 0 || padding.size() / 2 > static_cast<std::size_t>(x.rank()))
    throw make_error<ValueError>(at, ": ", padding.size(), " sizes for ", x.shape(),
                                 ": give two for each axis, from the last on");
  Tensor out = x;
  for (std::size_t k = 0; 2 * k < padding.size(); ++k) {
    const int axis = x.rank() - 1 - static_cast<int>(k);
    const std::int64_t n = x.size(axis), before = padding[2 * k], behind = padding[2 * k + 1],
                       most = mode == PadMode::Reflect    ? n - 1
                              : mode == PadMode::Circular ? n
                                                          : kLargestSize;
    if (before == 0 && behind == 0) continue;
    if (before > most || behind > most || n == 0 || before < -kLargestSize ||
        behind < -kLargestSize || n + before + behind < 0)
      throw make_error<ShapeError>(
          at, ": axis ", axis, " of ", x.shape(), " cannot be padded by ", before, " and ", behind,
          n == 0 ? std::string(": it has no elements")
          : before > most || behind > most
              ? cat(": it has ", n, ", and at most ", most, " can be added on a side")
              : cat(": it has ", n));
    if (before >= 0 && behind >= 0) {
      out = with_ends(out, axis, before, behind, mode);
      continue;
    }
    Tensor place = arange(-before, n + behind);
    if (mode == PadMode::Circular) {  // repeats only the elements that are not cropped
      const std::int64_t cut = std::max<std::int64_t>(-before, 0),
                         left = n - cut - std::max<std::int64_t>(-behind, 0);
      place = remainder(place - cut, std::max<std::int64_t>(left, 1)) + cut;
    }
    if (mode == PadMode::Replicate) place = clamp(place, 0, n - 1);
    if (mode == PadMode::Reflect) place = (n - 1) - abs((n - 1) - abs(place));
    out = index_select(out, axis, place);
  }
  return out;
}

namespace {

// [.., channels, H, W] as [N, channels, H, W], and the sizes in front of the last three.
Tensor as_images(const char* op, const Tensor& x, std::int64_t factor, Ints& front) {
  require_defined(op, x);
  if (x.rank() < 3)
    throw make_error<ShapeError>(where(op), ": takes [.., C, H, W], not ", x.shape());
  if (factor < 1) throw make_error<ValueError>(where(op), ": the factor is ", factor);
  for (int k = 0; k < x.rank() - 3; ++k) front.push_back(x.size(k));
  std::int64_t images = 1;
  for (const std::int64_t size : front) images *= size;
  return reshape(x, {images, x.size(-3), x.size(-2), x.size(-1)});
}

Tensor in_front(const Tensor& x, Ints front, const Ints& sizes) {
  front.insert(front.end(), sizes.begin(), sizes.end());
  return reshape(x, front);
}

}  // namespace

Tensor pixel_shuffle(const Tensor& x, std::int64_t factor) {
  const Called called("pixel_shuffle");
  Ints front;
  const Tensor in = as_images("pixel_shuffle", x, factor, front);
  const std::int64_t n = in.size(0), h = in.size(2), w = in.size(3), r = factor;
  if (r > 65536 || in.size(1) % (r * r) != 0)
    throw make_error<ShapeError>(where("pixel_shuffle"), ": ", x.shape(), " with a factor of ", r,
                                 ": the channels must be a multiple of its square");
  const std::int64_t c = in.size(1) / (r * r);
  return in_front(permute(reshape(in, {n, c, r, r, h, w}), {0, 1, 4, 2, 5, 3}), front,
                  {c, h * r, w * r});
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor) {
  const Called called("pixel_unshuffle");
  Ints front;
  const Tensor in = as_images("pixel_unshuffle", x, factor, front);
  const std::int64_t n = in.size(0), c = in.size(1), r = factor;
  if (in.size(2) % r != 0 || in.size(3) % r != 0)
    throw make_error<ShapeError>(where("pixel_unshuffle"), ": ", x.shape(), " with a factor of ", r,
                                 ": height and width must be multiples of it");
  const std::int64_t h = in.size(2) / r, w = in.size(3) / r;
  return in_front(permute(reshape(in, {n, c, h, r, w, r}), {0, 1, 3, 5, 2, 4}), front,
                  {c * r * r, h, w});
}

Tensor channel_shuffle(const Tensor& x, std::int64_t groups) {
  const Called called("channel_shuffle");
  require_defined("channel_shuffle", x);
  if (x.rank() < 2 || groups < 1 || x.size(1) % groups != 0)
    throw make_error<ShapeError>(where("channel_shuffle"), ": ", groups, " groups of ", x.shape(),
                                 "; it must be [N, C, …] with a multiple of the groups for C");
  std::int64_t inner = 1;
  for (int k = 2; k < x.rank(); ++k) inner *= x.size(k);
  const Tensor grouped = reshape(x, {x.size(0), groups, x.size(1) / groups, inner});
  return reshape(transpose(grouped, 1, 2), to_ints(x.shape()));
}

namespace {

void require_mask(const char* op, const Tensor& mask) {
  if (!is_bool(mask.dtype()))
    throw make_error<DTypeError>(where(op), ": the mask is ", mask.dtype(), ", not bool");
}

}  // namespace

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  const Called called("masked_select");
  require_defined("masked_select", x, mask);
  require_mask("masked_select", mask);
  const Shape shape = broadcast_shapes(x.shape(), mask.shape(), where("masked_select"));
  compute_once(x);  // the mask, which is evaluated, often depends on it
  return reshape(broadcast_to(x, shape), {shape.numel()})
      .index({reshape(broadcast_to(mask, shape), {shape.numel()})});
}

// The n-th one of the mask takes element n - 1 of the source.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  const Called called("masked_scatter");
  require_defined("masked_scatter", x, mask, source);
  require_mask("masked_scatter", mask);
  if (source.dtype() != x.dtype())
    throw make_error<DTypeError>(where("masked_scatter"), ": elements of ", source.dtype(), " for ",
                                 x.dtype(), ": cast them first");
  if (source.numel() == 0 && x.numel() > 0)
    throw make_error<ShapeError>(where("masked_scatter"), ": the source ", source.shape(),
                                 " has no elements");
  const Tensor ones = reshape(broadcast_to(mask, x.shape()), {x.numel()});
  const Tensor number = where(ones, cumsum(ones, 0) - 1, 0);
  const Tensor taken = index_select(reshape(source, {source.numel()}), 0, number);
  return reshape(where(ones, taken, reshape(x, {x.numel()})), to_ints(x.shape()));
}

std::vector<Tensor> unravel_index(const Tensor& index, const Shape& shape) {
  const Called called("unravel_index");
  require_defined("unravel_index", index);
  if (is_floating(index.dtype()) || is_bool(index.dtype()))
    throw make_error<DTypeError>(where("unravel_index"), ": the index is ", index.dtype(),
                                 ", must be of integers");
  const Tensor number = cast(index, DType::Int64);
  std::vector<Tensor> columns;
  std::int64_t inner = shape.numel();
  for (int k = 0; k < shape.rank(); ++k) {
    const std::int64_t size = std::max<std::int64_t>(shape[k], 1);
    inner = inner / size;
    columns.push_back(remainder(floor_divide(number, std::max<std::int64_t>(inner, 1)), size));
  }
  return columns;
}

Tensor nonzero(const Tensor& x) {
  const Called called("nonzero");
  require_defined("nonzero", x);
  const Tensor mask = cast(x, DType::Bool);
  const bool* ones = mask.data_as<bool>();
  const std::int64_t rank = x.rank(), row = rank == 0 ? 1 : x.size(-1),
                     rows = x.numel() == 0 ? 0 : x.numel() / row;
  const std::int64_t count = std::count(ones, ones + x.numel(), true);
  // One more than needed: the next element is written ahead, whether it counts or not.
  Ints places(static_cast<std::size_t>((count + 1) * rank));
  std::int64_t* at = places.data();
  Ints outer(static_cast<std::size_t>(rank), 0);
  for (std::int64_t r = 0; r < rows && rank > 0; ++r) {
    for (std::int64_t j = 0; j < row; ++j) {
      std::copy_n(outer.data(), rank - 1, at);
      at[rank - 1] = j;
      at += ones[r * row + j] ? rank : 0;
    }
    for (std::int64_t d = rank - 2; d >= 0; --d) {  // the next row
      std::int64_t& place = outer[static_cast<std::size_t>(d)];
      if (++place < x.size(static_cast<int>(d))) break;
      place = 0;
    }
  }
  places.resize(static_cast<std::size_t>(count * rank));
  return to(Tensor::from(places, {count, rank}), x.device());
}

Tensor nonzero_static(const Tensor& x, std::int64_t count, std::int64_t fill) {
  const Called called("nonzero_static");
  require_defined("nonzero_static", x);
  if (count < 0)
    throw make_error<ValueError>(where("nonzero_static"), ": the count is ", count,
                                 ", must be at least 0");
  const std::int64_t n = x.numel();
  if (x.rank() == 0 || n == 0) return full({count, x.rank()}, fill, DType::Int64);
  const Tensor mask = reshape(cast(x, DType::Bool), {n});
  // Elements that are 0, and those after the last row, are written behind the rows.
  const Tensor row = where(mask, minimum(cumsum(mask, 0) - 1, count), count);
  const Tensor flat =
      slice(scatter(zeros({count + 1}, DType::Int64), 0, row, arange(0, n)), 0, 0, count);
  const Tensor found = lt(arange(0, count), sum(mask));
  return where(unsqueeze(found, 1), stack(unravel_index(flat, x.shape()), 1), fill);
}

Tensor unfold(const Tensor& x, int axis, std::int64_t size, std::int64_t step) {
  const Called called("unfold");
  const OpPlace at = where("unfold");
  require_defined("unfold", x);
  if (x.rank() == 0) return squeeze(unfold(reshape(x, {1}), axis, size, step), 0);
  const int a = normalize_axis(axis, x.rank(), at);
  if (size < 0 || size > x.size(a) || step < 1)
    throw make_error<ValueError>(at, ": windows of ", size, " at a distance of ", step, " on axis ",
                                 axis, " of ", x.shape(),
                                 "; they must fit into the axis, at a distance of at least 1");
  const std::int64_t count = (x.size(a) - size) / step + 1;
  const Tensor index = unsqueeze(arange(0, count) * step, 1) + arange(0, size);
  Ints sizes = to_ints(x.shape());
  sizes[static_cast<std::size_t>(a)] = count;
  sizes.insert(sizes.begin() + a + 1, size);
  const Tensor read = reshape(index_select(x, a, reshape(index, {count * size})), sizes);
  Ints order;
  for (int d = 0; d < read.rank(); ++d)
    if (d != a + 1) order.push_back(d);
  order.push_back(a + 1);
  return permute(read, order);
}

}  // namespace tenon
