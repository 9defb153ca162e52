// A layer's result x = a W + b goes through an activation function into the next product, which
// reads the function's value rounded. In the backward pass, the gradient times the function's slope
// at x is read rounded too. So rounding x itself adds no new kind of error. The first product then
// stores x in half the bytes, and the backward pass reads half the bytes.
//
// Forward and backward read the same rounded x. If sums or normalisations follow, x stays float32,
// because values computed from x are then not rounded directly.
#include "plan/precision/lower_argument_precision.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tenon/ops.h>

#include "graph/node.h"
#include "ops/table.h"
#include "plan/graph/node_users.h"

namespace tenon {
namespace {

constexpr std::int64_t kFewestArguments = 1 << 18;
constexpr std::size_t kMostNodes = 64;  // nodes between an argument and the casts

/// The operand dtype of a product if the node is the product's float32 result, or that result plus
/// a bias; Float32 otherwise.
DType operands_of(const Node& node) {
  const Node* x = &node;
  if (!x->realised() && x->op == Op::Add && !x->input(1)->realised() &&
      x->input(1)->op == Op::Expand)
    x = x->input(0);
  while (!x->realised() && x->op == Op::Reshape) x = x->input(0);
  if (x->realised() || x->op != Op::Matmul || x->dtype != DType::Float32) return DType::Float32;
  const DType dtype = x->input(0)->dtype;
  const bool is_16_bit = dtype == DType::BFloat16 || dtype == DType::Float16;
  return is_16_bit && x->input(1)->dtype == dtype ? dtype : DType::Float32;
}

/// Whether everything computed from x element by element ends in casts to `dtype`, at least two of
/// them.
bool ends_in_16_bits(const Node& x, DType dtype, const NodeUsers& users,
                     const std::unordered_set<const Node*>& wanted) {
  std::vector<const Node*> open{&x};
  std::unordered_set<const Node*> seen{&x};
  int casts = 0;
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (wanted.count(node) != 0) return false;
    for (const Node* user : users.of(node)) {
      if (!seen.insert(user).second) continue;
      if (user->op == Op::Cast && user->dtype == dtype) {
        ++casts;
        continue;
      }
      const bool keeps_elements =
          op_info(user->op).kind == OpKind::Elementwise || user->op == Op::Reshape;
      if (!keeps_elements || user->shape.numel() != x.shape.numel() || seen.size() > kMostNodes)
        return false;
      open.push_back(user);
    }
  }
  return casts >= 2;
}

}  // namespace

Roots lower_argument_precision(Roots roots, const PlanOptions&) {
  const NumberedOrder& order = roots.order();
  std::vector<std::pair<const Node*, DType>> candidates;
  for (const Node* node : order.nodes)
    if (!node->realised() && node->op == Op::Add && node->shape.numel() >= kFewestArguments)
      if (const DType dtype = operands_of(*node); dtype != DType::Float32)
        candidates.emplace_back(node, dtype);
  if (candidates.empty()) return roots;
  const NodeUsers users(order);
  std::unordered_set<const Node*> wanted;
  for (const Tensor& root : roots) wanted.insert(root.node());
  std::unordered_map<const Node*, DType> found;
  for (const auto& [node, dtype] : candidates)
    if (ends_in_16_bits(*node, dtype, users, wanted)) found.emplace(node, dtype);
  if (found.empty()) return roots;
  return rewrite(roots, [&found](Node& node, std::span<const Tensor> inputs) -> Tensor {
    const auto argument = found.find(&node);
    if (argument == found.end()) return {};
    const Tensor sum = make_node(node.op, node.dtype, node.shape, node.attrs, inputs);
    return cast(cast(sum, argument->second), node.dtype);
  });
}

}  // namespace tenon
