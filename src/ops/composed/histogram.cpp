// Histograms of numbers and of rows, and slopes of sampled values.
#include <utility>
#include <vector>

#include <tenon/creation.h>
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/statistics.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon {
namespace {

void require_wide_float(const char* op, const Tensor& x) {
  if (x.dtype() != DType::Float32 && x.dtype() != DType::Float64)
    throw make_error<DTypeError>(where(op), ": takes float32 and float64, not ", x.dtype(),
                                 ": cast it first");
}

// Equal intervals between the ends of a column, or between those that are given. Equal ends are
// moved apart by a half, and by 1 if there are no elements.
Tensor equal_edges(const char* op, const Tensor& column, std::int64_t bins,
                   const std::vector<std::pair<double, double>>& ranges, std::size_t k) {
  if (bins < 1) throw make_error<ValueError>(where(op), ": bins is ", bins, ", must be at least 1");
  if (!ranges.empty() && !(ranges[k].first <= ranges[k].second))
    throw make_error<ValueError>(where(op), ": the range ", ranges[k].first, " to ",
                                 ranges[k].second, " is not ascending");
  Tensor low = scalar(0, column.dtype()),
         high = scalar(column.numel() == 0 ? 1 : 0, column.dtype());
  if (!ranges.empty())
    low = scalar(ranges[k].first, column.dtype()), high = scalar(ranges[k].second, column.dtype());
  else if (column.numel() > 0)
    low = detach(amin(column)), high = detach(amax(column));
  const Tensor same = eq(low, high);
  const Tensor from = where(same, low - 0.5, low), to = where(same, high + 0.5, high);
  const Tensor part =
      cast(arange(0, bins + 1, 1, DType::Float64) / static_cast<double>(bins), column.dtype());
  // Both ends are exact.
  return where(eq(part, 1), to, from + part * (to - from));
}

Histogram histogram_of(const char* op, const Tensor& rows, std::vector<Tensor> edges,
                       const HistogramOptions& options) {
  const OpPlace at = where(op);
  const std::int64_t count = rows.size(0);
  Tensor box = zeros({count}, DType::Int64), inside = ones({count}, DType::Bool);
  Shape shape;
  std::int64_t boxes = 1;
  for (std::size_t k = 0; k < edges.size(); ++k) {
    if (edges[k].rank() != 1 || edges[k].size(0) < 2)
      throw make_error<ShapeError>(at, ": edges ", edges[k].shape(),
                                   "; they must be a vector of two numbers or more");
    const std::int64_t bins = edges[k].size(0) - 1;
    const Tensor x = select(rows, 1, static_cast<std::int64_t>(k));
    const Tensor lowest = slice(edges[k], 0, 0, 1), highest = slice(edges[k], 0, bins, bins + 1);
    inside = inside & ge(x, lowest) & le(x, highest);
    const Tensor place = searchsorted(edges[k], x, true) - 1;
    box = box * bins + minimum(maximum(place, 0), bins - 1);
    shape.push_back(bins);
    boxes = size_product(op, boxes, bins);
  }
  const Tensor each = options.weight.defined()
                          ? reshape(cast(options.weight, rows.dtype()), {count})
                          : ones({count}, rows.dtype());
  const Tensor flat =
      scatter_add(zeros({boxes}, rows.dtype()), 0, where(inside, box, 0), where(inside, each, 0));
  Tensor counts = reshape(flat, to_ints(shape));
  if (options.density) {
    counts = counts / sum(counts);
    for (std::size_t k = 0; k < edges.size(); ++k) {
      Ints column(edges.size(), 1);
      column[k] = edges[k].size(0) - 1;
      counts = counts / reshape(diff(edges[k]), column);
    }
  }
  return {counts, std::move(edges)};
}

// x as rows [count, columns].
Tensor rows_of(const char* op, const Tensor& x, std::int64_t columns,
               const HistogramOptions& options) {
  require_defined(op, x);
  require_wide_float(op, x);
  if (x.rank() < 2 || x.size(-1) != columns)
    throw make_error<ShapeError>(where(op), ": rows ", x.shape(), " and intervals of ", columns,
                                 " columns; give x [.., columns] and one entry for each column");
  const std::int64_t count = columns == 0 ? 0 : x.numel() / columns;
  if (options.weight.defined() && options.weight.numel() != count)
    throw make_error<ShapeError>(where(op), ": weights ", options.weight.shape(), " for ", count,
                                 " rows; give one for each row");
  if (!options.ranges.empty() && static_cast<std::int64_t>(options.ranges.size()) != columns)
    throw make_error<ValueError>(where(op), ": ", options.ranges.size(), " ranges for ", columns,
                                 " columns; give one for each column");
  return reshape(x, {count, columns});
}

Tensor one_column(const Tensor& x) {
  require_defined("histogram", x);
  return reshape(x, {x.numel(), 1});
}

}  // namespace

Histogram histogramdd(const Tensor& x, const Ints& bins, const HistogramOptions& options) {
  const Called called("histogramdd");
  const Tensor rows = rows_of("histogramdd", x, std::ssize(bins), options);
  std::vector<Tensor> edges;
  for (std::size_t k = 0; k < bins.size(); ++k)
    edges.push_back(equal_edges("histogramdd", select(rows, 1, static_cast<std::int64_t>(k)),
                                bins[k], options.ranges, k));
  return histogram_of("histogramdd", rows, std::move(edges), options);
}
Histogram histogramdd(const Tensor& x, TensorList edges, const HistogramOptions& options) {
  const Called called("histogramdd");
  const Tensor rows = rows_of("histogramdd", x, std::ssize(edges), options);
  return histogram_of("histogramdd", rows, {edges.begin(), edges.end()}, options);
}
Histogram histogram(const Tensor& x, std::int64_t bins, const HistogramOptions& options) {
  const Called called("histogram");
  const Tensor rows = rows_of("histogram", one_column(x), 1, options);
  return histogram_of("histogram", rows,
                      {equal_edges("histogram", select(rows, 1, 0), bins, options.ranges, 0)},
                      options);
}
Histogram histogram(const Tensor& x, const Tensor& edges, const HistogramOptions& options) {
  const Called called("histogram");
  require_defined("histogram", x, edges);
  return histogram_of("histogram", rows_of("histogram", one_column(x), 1, options), {edges},
                      options);
}

namespace {

// Differences of values y at places with the gaps h, all along axis a. The slope in between is the
// mean of the slopes on both sides, each weighted by the gap of the other.
Tensor slopes(const Tensor& y, const Tensor& h, int a, int edge_order) {
  const OpPlace at = where("gradient");
  const std::int64_t n = y.size(a);
  if (edge_order != 1 && edge_order != 2)
    throw make_error<ValueError>(at, ": the order at the ends is ", edge_order, ", must be 1 or 2");
  if (n < edge_order + 1)
    throw make_error<ShapeError>(at, ": ", n, " values on axis ", a, " of ", y.shape(),
                                 "; an order of ", edge_order, " needs ", edge_order + 1);
  const Tensor slope = diff(y, 1, a) / h;
  const auto part = [&](const Tensor& x, std::int64_t from, std::int64_t to) {
    return slice(x, a, from, to);
  };
  Tensor first = part(slope, 0, 1), last = part(slope, n - 2, n - 1);
  if (n == 2) return concat({first, last}, a);
  const Tensor before = part(slope, 0, n - 2), after = part(slope, 1, n - 1);
  const Tensor gap = broadcast_to(h, slope.shape());
  const Tensor near = part(gap, 0, n - 2), far = part(gap, 1, n - 1);
  if (edge_order == 2) {
    const auto beyond = [&](std::int64_t k, const Tensor& end, const Tensor& next,
                            const Tensor& own, const Tensor& other) {
      const Tensor g = part(own, k, k + 1);
      return end + (end - next) * g / (g + part(other, k, k + 1));
    };
    first = beyond(0, first, part(slope, 1, 2), near, far);
    last = beyond(n - 3, last, part(slope, n - 3, n - 2), far, near);
  }
  return concat({first, (before * far + after * near) / (near + far), last}, a);
}

int gradient_axis(const Tensor& y, int axis) {
  require_defined("gradient", y);
  if (y.rank() == 0)
    throw make_error<ShapeError>(where("gradient"), ": takes an axis or more, not []");
  return axis_of("gradient", axis, y.rank());
}

}  // namespace

Tensor gradient(const Tensor& y, double spacing, int axis, int edge_order) {
  const Called called("gradient");
  const int a = gradient_axis(y, axis);
  const Tensor in = to_floating(y);
  return slopes(in, scalar(spacing, in.dtype()), a, edge_order);
}

Tensor gradient(const Tensor& y, const Tensor& x, int axis, int edge_order) {
  const Called called("gradient");
  const int a = gradient_axis(y, axis);
  require_defined("gradient", x);
  if (x.rank() != 1 || x.size(0) != y.size(a))
    throw make_error<ShapeError>(where("gradient"), ": places ", x.shape(), " for values ",
                                 y.shape(), "; give a vector of ", y.size(a), " for axis ", a);
  const Tensor in = to_floating(y);
  Ints column(static_cast<std::size_t>(y.rank()), 1);
  column[static_cast<std::size_t>(a)] = x.size(0) - 1;
  return slopes(in, reshape(diff(cast(x, in.dtype())), column), a, edge_order);
}

}  // namespace tenon
