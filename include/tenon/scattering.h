// Reductions of elements with equal indices: scatter_reduce() and its relatives. Conventions,
// dtypes and errors are those of ops.h; the two tensors have one dtype, not bool. An index out of
// range is a ValueError at run time.
#pragma once

#include <optional>

#include <tenon/ops.h>

namespace tenon {

/// How elements with the same index are combined. 16-bit elements are combined in float32, and the
/// mean of integers is rounded down. Equal extremes share the gradient.
enum class ScatterReduction { Sum, Prod, Mean, Amax, Amin };

/// `base` combined with `updates` at the positions that gather() would read with `index`. Without
/// `include_self`, elements of `base` that get an update do not take part. PyTorch:
/// `torch.scatter_reduce`.
TENON_API Tensor scatter_reduce(const Tensor& base, int axis, const Tensor& index,
                                const Tensor& updates, ScatterReduction reduction,
                                bool include_self = true);
/// `base` with slice index[j] along an axis combined with slice j of `updates`. PyTorch:
/// `torch.index_reduce`.
TENON_API Tensor index_reduce(const Tensor& base, int axis, const Tensor& index,
                              const Tensor& updates, ScatterReduction reduction,
                              bool include_self = true);
/// Reduces segments of an axis, one after another, with the given lengths (integers [segments]);
/// the axis becomes [segments]. If they add up to less than the axis, a ValueError is thrown at run
/// time. An empty segment is 0, 1, NaN, -infinity or infinity, by the reduction; `initial` takes
/// part in every segment. PyTorch: `torch.segment_reduce`.
TENON_API Tensor segment_reduce(const Tensor& x, const Tensor& lengths, ScatterReduction reduction,
                                int axis = 0, std::optional<double> initial = {});

}  // namespace tenon
