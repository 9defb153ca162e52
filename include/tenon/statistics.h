// Order statistics, counts and running statistics, composed from other operations. Conventions,
// dtypes and errors are those of ops.h. Functions with floating-point results can be
// differentiated; counts have the gradient 0.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <tenon/ops.h>

namespace tenon {

/// The median along an axis, for an even number of elements the lower of the two in the middle, and
/// its index. NaN if there is a NaN. PyTorch: `torch.median`.
TENON_API ValuesAndIndices median(const Tensor& x, int axis, bool keepdim = false);
/// The median of all elements; a tensor of rank 0. Equal elements share the gradient.
TENON_API Tensor median(const Tensor& x);

/// The median of the elements that are not NaN along an axis, and its index.
TENON_API ValuesAndIndices nanmedian(const Tensor& x, int axis, bool keepdim = false);
/// The most frequent element along an axis, the smallest of several, and its last index.
TENON_API ValuesAndIndices mode(const Tensor& x, int axis = -1, bool keepdim = false);

/// How quantile() computes a value between two elements.
enum class QuantileMode { Linear, Lower, Higher, Nearest, Midpoint };
/// Quantiles of the elements along an axis, or of all elements: 0 is the smallest element, 1 the
/// largest, 0.5 the median. `q` is a number or a vector; a vector adds an axis in front. NaN where
/// an element is NaN. Takes float32 and float64. PyTorch: `torch.quantile`.
/// @{
TENON_API Tensor quantile(const Tensor& x, double q, std::optional<int> axis = {},
                          bool keepdim = false, QuantileMode mode = QuantileMode::Linear);
TENON_API Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int> axis = {},
                          bool keepdim = false, QuantileMode mode = QuantileMode::Linear);
/// @}

/// quantile() of the elements that are not NaN; NaN if there are none. PyTorch:
/// `torch.nanquantile`.
/// @{
TENON_API Tensor nanquantile(const Tensor& x, double q, std::optional<int> axis = {},
                             bool keepdim = false, QuantileMode mode = QuantileMode::Linear);
TENON_API Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int> axis = {},
                             bool keepdim = false, QuantileMode mode = QuantileMode::Linear);
/// @}

/// How many elements are in each of `bins` equal intervals of [low, high], in the dtype of x;
/// [bins]. Elements outside, and NaN, are not counted; `high` is in the last interval. With low
/// equal to high, the range is that of the elements.
TENON_API Tensor histc(const Tensor& x, std::int64_t bins = 100, double low = 0, double high = 0);
/// How often each number occurs in a vector of integers >= 0: int64 [max(largest + 1,
/// min_length)]; with weights [n], the sum of the weights at its indices, in their dtype. Evaluates
/// `x`. Throws ValueError for a negative number.
TENON_API Tensor bincount(const Tensor& x, const Tensor& weights = {}, std::int64_t min_length = 0);
/// The index at which each value would be inserted into `sorted` (ascending): before equal
/// elements, or after them if `right` is true; int64, of the shape of `values`. `sorted` is a
/// vector, or has the axes of `values` except for the size of the last. NaN counts as the largest
/// number.
TENON_API Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);
/// searchsorted(boundaries, x, right): the number of the interval of each element.
TENON_API Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false);

/// The different elements of a tensor, ascending.
struct UniqueElements {
  Tensor values;   ///< [count]
  Tensor inverse;  ///< int64, of the shape of x: the index of each element in `values`
  Tensor counts;   ///< int64 [count]: how often each occurs
};
/// The different elements of x. Evaluates it, because their number decides a shape. NaNs are
/// never equal: each is an element of its own.
TENON_API UniqueElements unique(const Tensor& x);

/// As unique(), but only equal neighbours in row-major order are one element, and the order is that
/// of x. Evaluates it.
TENON_API UniqueElements unique_consecutive(const Tensor& x);

/// Counts in intervals and the ends of the intervals.
struct Histogram {
  Tensor counts;              ///< [intervals, one axis for each column]
  std::vector<Tensor> edges;  ///< For each column [intervals + 1].
};
/// Options of histogram() and histogramdd().
struct HistogramOptions {
  /// Lowest and highest edge of each column; by default those of the elements.
  std::vector<std::pair<double, double>> ranges = {};
  Tensor weight = {};    ///< The weight of each row instead of 1.
  bool density = false;  ///< Divide by the total and by the sizes of the intervals.
};
/// How many elements of x are in each interval; the last interval includes its upper edge. The
/// intervals are `bins` equal ones, or given by ascending edges [intervals + 1].
/// @{
TENON_API Histogram histogram(const Tensor& x, std::int64_t bins,
                              const HistogramOptions& options = {});
TENON_API Histogram histogram(const Tensor& x, const Tensor& edges,
                              const HistogramOptions& options = {});
/// @}
/// histogram() of rows x [.., columns] in boxes: `bins` or `edges` of each column.
/// @{
TENON_API Histogram histogramdd(const Tensor& x, const Ints& bins,
                                const HistogramOptions& options = {});
TENON_API Histogram histogramdd(const Tensor& x, TensorList edges,
                                const HistogramOptions& options = {});
/// @}

/// The largest element so far along an axis and the index of its last occurrence. NaN from the
/// first NaN on.
TENON_API ValuesAndIndices cummax(const Tensor& x, int axis);
/// The smallest element so far along an axis and the index of its last occurrence. NaN from the
/// first NaN on.
TENON_API ValuesAndIndices cummin(const Tensor& x, int axis);
/// log(cumsum(e^x)) along an axis, computed without overflow.
TENON_API Tensor logcumsumexp(const Tensor& x, int axis);
/// Differences of neighbours along an axis, taken `n` times; of bool, whether they differ.
TENON_API Tensor diff(const Tensor& x, std::int64_t n = 1, int axis = -1);
/// Slopes of values at a distance of `spacing` along an axis, by central differences, and at the
/// ends by differences of first or second order. PyTorch: `torch.gradient`, for one axis.
TENON_API Tensor gradient(const Tensor& y, double spacing = 1, int axis = -1, int edge_order = 1);
/// The slopes of values at the positions `x`, a vector.
TENON_API Tensor gradient(const Tensor& y, const Tensor& x, int axis = -1, int edge_order = 1);
/// Integral along an axis by the trapezoidal rule, for values at a distance of `dx`; the axis is
/// removed.
TENON_API Tensor trapezoid(const Tensor& y, double dx = 1, int axis = -1);
/// The integral for values at the positions `x`, which has the shape of `y` or is a vector.
TENON_API Tensor trapezoid(const Tensor& y, const Tensor& x, int axis = -1);

/// x / max(p-norm along an axis, eps). PyTorch: `torch.nn.functional.normalize`.
TENON_API Tensor normalize(const Tensor& x, double p = 2, int axis = 1, double eps = 1e-12);
/// Distances between the rows of a [..., P, M] and b [..., R, M] by the p-norm: [..., P, R].
TENON_API Tensor cdist(const Tensor& a, const Tensor& b, double p = 2);
/// Distances between the rows of x [P, M] by the p-norm, each pair once: [P (P - 1) / 2].
TENON_API Tensor pdist(const Tensor& x, double p = 2);

}  // namespace tenon
