// A layer's result x = a W + b goes through an activation function into the next product, which
// reads it rounded; the function's slope at x times the gradient is read rounded too. So nothing is
// lost in kind when x itself is rounded: it is then stored with half the bytes by the first product
// and read so by the gradient's.
//
// Both see the same rounded x. Sums, normalisations and residual streams stay float32: from there
// on values are not rounded at once.
#include "plan/narrow_arguments.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <tenon/ops.h>

#include "graph/node.h"
#include "ops/table.h"

namespace tenon {
namespace {

constexpr std::int64_t kFewestArguments = 1 << 18;
constexpr std::size_t kMostNodes = 64;  // between an argument and the casts

using Users = std::unordered_map<const Node*, std::vector<const Node*>>;

Users users_of(const Roots& roots) {
  Users users;
  for (const Node* node : topological_order(roots))
    if (!node->realised())
      for (const Node* in : node->in()) users[in].push_back(node);
  return users;
}

/// The type of the operands that a product's float32 sums, or these and a bias, come from; Float32
/// when it is something else.
DType operands_of(const Node& node) {
  const Node* x = &node;
  if (!x->realised() && x->op == Op::Add && !x->input(1)->realised() &&
      x->input(1)->op == Op::Expand)
    x = x->input(0);
  while (!x->realised() && x->op == Op::Reshape) x = x->input(0);
  if (x->realised() || x->op != Op::Matmul || x->dtype != DType::Float32) return DType::Float32;
  const DType dtype = x->input(0)->dtype;
  const bool narrow = dtype == DType::BFloat16 || dtype == DType::Float16;
  return narrow && x->input(1)->dtype == dtype ? dtype : DType::Float32;
}

/// Whether all that follows from x element by element ends in casts to `dtype`, two at least.
bool ends_narrow(const Node& x, DType dtype, const Users& users,
                 const std::unordered_set<const Node*>& wanted) {
  std::vector<const Node*> open{&x};
  std::unordered_set<const Node*> seen{&x};
  int casts = 0;
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    const auto found = users.find(node);
    if (wanted.count(node) != 0 || found == users.end()) return false;
    for (const Node* user : found->second) {
      if (!seen.insert(user).second) continue;
      if (user->op == Op::Cast && user->dtype == dtype) {
        ++casts;
        continue;
      }
      const bool goes_on = op_info(user->op).kind == OpKind::Elementwise || user->op == Op::Reshape;
      if (!goes_on || user->shape.numel() != x.shape.numel() || seen.size() > kMostNodes)
        return false;
      open.push_back(user);
    }
  }
  return casts >= 2;
}

}  // namespace

Roots narrow_arguments(Roots roots) {
  const Users users = users_of(roots);
  std::unordered_set<const Node*> wanted;
  for (const Tensor& root : roots) wanted.insert(root.node());
  return rewrite(roots, [&](Node& node, std::span<const Tensor> inputs) -> Tensor {
    if (node.op != Op::Add || node.shape.numel() < kFewestArguments) return {};
    const DType dtype = operands_of(node);
    if (dtype == DType::Float32 || !ends_narrow(node, dtype, users, wanted)) return {};
    const Tensor sum = make_node(node.op, node.dtype, node.shape, node.attrs, inputs);
    return cast(cast(sum, dtype), node.dtype);
  });
}

}  // namespace tenon
