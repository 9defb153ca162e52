// A residual stream x' = x + f(norm(x)) crosses memory in every layer, as its gradient does: each
// is written once and read twice, by the normalisation (or its gradient) and by the sum that
// follows. What is added each time is a product's result that is rounded
// (lower_product_precision.h). As the images of residual networks are
// (lower_activation_precision.h), so are such sums stored rounded, once, behind the sum in float32;
// normalisations, their moments and all that is computed of the rounded sums stay float32:
//
// * a sum of a rounded product, behind a bias and dropout perhaps, and of another tensor, from
//   which sums of rows follow: the stream;
// * a sum that a product reads rounded anyway, with other readers, where a summand holds what rows
//   share of their sums: the stream's gradient behind a normalisation's, or a stream that is
//   normalised behind the sum. Everyone reads it rounded.
//
// What is assigned or asked for, as it is or by a view, keeps its digits: only what lives inside of
// a step is rounded. bfloat16 only: a stream's largest numbers, and gradients that are scaled, may
// lie beyond float16.
#include "plan/lower_residual_precision.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include <tenon/ops.h>

#include "graph/node.h"
#include "ops/table.h"
#include "plan/lower_product_precision.h"
#include "plan/node_users.h"
#include "plan/views.h"

namespace tenon {
namespace {

constexpr int kMostAhead = 8;            // between a product and a sum: shapes, a bias, dropout
constexpr std::size_t kMostBehind = 32;  // nodes of a normalisation, or of its gradient

/// Whether it is one number, or numbers that many elements share.
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

/// Whether x is what rows share and what is made of their sums: a mean, a deviation, a part of
/// their gradients.
bool is_of_row_sums(const Node& shared) {
  if (shared.realised() || shared.op != Op::Expand) return false;
  const Node* x = shared.input(0);
  for (int k = 0; k < kMostAhead && (is_elementwise(*x) || is_reshape(*x)); ++k) x = x->input(0);
  return !x->realised() && x->op == Op::Sum && is_of_rows(*x);
}

/// Whether what rows share of their sums is among what the sum is made of, element by element.
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

  /// Whether something outlives the step with these numbers.
  bool is_kept(const Node& sum) const {
    const std::span<const Node* const> readers = users_.of(&sum);
    return std::any_of(readers.begin(), readers.end(),
                       [](const Node* reader) { return kind_of(reader->op) == OpKind::Effect; });
  }

  bool is_stream(const Node& sum) const {
    if (is_shared(*sum.input(0)) || is_shared(*sum.input(1))) return false;
    return (is_added(*sum.input(0)) || is_added(*sum.input(1))) && ends_in_row_sums(sum, users_);
  }

  /// Whether x is a rounded product, behind a bias and dropout at most, that nobody else reads.
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

  /// Whether a product reads it rounded to bfloat16.
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

Roots lower_residual_precision(Roots roots) {
  const Residuals residuals(roots);
  if (residuals.found().empty()) return roots;
  return rewrite(roots, [&residuals](Node& node, std::span<const Tensor> inputs) -> Tensor {
    if (residuals.found().count(&node) != 0) {
      const Tensor sum = make_node(node.op, node.dtype, node.shape, node.attrs, inputs);
      return cast(cast(sum, DType::BFloat16), node.dtype);
    }
    // Rounded once: a cast of what was cast to float32 is what it was cast to float32 from.
    if (node.op != Op::Cast || node.dtype != DType::BFloat16 || inputs[0].dtype() == node.dtype)
      return {};
    return before_cast(*inputs[0].node(), DType::BFloat16);
  });
}

}  // namespace tenon
