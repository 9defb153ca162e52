// Rules about the gradient of max pooling, G(x, g), which adds each g to the position of its
// window's first maximum.
//
// Both rules use the same facts: at a position that receives g, x equals the window's maximum, and
// each g is added at one position only. Values do not change, but a sum adds in another order.
#include "plan/rewrites/pool_rules.h"

#include <algorithm>

namespace tenon {
namespace {

const Node* pending(const Tensor& t, Op op) {
  const Node& node = *t.node();
  return node.op == op && !node.realised() ? &node : nullptr;
}

Tensor constant_like(const Node& constant, const Shape& shape) {
  return make_node(Op::Constant, constant.dtype, shape, constant.attrs, {});
}

// where(x <= c, 0, G(x, g)) = G(x, where(max_pool(x) <= c, 0, g)): a ReLU in front of the pooling.
Tensor mask_first(const Node& node, std::span<const Tensor> inputs) {
  const Node* below = pending(inputs[0], Op::Le);
  const Node* zero = pending(inputs[1], Op::Constant);
  const Node* grad = pending(inputs[2], Op::MaxPool2dGrad);
  if (below == nullptr || grad == nullptr || zero == nullptr ||
      !zero->attrs.as<ConstantAttrs>().value.is_zero())
    return {};
  const Tensor x(grad->input(0)), g(grad->input(1)), threshold(below->input(1));
  const Node* number = pending(threshold, Op::Constant);
  if (below->input(0) != x.node() || number == nullptr) return {};
  const Tensor pooled =
      make_node(Op::MaxPool2d, x.dtype(), g.shape(), grad->attrs, std::span(&x, 1));
  const Tensor compared[2] = {pooled, constant_like(*number, g.shape())};
  const Tensor mask = make_node(Op::Le, DType::Bool, g.shape(), below->attrs, compared);
  const Tensor chosen[3] = {mask, constant_like(*zero, g.shape()), g};
  const Tensor kept = make_node(Op::Where, node.dtype, g.shape(), node.attrs, chosen);
  const Tensor operands[2] = {x, kept};
  return make_node(Op::MaxPool2dGrad, node.dtype, node.shape, grad->attrs, operands);
}

// sum(G(x, g)) = sum(g) over whole images: a bias in front of the pooling.
Tensor sum_first(const Node& node, std::span<const Tensor> inputs) {
  constexpr std::int64_t kHeight = 1 << 2, kWidth = 1 << 3;
  const Node* grad = pending(inputs[0], Op::MaxPool2dGrad);
  const std::int64_t axes = node.attrs.as<ReduceAttrs>().axes;
  if (grad == nullptr || (axes & kHeight) == 0 || (axes & kWidth) == 0) return {};
  // A dilated window may lie entirely in the padding: its g is dropped.
  const auto& pool = grad->attrs.as<PoolAttrs>();
  if (pool.dil_h != 1 || pool.dil_w != 1) return {};
  const Tensor g(grad->input(1));
  return make_node(Op::Sum, node.dtype, node.shape, node.attrs, std::span(&g, 1));
}

}  // namespace

Roots before_pooling(Roots roots, const PlanOptions&) {
  const auto is_mask_or_sum = [](const Node& node) {
    return node.op == Op::Where || node.op == Op::Sum;
  };
  return rewrite_where(roots, is_mask_or_sum, [](Node& node, std::span<const Tensor> inputs) {
    return node.op == Op::Where ? mask_first(node, inputs) : sum_first(node, inputs);
  });
}

bool is_max_pool_grad(const Node& node) { return node.op == Op::MaxPool2dGrad && !node.realised(); }

const Op NumberedPools::kOp = Op::MaxPool2d;

void NumberedPools::add_gradient(const Node& gradient) {
  if (find(gradient) == nullptr) pools_.emplace(gradient.input(0), Pool{&gradient.attrs});
}

NumberedPools::Pool* NumberedPools::find(const Node& node) {
  const auto [first, last] = pools_.equal_range(node.input(0));
  const auto found = std::find_if(
      first, last, [&node](const auto& entry) { return *entry.second.attrs == node.attrs; });
  return found == last ? nullptr : &found->second;
}

}  // namespace tenon
