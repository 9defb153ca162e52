// Joining, splitting and selecting parts of tensors, and statistics of several results, by
// PyTorch's names. Conventions, dtypes and errors are those of ops.h.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <tenon/ops.h>

namespace tenon {

// ---- Joining and splitting
/// Joins along the second axis; vectors along their only one.
TENON_API Tensor hstack(TensorList tensors);
/// Joins along the first axis; vectors become rows.
TENON_API Tensor vstack(TensorList tensors);
/// Joins along the third axis; vectors become [1, N, 1], matrices [M, N, 1].
TENON_API Tensor dstack(TensorList tensors);
/// Joins along the second axis; vectors become columns.
TENON_API Tensor column_stack(TensorList tensors);
/// Matrices along the diagonal of a matrix of zeros; vectors are rows.
TENON_API Tensor block_diag(TensorList tensors);
/// `count` parts along an axis; the first ones have one element more if the size is no multiple.
TENON_API std::vector<Tensor> tensor_split(const Tensor& x, std::int64_t count, int axis = 0);
/// Parts along an axis that begin at 0 and at each of the indices.
TENON_API std::vector<Tensor> tensor_split(const Tensor& x, const Ints& indices, int axis = 0);
/// All combinations of the elements of vectors, one a row.
TENON_API Tensor cartesian_prod(TensorList vectors);

/// All selections of `count` elements of a vector, one a row: [selections, count]. With
/// `with_replacement`, an element may be selected several times.
TENON_API Tensor combinations(const Tensor& x, std::int64_t count = 2,
                              bool with_replacement = false);
/// The tensors with their common broadcast shape.
TENON_API std::vector<Tensor> broadcast_tensors(TensorList tensors);

// ---- Axes
/// x with axes of size 1, so that it has at least one, two or three: a vector becomes [1, N] and
/// [1, N, 1], a matrix [M, N, 1].
/// @{
TENON_API Tensor atleast_1d(const Tensor& x);
TENON_API Tensor atleast_2d(const Tensor& x);
TENON_API Tensor atleast_3d(const Tensor& x);
/// @}
/// Moves axes to other positions; the others keep their order.
TENON_API Tensor movedim(const Tensor& x, const Ints& from, const Ints& to);
/// Rotates by `times` · 90 degrees from the first towards the second axis.
TENON_API Tensor rot90(const Tensor& x, std::int64_t times = 1, int axis_a = 0, int axis_b = 1);
/// One axis as several; one of the sizes may be -1.
TENON_API Tensor unflatten(const Tensor& x, int axis, const Ints& sizes);

// ---- Parts
/// Elements by their indices in the flattened tensor, of the shape of `index`.
TENON_API Tensor take(const Tensor& x, const Tensor& index);
/// `base` with slice j of `updates` in place of slice index[j] along an axis.
TENON_API Tensor index_copy(const Tensor& base, int axis, const Tensor& index,
                            const Tensor& updates);
/// `base` with one value in the slices index[j] along an axis.
TENON_API Tensor index_fill(const Tensor& base, int axis, const Tensor& index, Scalar value);
/// `base` with `part` in place of select(base, axis, index).
TENON_API Tensor select_scatter(const Tensor& base, const Tensor& part, int axis,
                                std::int64_t index);
/// `base` with `part` in place of slice(base, axis, start, end, step).
TENON_API Tensor slice_scatter(const Tensor& base, const Tensor& part, int axis, std::int64_t start,
                               std::int64_t end, std::int64_t step = 1);
/// `base` with `part` in place of diagonal(base, offset, axis_a, axis_b).
TENON_API Tensor diagonal_scatter(const Tensor& base, const Tensor& part, std::int64_t offset = 0,
                                  int axis_a = 0, int axis_b = 1);
/// `base` with `updates` at the indices of the flattened tensor; `index` has as many elements as
/// the updates. With `accumulate` they are added.
TENON_API Tensor put(const Tensor& base, const Tensor& index, const Tensor& updates,
                     bool accumulate = false);
/// A vector as the diagonal of a matrix; of a matrix, its diagonal.
TENON_API Tensor diag(const Tensor& x, std::int64_t offset = 0);
/// Row and column numbers of the lower triangle of a matrix, int64 [2, count].
TENON_API Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0);
/// Row and column numbers of the upper triangle of a matrix, int64 [2, count].
TENON_API Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0);

// ---- Statistics
/// Smallest and largest element along axes (all axes if none is given).
TENON_API std::pair<Tensor, Tensor> aminmax(const Tensor& x, const Axes& axes = {},
                                            bool keepdim = false);
/// Variance and mean.
TENON_API std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Axes& axes = {},
                                             bool keepdim = false, double correction = 1);
/// Standard deviation and mean.
TENON_API std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Axes& axes = {},
                                             bool keepdim = false, double correction = 1);
/// How many elements are not zero; int64.
TENON_API Tensor count_nonzero(const Tensor& x, const Axes& axes = {});
/// Sum of the elements that are not NaN.
TENON_API Tensor nansum(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// Mean of the elements that are not NaN.
TENON_API Tensor nanmean(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
/// The k-th smallest element along an axis, counted from 1, and its index.
TENON_API ValuesAndIndices kthvalue(const Tensor& x, std::int64_t k, int axis = -1,
                                    bool keepdim = false);
/// Sorted along the first axis.
TENON_API Tensor msort(const Tensor& x);
/// Covariance of variables [variables, observations], or of one variable [observations].
TENON_API Tensor cov(const Tensor& x, double correction = 1);
/// Correlation coefficients of variables [variables, observations].
TENON_API Tensor corrcoef(const Tensor& x);
/// Cumulative integral by the trapezoidal rule, for values at a distance of `dx`; the axis has one
/// element less.
TENON_API Tensor cumulative_trapezoid(const Tensor& y, double dx = 1, int axis = -1);

}  // namespace tenon
