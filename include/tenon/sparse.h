// Sparse tensors: coordinates (COO) and compressed rows (CSR), products, conversions, gradients.
//
// A SparseTensor is a handle to ordinary tensors: int64 index tensors and a vector of values. Its
// operations are composed from gathering and adding rows, so they run on every device, and
// gradients flow to the values and to dense operands, as often as one likes. PyTorch:
// `torch.sparse`. An index out of range is a ValueError at run time.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/ops.h>

namespace tenon {

class SparseTensor;
TENON_API SparseTensor mul(const SparseTensor& a, const SparseTensor& b);

/// How a SparseTensor stores its indices.
enum class SparseLayout {
  Coo,  ///< An index for each axis of each element; any number of axes, in any order.
  Csr   ///< Rows of a matrix one after another: where each row starts, and the columns.
};

/// A tensor of which only some elements are stored; the others are zero. Several stored elements at
/// the same position are added.
class TENON_API SparseTensor {
 public:
  /// Elements by their coordinates (PyTorch: torch.sparse_coo_tensor). Throws ShapeError or
  /// DTypeError if the tensors do not fit.
  ///
  /// @param indices  int64 or int32 [axes, count]
  /// @param values   floating or integral [count]
  /// @param shape    the size of each axis
  static SparseTensor coo(const Tensor& indices, const Tensor& values, const Shape& shape);
  /// A matrix by its rows (PyTorch: torch.sparse_csr_tensor). Throws ShapeError or DTypeError if
  /// the tensors do not fit; row starts that do not increase from 0 to count are a ValueError at
  /// run time.
  ///
  /// @param row_starts  int64 or int32 [rows + 1]: where each row starts, and the end
  /// @param columns     int64 or int32 [count]
  /// @param values      floating or integral [count]
  /// @param shape       {rows, columns}
  static SparseTensor csr(const Tensor& row_starts, const Tensor& columns, const Tensor& values,
                          const Shape& shape);
  /// The elements that are not zero, in row-major order (PyTorch: Tensor.to_sparse). Evaluates
  /// `dense`, because their number decides a shape.
  static SparseTensor from_dense(const Tensor& dense);

  SparseLayout layout() const { return layout_; }       ///< How indices are stored.
  const Shape& shape() const { return shape_; }         ///< Size of each axis.
  std::int64_t size(int axis) const;                    ///< Size of an axis; -1: of the last one.
  int rank() const { return shape_.rank(); }            ///< Number of axes.
  DType dtype() const { return values_.dtype(); }       ///< Data type of the values.
  std::int64_t nnz() const { return values_.size(0); }  ///< Number of stored elements.
  const Tensor& values() const { return values_; }      ///< Stored elements [nnz].
  /// Whether elements are known to be in row-major order, with different positions.
  bool is_coalesced() const { return is_coalesced_; }
  /// Coordinates of the stored elements, int64 [axes, nnz].
  Tensor indices() const;
  /// Where each row starts, and the end, int64 [rows + 1]. Throws ValueError for another layout
  /// than CSR.
  const Tensor& row_starts() const;

  /// Other values at the same positions. Throws ShapeError unless they are [nnz].
  SparseTensor with_values(const Tensor& values) const;
  /// The tensor with all its elements.
  Tensor to_dense() const;
  /// The same tensor in row-major order with one element for each position, in the same layout.
  /// Evaluates the indices unless is_coalesced(), because the number of positions decides a shape.
  SparseTensor coalesce() const;
  /// The same elements by coordinates.
  SparseTensor to_coo() const;
  /// The same elements by rows, in row-major order. Elements at the same position stay apart.
  /// Throws ShapeError unless the tensor is a matrix.
  SparseTensor to_csr() const;
  /// A matrix with rows and columns exchanged, in the same layout. Throws ShapeError otherwise.
  SparseTensor transpose() const;
  /// matmul(*this, dense).
  Tensor matmul(const Tensor& dense) const;

  /// The index of each stored element along one axis, int64 [nnz].
  const Tensor& index(int axis) const;

 private:
  SparseTensor(std::vector<Tensor> index, const Tensor& values, const Shape& shape);
  SparseTensor picked(const Tensor& order) const;
  SparseTensor in_layout_of(const SparseTensor& other) const;
  friend TENON_API SparseTensor mul(const SparseTensor& a, const SparseTensor& b);
  SparseLayout layout_ = SparseLayout::Coo;
  bool is_coalesced_ = false;
  Shape shape_;
  std::vector<Tensor> index_;  // for each axis
  Tensor values_, row_starts_;
};

/// The product of a sparse matrix [m, k] and dense [.., k, n] or [k]: [.., m, n] or [m]. Work and
/// memory grow with nnz · n. PyTorch: `torch.sparse.mm`. Throws ShapeError.
TENON_API Tensor matmul(const SparseTensor& a, const Tensor& b);
/// The product of dense [.., m, k] or [k] and a sparse matrix [k, n]. Throws ShapeError.
TENON_API Tensor matmul(const Tensor& a, const SparseTensor& b);
/// The sparse product of sparse matrices [m, k] and [k, n], with one element for each position, in
/// the layout of `a`. Work and memory grow with the number of pairs of elements whose column in `a`
/// is the row in `b`. Evaluates the indices, because the number of positions decides a shape.
/// PyTorch: `torch.sparse.mm`. Throws ShapeError.
TENON_API SparseTensor matmul(const SparseTensor& a, const SparseTensor& b);
/// The elements of both tensors, which have one shape. Elements at the same position stay apart
/// until coalesce(). The result has the layout of `a`. Throws ShapeError.
TENON_API SparseTensor add(const SparseTensor& a, const SparseTensor& b);
/// Element-wise product with a dense tensor, which broadcasts to the shape of `a`; positions that
/// are not stored stay zero. Throws ShapeError.
TENON_API SparseTensor mul(const SparseTensor& a, const Tensor& b);
/// Element-wise product of tensors of one shape: one element for each position that both store, in
/// the layout of `a`. Evaluates the indices. Throws ShapeError.
TENON_API SparseTensor mul(const SparseTensor& a, const SparseTensor& b);
/// All elements times a number.
TENON_API SparseTensor mul(const SparseTensor& a, Scalar b);
/// add(a, -b).
TENON_API SparseTensor sub(const SparseTensor& a, const SparseTensor& b);
/// The dense sum over some axes, by default over all. PyTorch: `torch.sparse.sum`, which gives a
/// sparse tensor.
TENON_API Tensor sum(const SparseTensor& x, const Ints& axes = {}, bool keepdim = false);
/// Softmax over the stored elements of each row along the last axis; positions that are not stored
/// count as -infinity. Elements at the same position are added first, see coalesce(). PyTorch:
/// `torch.sparse.softmax`. Throws DTypeError for integers.
TENON_API SparseTensor softmax(const SparseTensor& x);
/// Logarithm of softmax(). PyTorch: `torch.sparse.log_softmax`.
TENON_API SparseTensor log_softmax(const SparseTensor& x);
/// The elements of the product of a [m, k] and b [k, n] at the positions of the matrix `pattern`,
/// whose values do not matter. Work grows with nnz · k; the product is never computed. PyTorch:
/// `torch.sparse.sampled_addmm`. Throws ShapeError.
TENON_API SparseTensor sampled_matmul(const SparseTensor& pattern, const Tensor& a,
                                      const Tensor& b);

/// add().
inline SparseTensor operator+(const SparseTensor& a, const SparseTensor& b) { return add(a, b); }
/// sub().
inline SparseTensor operator-(const SparseTensor& a, const SparseTensor& b) { return sub(a, b); }
/// mul().
inline SparseTensor operator*(const SparseTensor& a, const SparseTensor& b) { return mul(a, b); }
/// mul().
inline SparseTensor operator*(const SparseTensor& a, const Tensor& b) { return mul(a, b); }
/// mul().
inline SparseTensor operator*(const SparseTensor& a, Scalar b) { return mul(a, b); }

}  // namespace tenon
