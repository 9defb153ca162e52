// Gradients of embeddings with `sparse`: zero except in the rows that were read. Such a gradient is
// a ScatterAdd like any other, so that whoever does not know of rows computes the whole table. The
// optimizers and gradient clipping read the rows from its inputs, and no table is computed.
#pragma once

#include <optional>
#include <vector>

#include <tenon/tensor.h>

namespace tenon::optim {

struct RowGradient {
  Tensor index;  // a vector of row numbers
  Tensor rows;   // one row for each of them; rows of equal numbers are added
  // The numbers are sorted, the last of equal ones has the sum of their rows, the others are zero.
  bool is_summed = false;
};

/// The rows of a gradient; nothing for any other gradient. Throws ValueError if only a part of the
/// gradient has that form.
std::optional<RowGradient> row_gradient(const Tensor& grad);

/// Whether the loss does not depend on the parameter, so that grad() gave a constant.
bool is_unused(const Tensor& grad);

/// Sums the rows of equal numbers, in their order.
RowGradient summed(const RowGradient& gradient);

/// The elements of a gradient that may differ from zero, each once: all of them, or its rows.
class GradientElements {
 public:
  explicit GradientElements(const Tensor& grad);
  const Tensor& values() const { return rows_ ? rows_->rows : grad_; }
  /// The gradient with other values, computed from values() so that zeros stay zero.
  Tensor with(const Tensor& values) const;

 private:
  Tensor grad_;
  std::optional<RowGradient> rows_;
};

/// While it lives, tables are only their rows with these numbers.
class RowsOnly {
 public:
  /// `index` is sorted. An undefined table stays as it is.
  RowsOnly(std::vector<Tensor*> tables, const Tensor& index);
  RowsOnly(const RowsOnly&) = delete;
  RowsOnly& operator=(const RowsOnly&) = delete;
  ~RowsOnly();
  /// The assignment that replaces rows of a table by `value`. Of equal numbers, the last row
  /// counts.
  Tensor assigned(const Tensor& rows, const Tensor& value) const;

 private:
  const Tensor index_;
  const std::vector<Tensor*> tables_;
  std::vector<Tensor> whole_;
};

}  // namespace tenon::optim
