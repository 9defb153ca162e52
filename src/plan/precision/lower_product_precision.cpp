// Some products are written to memory and read again, because a product cannot reduce whole rows in
// its epilogue. Two kinds are rounded here: the value that a layer adds to a residual stream, and
// the gradient whose row sums a normalisation's gradient needs. Such a product is rounded once from
// its float32 sums to its operand dtype and stored. Readers compute in float32.
//
// bfloat16 only: scaled float16 gradients are close to the limit of float16. Class scores, from
// which the row maximum is subtracted, are not rounded here (see pad_logit_rows.h).
#include "plan/precision/lower_product_precision.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include <tenon/ops.h>

#include "graph/attrs.h"
#include "graph/node.h"
#include "ops/table.h"

namespace tenon {
namespace {

constexpr std::size_t kMostFollowing = 64;  // nodes between a product and the sum

bool may_be_rounded(const Node& node) {
  return !node.realised() && node.op == Op::Matmul && node.dtype == DType::Float32 &&
         node.shape.numel() >= kFewestRounded && node.input(0)->dtype == DType::BFloat16 &&
         node.input(1)->dtype == DType::BFloat16 && node.input(1)->shape.rank() == 2;
}

}  // namespace

bool is_of_rows(const Node& reduction) {
  const int last = reduction.input(0)->shape.rank() - 1;
  return last >= 0 && reduction.attrs.as<ReduceAttrs>().axes == std::int64_t{1} << last;
}

Tensor before_cast(const Node& wide, DType dtype) {
  const bool upcast = !wide.realised() && wide.op == Op::Cast && wide.dtype == DType::Float32;
  return upcast && wide.input(0)->dtype == dtype ? Tensor(wide.input(0)) : Tensor();
}

bool ends_in_row_sums(const Node& x, const NodeUsers& users) {
  std::vector<const Node*> open{&x};
  std::unordered_set<const Node*> seen{&x};
  bool sums = false;
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Node* user : users.of(node)) {
      if (!seen.insert(user).second) continue;
      if (user->op == Op::Max) return false;
      if (user->op == Op::Sum && is_of_rows(*user)) sums = true;
      const bool keeps_elements =
          op_info(user->op).kind == OpKind::Elementwise || user->op == Op::Reshape;
      if (keeps_elements && user->shape.numel() == x.shape.numel() &&
          user->dtype == DType::Float32 && seen.size() <= kMostFollowing)
        open.push_back(user);
    }
  }
  return sums;
}

Roots lower_product_precision(Roots roots, const PlanOptions&) {
  const NumberedOrder& order = roots.order();
  std::unordered_set<const Node*> wanted, found;
  for (const Tensor& root : roots) wanted.insert(root.node());
  std::vector<const Node*> candidates;
  for (const Node* node : order.nodes)
    if (may_be_rounded(*node) && wanted.count(node) == 0) candidates.push_back(node);
  if (candidates.empty()) return roots;
  const NodeUsers users(order);
  for (const Node* node : candidates)
    if (ends_in_row_sums(*node, users)) found.insert(node);
  if (found.empty()) return roots;
  std::unordered_set<const Node*> wide;  // casts of rounded values to float32
  const auto upcast = [&wide](const Tensor& rounded) {
    Tensor out = cast(rounded, DType::Float32);
    wide.insert(out.node());
    return out;
  };
  // The cast to float32 is placed after reshapes, so that it fuses into the reader.
  return rewrite(roots, [&](Node& node, std::span<const Tensor> inputs) -> Tensor {
    if (found.count(&node) != 0)
      return upcast(
          make_node(Op::Matmul, inputs[0].dtype(), node.shape, ContractionAttrs{}, inputs));
    if (node.op != Op::Reshape || wide.count(inputs[0].node()) == 0) return {};
    const Tensor rounded(inputs[0].node()->input(0));
    return upcast(
        make_node(Op::Reshape, rounded.dtype(), node.shape, node.attrs, std::span(&rounded, 1)));
  });
}

}  // namespace tenon
