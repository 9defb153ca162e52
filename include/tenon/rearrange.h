// Products over named axes, windows, borders and selections, composed from other operations.
// Conventions, dtypes and errors are those of ops.h. Floating-point results can be differentiated
// more than once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <tenon/ops.h>

namespace tenon {

// ---- Products
/// Einstein summation: `einsum("bij,bjk->bik", {a, b})` multiplies the tensors along axes with
/// equal letters and sums over letters that the result lacks. Without "->", the result has the
/// letters that occur once, in alphabetical order. "..." stands for axes that broadcast; a letter
/// twice in one operand takes a diagonal. Operands are multiplied from left to right. The dtype is
/// that of a product; a single operand that is summed has the dtype of sum(). Throws ValueError for
/// an equation that cannot be read and ShapeError for sizes that do not fit.
TENON_API Tensor einsum(std::string_view equation, TensorList operands);
/// Product over the last `axes` axes of `a` and the first `axes` axes of `b`.
TENON_API Tensor tensordot(const Tensor& a, const Tensor& b, int axes = 2);
/// Product over the given axes of `a`, each with the axis of `b` at the same index of its list.
TENON_API Tensor tensordot(const Tensor& a, const Tensor& b, const Ints& axes_a,
                           const Ints& axes_b);
/// Outer product of two vectors, [rows, columns].
TENON_API Tensor outer(const Tensor& a, const Tensor& b);
/// Kronecker product; at most four axes.
TENON_API Tensor kron(const Tensor& a, const Tensor& b);

/// Sum of the products along an axis; the other axes broadcast. PyTorch: `torch.linalg.vecdot`.
TENON_API Tensor vecdot(const Tensor& a, const Tensor& b, int axis = -1);
/// Product of two or more matrices, in the order that needs the fewest multiplications. The first
/// one may be a row, the last one a column, given as vectors. PyTorch: `torch.linalg.multi_dot`.
TENON_API Tensor multi_dot(TensorList matrices);
/// The powers 0 to count - 1 of the elements: [..] to [.., count], by default square. PyTorch:
/// `torch.linalg.vander`.
TENON_API Tensor vander(const Tensor& x, std::optional<std::int64_t> count = {});

// ---- Norms
/// x with the slices along an axis whose p-norm is above `most` scaled down to it.
TENON_API Tensor renorm(const Tensor& x, double p, int axis, double most);

// ---- Diagonals
/// The elements x[i][i + offset] of two axes, as the last axis of the result.
TENON_API Tensor diagonal(const Tensor& x, std::int64_t offset = 0, int axis_a = 0, int axis_b = 1);
/// The vectors along the last axis as diagonals of square matrices, in the last two axes.
TENON_API Tensor diag_embed(const Tensor& x, std::int64_t offset = 0);
/// The sum of the diagonal of a matrix.
TENON_API Tensor trace(const Tensor& x);

// ---- Windows and borders
/// Options of unfold() and fold(): PyTorch's, each for height and width.
struct WindowOptions {
  Pair kernel;        ///< size of the window
  Pair dilation = 1;  ///< distance of the window's elements
  Pair padding = 0;   ///< zeros added on each side
  Pair stride = 1;    ///< step of the window
};
/// The windows of images [N, C, H, W] as columns, [N, C · kernel, windows] (im2col).
TENON_API Tensor unfold(const Tensor& x, const WindowOptions& options);
/// Sums the columns [N, C · kernel, windows] at the positions that unfold() read in images of
/// `output` pixels: [N, C, H, W] (col2im).
TENON_API Tensor fold(const Tensor& x, Pair output, const WindowOptions& options);

/// Windows of `size` elements of an axis at a distance of `step`; the elements of a window are the
/// last axis of the result. PyTorch: `Tensor.unfold`.
TENON_API Tensor unfold(const Tensor& x, int axis, std::int64_t size, std::int64_t step);

/// Pads as `pad(x, padding, value)` does (the last axis first, a pair of sizes for each), with
/// elements of x. Negative sizes cut off. Throws ShapeError if an axis has too few elements:
/// reflection needs one more than it adds on a side, Circular as many.
TENON_API Tensor pad(const Tensor& x, const Ints& padding, PadMode mode);

/// [.., C · r², H, W] to [.., C, H · r, W · r] (Shi et al., 2016).
TENON_API Tensor pixel_shuffle(const Tensor& x, std::int64_t factor);
/// The inverse of pixel_shuffle().
TENON_API Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor);
/// Interleaves `groups` groups of the channels of [N, C, …] (Zhang et al., 2018).
TENON_API Tensor channel_shuffle(const Tensor& x, std::int64_t groups);

// ---- Selections
/// The elements of x at the ones of a mask (bool; both broadcast), as a vector. Evaluates the mask,
/// because it decides a shape.
TENON_API Tensor masked_select(const Tensor& x, const Tensor& mask);
/// x with the elements at the ones of a mask (bool, broadcasts to x) replaced by the elements of
/// `source`, in order. Throws ValueError when it is evaluated if there are too few of them.
TENON_API Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
/// The indices of the elements that are not zero, int64 [count, axes], in row-major order.
/// Evaluates x, because their number decides a shape.
TENON_API Tensor nonzero(const Tensor& x);
/// The first `count` rows of nonzero(), followed by rows of `fill`; its shape does not depend on
/// the values, so x is not evaluated. PyTorch: `torch.nonzero_static`.
TENON_API Tensor nonzero_static(const Tensor& x, std::int64_t count, std::int64_t fill = -1);
/// The index along each axis of a shape, for indices into the flattened tensor.
TENON_API std::vector<Tensor> unravel_index(const Tensor& index, const Shape& shape);

}  // namespace tenon
