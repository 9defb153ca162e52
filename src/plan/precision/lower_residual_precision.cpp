// A residual stream x' = x + f(norm(x)) crosses memory in every layer, and so does its gradient:
// each is written once and read twice, by the normalisation (or its gradient) and by the next sum.
// The summand f(…) is a product's result, already rounded (lower_product_precision.h). This pass
// stores such sums rounded too, once, after the float32 addition, as lower_activation_precision.h
// does for residual convolutional networks. Normalisations, their moments and everything computed
// from the rounded sums stay float32. Two kinds of sums qualify:
//
// * The stream: a rounded product, possibly behind a bias and dropout, plus another tensor, if row
//   sums follow from the result.
// * A sum that a product reads rounded anyway and that has other readers, if a summand depends on
//   row sums: the stream's gradient after a normalisation's gradient, or a stream that is
//   normalised after the sum. All readers then read it rounded.
//
// Assigned values and requested results, direct or through a view, keep full precision: only values
// inside a step are rounded. bfloat16 only: the largest numbers of a stream, and scaled gradients,
// may exceed float16.
#include "plan/precision/lower_residual_precision.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include <tenon/ops.h>

#include "graph/node.h"
#include "ops/table.h"
#include "plan/graph/node_users.h"
#include "plan/graph/views.h"
#include "plan/precision/lower_product_precision.h"

namespace tenon {
namespace {

constexpr int kMostAhead = 8;  // nodes between a product and a sum: reshapes, a bias, dropout
constexpr std::size_t kMostBehind = 32;  // nodes of a normalisation, or of its gradient

/// Whether the node is one number, or numbers that many elements share by broadcasting.
bool is_shared(const Node& node) {
  return !node.realised() && (node.op == Op::Constant || node.op == Op::Expand);
}

bool is_reshape(const Node& node) { return !node.realised() && node.op == Op::Reshape; }

bool is_elementwise(const Node& node) {
  return !node.realised() && kind_of(node.op) == OpKind::Elementwise;
}

bool is_rounded_product(const Node& node) {
  const Tensor rounded = before_cast(node, DType::BFloat16);
  if (!rounded.defined()) return false;
  const Node* x = rounded.node();
  while (is_reshape(*x)) x = x->input(0);
  return !x->realised() && x->op == Op::Matmul;
}

/// Whether x is computed from row sums and shared along a row: a mean, a deviation, a part of their
/// gradients.
bool is_of_row_sums(const Node& shared) {
  if (shared.realised() || shared.op != Op::Expand) return false;
  const Node* x = shared.input(0);
  for (int k = 0; k < kMostAhead && (is_elementwise(*x) || is_reshape(*x)); ++k) x = x->input(0);
  return !x->realised() && x->op == Op::Sum && is_of_rows(*x);
}

/// Whether a value shared along rows and computed from row sums is, element by element, an operand
/// of the sum.
bool is_of_a_normalisation(const Node& sum) {
  std::vector<const Node*> open{&sum};
  std::unordered_set<const Node*> seen{&sum};
  while (!open.empty() && seen.size() <= kMostBehind) {
    const Node* node = open.back();
    open.pop_back();
    for (const Node* in : node->in()) {
      if (in->shape.numel() != sum.shape.numel() || !seen.insert(in).second) continue;
      if (is_of_row_sums(*in)) return true;
      if ((is_elementwise(*in) && in->op != Op::Cast) || is_reshape(*in)) open.push_back(in);
    }
  }
  return false;
}

class Residuals {
 public:
  explicit Residuals(const Roots& roots) : order_(roots.order()), users_(order_) {
    for (const Tensor& root : roots)
      for (const Node* node = root.node();; node = node->input(0)) {
        wanted_.insert(node);
        if (!is_view(*node) && (node->realised() || node->op != Op::Cast)) break;
      }
    for (const Node* node : order_.nodes)
      if (is_large_sum(*node) && users_.of(node).size() > 1 && wanted_.count(node) == 0 &&
          !is_kept(*node) &&
          (is_stream(*node) || (is_read_rounded(*node) && is_of_a_normalisation(*node))))
        found_.insert(node);
  }

  const std::unordered_set<const Node*>& found() const { return found_; }

 private:
  static bool is_large_sum(const Node& node) {
    return !node.realised() && node.op == Op::Add && node.dtype == DType::Float32 &&
           node.shape.numel() >= kFewestRounded;
  }

  /// Whether the sum is used outside the step.
  bool is_kept(const Node& sum) const {
    const std::span<const Node* const> readers = users_.of(&sum);
    return std::any_of(readers.begin(), readers.end(),
                       [](const Node* reader) { return kind_of(reader->op) == OpKind::Effect; });
  }

  bool is_stream(const Node& sum) const {
    if (is_shared(*sum.input(0)) || is_shared(*sum.input(1))) return false;
    return (is_added(*sum.input(0)) || is_added(*sum.input(1))) && ends_in_row_sums(sum, users_);
  }

  /// Whether x is a rounded product, possibly behind a bias and dropout, with no other reader.
  bool is_added(const Node& added) const {
    const Node* x = &added;
    for (int k = 0; k < kMostAhead; ++k) {
      if (x->realised() || users_.of(x).size() != 1) return false;
      if (is_rounded_product(*x)) return true;
      const bool drops = x->op == Op::Where && is_shared(*x->input(2));  // where(kept, x, 0)
      const bool passes = x->op == Op::Reshape || drops ||
                          ((x->op == Op::Mul || x->op == Op::Add) && is_shared(*x->input(1)));
      if (!passes) return false;
      x = x->input(drops ? 1 : 0);
    }
    return false;
  }

  /// Whether a product reads the sum rounded to bfloat16.
  bool is_read_rounded(const Node& sum) const {
    const std::span<const Node* const> readers = users_.of(&sum);
    return std::any_of(readers.begin(), readers.end(), [this](const Node* reader) {
      return reader->op == Op::Cast && reader->dtype == DType::BFloat16 && is_operand(*reader, 0);
    });
  }
  bool is_operand(const Node& node, int step) const {
    const std::span<const Node* const> readers = users_.of(&node);
    return std::any_of(readers.begin(), readers.end(), [&](const Node* reader) {
      if (reader->op == Op::Matmul) return true;
      return is_view(*reader) && step < kMostAhead && is_operand(*reader, step + 1);
    });
  }

  const NumberedOrder& order_;
  NodeUsers users_;
  std::unordered_set<const Node*> wanted_, found_;
};

}  // namespace

Roots lower_residual_precision(Roots roots, const PlanOptions&) {
  const Residuals residuals(roots);
  if (residuals.found().empty()) return roots;
  return rewrite(roots, [&residuals](Node& node, std::span<const Tensor> inputs) -> Tensor {
    if (residuals.found().count(&node) != 0) {
      const Tensor sum = make_node(node.op, node.dtype, node.shape, node.attrs, inputs);
      return cast(cast(sum, DType::BFloat16), node.dtype);
    }
    // Avoids rounding twice: casting a value that was just cast to float32 yields the value before
    // that cast.
    if (node.op != Op::Cast || node.dtype != DType::BFloat16 || inputs[0].dtype() == node.dtype)
      return {};
    return before_cast(*inputs[0].node(), DType::BFloat16);
  });
}

}  // namespace tenon
