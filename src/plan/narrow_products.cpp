// What a layer adds to a residual stream, and the gradient that a normalisation's takes rows' sums
// of, cross memory twice: no product can have a row's sum as its epilogue. Such a product is stored
// rounded to the type of its operands, once, from float32 sums; who reads it goes on in float32.
//
// The same serves where an activation's gradient is rounded and its columns are summed: see
// ends_in_columns().
//
// bfloat16 only: gradients that are scaled for float16 lie near the end of what it holds. Nor are
// scores, whose largest is taken off them, rounded here (wide_rows.h).
#include "plan/narrow_products.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include <tenon/ops.h>

#include "graph/attrs.h"
#include "graph/node.h"
#include "ops/table.h"

namespace tenon {
namespace {

constexpr std::size_t kMostFollowing = 64;  // between a product and the sum

bool may_be_rounded(const Node& node) {
  return !node.realised() && node.op == Op::Matmul && node.dtype == DType::Float32 &&
         node.shape.numel() >= kFewestRounded && node.input(0)->dtype == DType::BFloat16 &&
         node.input(1)->dtype == DType::BFloat16 && node.input(1)->shape.rank() == 2;
}

bool is_of_columns(const Node& node) {
  const int last = node.input(0)->shape.rank() - 1;
  return last >= 1 && node.attrs.as<ReduceAttrs>().axes == (std::int64_t{1} << last) - 1;
}
/// Whether it takes two operands that vary with all elements.
bool meets_another(const Node& node) {
  int whole = 0;
  for (const Node* in : node.in())
    if (in->op != Op::Constant && in->op != Op::Expand && in->shape.numel() == node.shape.numel())
      ++whole;
  return whole > 1;
}

/// Whether numbers that are rounded anyway follow from x and others like it element by element, and
/// sums of their columns: an activation's gradient and that of the bias before it. One sweep makes
/// both, where an epilogue that reads as much as it writes slows its product down.
bool ends_in_columns(const Node& x, const NodeUsers& users) {
  std::vector<const Node*> open{&x};
  std::unordered_set<const Node*> seen{&x};
  bool meets = false, rounds = false, sums = false;
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    // Behind the rounding nothing but sums counts: other functions of rounded numbers are others'.
    const bool rounded = node->dtype == DType::BFloat16 && node != &x;
    for (const Node* user : users.of(node)) {
      if (!seen.insert(user).second) continue;
      if (user->op == Op::Sum && is_of_columns(*user)) sums = true;
      const bool goes_on = op_info(user->op).kind == OpKind::Elementwise || user->op == Op::Reshape;
      if (!goes_on || user->shape.numel() != x.shape.numel() || seen.size() > kMostFollowing)
        continue;
      if (rounded) {
        for (const Node* next : users.of(user))
          sums = sums || (user->op == Op::Cast && next->op == Op::Sum && is_of_columns(*next));
        continue;
      }
      meets = meets || meets_another(*user);
      rounds = rounds || (user->op == Op::Cast && user->dtype == DType::BFloat16);
      open.push_back(user);
    }
  }
  return meets && rounds && sums;
}

}  // namespace

bool is_of_rows(const Node& reduction) {
  const int last = reduction.input(0)->shape.rank() - 1;
  return last >= 0 && reduction.attrs.as<ReduceAttrs>().axes == std::int64_t{1} << last;
}

Tensor before_widening(const Node& wide, DType dtype) {
  const bool widened = !wide.realised() && wide.op == Op::Cast && wide.dtype == DType::Float32;
  return widened && wide.input(0)->dtype == dtype ? Tensor(wide.input(0)) : Tensor();
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
      const bool goes_on = op_info(user->op).kind == OpKind::Elementwise || user->op == Op::Reshape;
      if (goes_on && user->shape.numel() == x.shape.numel() && user->dtype == DType::Float32 &&
          seen.size() <= kMostFollowing)
        open.push_back(user);
    }
  }
  return sums;
}

Roots narrow_products(Roots roots) {
  const NumberedOrder order = numbered_order(roots);
  std::unordered_set<const Node*> wanted, found;
  for (const Tensor& root : roots) wanted.insert(root.node());
  std::vector<const Node*> candidates;
  for (const Node* node : order.nodes)
    if (may_be_rounded(*node) && wanted.count(node) == 0) candidates.push_back(node);
  if (candidates.empty()) return roots;
  const NodeUsers users(order);
  for (const Node* node : candidates)
    if (ends_in_row_sums(*node, users) || ends_in_columns(*node, users)) found.insert(node);
  if (found.empty()) return roots;
  std::unordered_set<const Node*> wide;  // rounded numbers made wide again
  const auto widened = [&wide](const Tensor& narrow) {
    Tensor out = cast(narrow, DType::Float32);
    wide.insert(out.node());
    return out;
  };
  // Behind other shapes of the same numbers, so that they become wide where they are read.
  return rewrite(roots, [&](Node& node, std::span<const Tensor> inputs) -> Tensor {
    if (found.count(&node) != 0)
      return widened(
          make_node(Op::Matmul, inputs[0].dtype(), node.shape, ContractionAttrs{}, inputs));
    if (node.op != Op::Reshape || wide.count(inputs[0].node()) == 0) return {};
    const Tensor narrow(inputs[0].node()->input(0));
    return widened(
        make_node(Op::Reshape, narrow.dtype(), node.shape, node.attrs, std::span(&narrow, 1)));
  });
}

}  // namespace tenon
