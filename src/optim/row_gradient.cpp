// Reads the rows of a gradient from the graph, and sums them.
#include "optim/row_gradient.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <tenon/error.h>
#include <tenon/functional.h>

#include "base/make_error.h"
#include "graph/node.h"
#include "ops/infer.h"

namespace tenon::optim {
namespace {

RowForm form_of(const Node& node) {
  return node.op == Op::ScatterAdd ? node.attrs.as<AxisAttrs>().rows : RowForm::None;
}

// The gradients of several readers are added one after another.
std::vector<Node*> parts_of(const Tensor& grad) {
  std::vector<Node*> parts;
  Node* node = grad.node();
  for (; node->op == Op::Add && node->input_count == 2; node = node->input(0))
    parts.push_back(node->input(1));
  parts.push_back(node);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// Refuses a gradient that another operation has changed: it is not zero outside the rows, or nobody
// knows whether it is. Nearby operations on whole tables are looked at, and no others.
void require_unchanged(const Tensor& grad) {
  constexpr std::size_t kMost = 16;
  std::vector<const Node*> tables{grad.node()};
  for (std::size_t k = 0; k < tables.size() && k < kMost; ++k)
    for (const Node* in : tables[k]->in()) {
      if (in->shape != grad.shape()) continue;
      if (form_of(*in) != RowForm::None)
        throw make_error<ValueError>(
            where("optimizer"), ": the gradient ", grad.shape(),
            " of a sparse embedding went through ", op_info(tables[k]->op).name,
            ", which leaves no rows: change the loss instead, or create the embedding without "
            "`sparse`");
      tables.push_back(in);
    }
}

RowGradient rows_of(const Node& scatter) {
  if (scatter.input_count != 3)
    throw make_error<ValueError>(
        "optimizer: the gradient ", scatter.shape,
        " of a sparse embedding has been evaluated, and its rows are gone: "
        "evaluate it together with the updates");
  Node* column = scatter.input(1);
  if (column->op == Op::Expand && column->input_count == 1) column = column->input(0);
  const Tensor index(column);
  return {reshape(index, {index.numel()}), Tensor(scatter.input(2)),
          form_of(scatter) == RowForm::Summed};
}

// For each element of a sorted vector, the last position of an equal element.
Tensor last_of_equal(const Tensor& sorted) {
  const std::int64_t n = sorted.size(0);
  const Tensor ends =
      concat({ne(slice(sorted, 0, 1, n), slice(sorted, 0, 0, n - 1)), ones({1}, DType::Bool)});
  Tensor last = where(ends, arange(0, n), n);
  for (std::int64_t by = 1; by < n; by *= 2)
    last = minimum(last, pad(slice(last, 0, by, n), {0, by}, n));
  return last;
}

// The vector as an index of whole rows.
Tensor over_rows(const Tensor& index, const Shape& rows) {
  Ints column(static_cast<std::size_t>(rows.rank()), 1);
  column[0] = index.size(0);
  return broadcast_to(reshape(index, column), rows);
}

}  // namespace

std::optional<RowGradient> row_gradient(const Tensor& grad) {
  const std::vector<Node*> parts = parts_of(grad);
  std::vector<Tensor> index, rows;
  for (const Node* part : parts) {
    if (form_of(*part) == RowForm::None) continue;
    const RowGradient own = rows_of(*part);
    if (parts.size() == 1) return own;
    index.push_back(own.index);
    rows.push_back(own.rows);
  }
  if (index.empty()) {
    require_unchanged(grad);
    return std::nullopt;
  }
  if (index.size() != parts.size())
    throw make_error<ValueError>(
        where("optimizer"), ": the gradient ", grad.shape(),
        " of a sparse embedding has another part that is not zero outside the rows that were read: "
        "another operation, such as a tied output layer or a penalty, reads the weight. Create the "
        "embedding without `sparse`");
  return RowGradient{concat(index), concat(rows), false};
}

bool is_unused(const Tensor& grad) { return is_constant(grad) && constant_value(grad).is_zero(); }

RowGradient summed(const RowGradient& gradient) {
  if (gradient.is_summed || gradient.index.size(0) == 0) return gradient;
  const auto [sorted, order] = sort(gradient.index);
  const Tensor rows = index_select(gradient.rows, 0, order);
  return {sorted, index_add(zeros_like(rows), 0, last_of_equal(sorted), rows), true};
}

GradientElements::GradientElements(const Tensor& grad) : grad_(grad), rows_(row_gradient(grad)) {
  if (rows_) rows_ = summed(*rows_);
}

RowsOnly::RowsOnly(std::vector<Tensor*> tables, const Tensor& index)
    : index_(index), tables_(std::move(tables)) {
  whole_.reserve(tables_.size());
  std::vector<Tensor> rows;
  for (const Tensor* table : tables_)
    rows.push_back(table->defined() ? index_select(*table, 0, index_) : Tensor());
  for (std::size_t k = 0; k < tables_.size(); ++k)
    whole_.push_back(std::exchange(*tables_[k], std::move(rows[k])));
}

RowsOnly::~RowsOnly() {
  for (std::size_t k = 0; k < tables_.size(); ++k) *tables_[k] = whole_[k];
}

Tensor RowsOnly::assigned(const Tensor& rows, const Tensor& value) const {
  for (std::size_t k = 0; k < tables_.size(); ++k)
    if (tables_[k]->defined() && tables_[k]->node() == rows.node())
      return assign(whole_[k], scatter(whole_[k], 0, over_rows(index_, value.shape()), value));
  throw InternalError("the rule of rows assigns to another tensor");
}

Tensor GradientElements::with(const Tensor& values) const {
  if (!rows_) return is_unused(grad_) ? grad_ : values;
  return build(Op::ScatterAdd, {zeros_like(grad_), over_rows(rows_->index, values.shape()), values},
               AxisAttrs{0, RowForm::Summed});
}

}  // namespace tenon::optim
