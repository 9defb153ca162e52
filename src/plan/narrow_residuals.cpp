// A residual stream x' = x + f(norm(x)) crosses memory in every layer, as its gradient does: each
// is written once and read twice, by the normalisation (or its gradient) and by the sum that
// follows. What is added each time is a product's result that is rounded (narrow_products.h). As
// the images of residual networks are (narrow_images.h), so are such sums stored rounded, once,
// behind the sum in float32; normalisations, their moments and all that is computed of the rounded
// sums stay float32:
//
// * a sum of a rounded product, behind a bias and dropout perhaps, and of another tensor, from
//   which sums of rows follow: the stream;
// * a sum that a product reads rounded anyway, with other readers: the stream's gradient, or a
//   stream that is normalised behind the sum. Everyone reads it rounded.
//
// bfloat16 only: a stream's largest numbers, and gradients that are scaled, may lie beyond float16.
#include "plan/narrow_residuals.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include <tenon/ops.h>

#include "graph/node.h"
#include "ops/table.h"
#include "plan/narrow_products.h"
#include "plan/node_users.h"

namespace tenon {
namespace {

constexpr std::int64_t kFewestRounded = 1 << 20;
constexpr int kMostSteps = 8;  // between a product and a sum: shapes, a bias, dropout

/// Whether it is one number, or numbers that many elements share.
bool is_shared(const Node& node) { return node.op == Op::Constant || node.op == Op::Expand; }

bool is_reshape(const Node& node) { return !node.realised() && node.op == Op::Reshape; }

bool is_rounded_product(const Node& node) {
  if (node.realised() || node.op != Op::Cast || node.input(0)->dtype != DType::BFloat16)
    return false;
  const Node* x = node.input(0);
  while (is_reshape(*x)) x = x->input(0);
  return !x->realised() && x->op == Op::Matmul;
}

class Residuals {
 public:
  explicit Residuals(const Roots& roots) : order_(numbered_order(roots)), users_(order_) {
    for (const Tensor& root : roots) wanted_.insert(root.node());
    for (const Node* node : order_.nodes)
      if (is_large_sum(*node) && users_.of(node).size() > 1 && wanted_.count(node) == 0 &&
          (is_stream(*node) || is_read_rounded(*node)))
        found_.insert(node);
  }

  const std::unordered_set<const Node*>& found() const { return found_; }

 private:
  static bool is_large_sum(const Node& node) {
    return !node.realised() && node.op == Op::Add && node.dtype == DType::Float32 &&
           node.shape.numel() >= kFewestRounded;
  }

  bool is_stream(const Node& sum) const {
    if (is_shared(*sum.input(0)) || is_shared(*sum.input(1))) return false;
    return (is_added(*sum.input(0)) || is_added(*sum.input(1))) && ends_in_row_sums(sum, users_);
  }

  /// Whether x is a rounded product, behind a bias and dropout at most, that nobody else reads.
  bool is_added(const Node& added) const {
    const Node* x = &added;
    for (int k = 0; k < kMostSteps; ++k) {
      if (x->realised() || users_.of(x).size() != 1) return false;
      if (is_rounded_product(*x)) return true;
      const bool passes = x->op == Op::Reshape || x->op == Op::Mul || x->op == Op::Where ||
                          (x->op == Op::Add && is_shared(*x->input(1)));
      if (!passes) return false;
      x = x->input(x->op == Op::Where ? 1 : 0);  // where(kept, x, 0)
    }
    return false;
  }

  /// Whether a product reads it rounded to bfloat16.
  bool is_read_rounded(const Node& sum) const {
    const std::vector<const Node*>& readers = users_.of(&sum);
    return std::any_of(readers.begin(), readers.end(), [this](const Node* reader) {
      return reader->op == Op::Cast && reader->dtype == DType::BFloat16 && is_operand(*reader, 0);
    });
  }
  bool is_operand(const Node& node, int step) const {
    const std::vector<const Node*>& readers = users_.of(&node);
    return std::any_of(readers.begin(), readers.end(), [&](const Node* reader) {
      if (reader->op == Op::Matmul) return true;
      const bool moves = op_info(reader->op).kind == OpKind::View;
      return moves && step < kMostSteps && is_operand(*reader, step + 1);
    });
  }

  NumberedOrder order_;
  NodeUsers users_;
  std::unordered_set<const Node*> wanted_, found_;
};

}  // namespace

Roots narrow_residuals(Roots roots) {
  const Residuals residuals(roots);
  if (residuals.found().empty()) return roots;
  return rewrite(roots, [&residuals](Node& node, std::span<const Tensor> inputs) -> Tensor {
    if (residuals.found().count(&node) != 0) {
      const Tensor sum = make_node(node.op, node.dtype, node.shape, node.attrs, inputs);
      return cast(cast(sum, DType::BFloat16), node.dtype);
    }
    // Rounded once: a cast of what was widened is what it was widened from.
    if (node.op != Op::Cast || node.dtype != DType::BFloat16 || inputs[0].dtype() == node.dtype)
      return {};
    const Node& wide = *inputs[0].node();
    const bool widened =
        !wide.realised() && wide.op == Op::Cast && wide.input(0)->dtype == DType::BFloat16;
    return widened ? Tensor(wide.input(0)) : Tensor();
  });
}

}  // namespace tenon
