// Matrix products and convolutions over a batch. If one operand is the same for all samples, the
// batch joins an axis of the other operand, so that one product serves all samples. Otherwise the
// batch is an axis of batches (matmul) or joins the groups (convolutions).
#include <tenon/error.h>
#include <tenon/ops.h>

#include "base/make_error.h"
#include "grad/batching_rules.h"
#include "ops/infer.h"

namespace tenon {
namespace {

Tensor product(const BatchedNode& of, const Tensor& a, const Tensor& b) {
  return build(Op::Matmul, {a, b}, of.node.attrs);
}

// A convolution or gradient of one, with the batch in axes of its operands and its result.
struct FoldedConvolution {
  Tensor a, b;
  int axis = 0;                   // of the result that has the batch
  std::int64_t times_groups = 1;  // groups of the folded convolution for each group
};

std::vector<Tensor> convolved(const BatchedNode& of, const FoldedConvolution& c) {
  ContractionAttrs attrs = of.node.attrs.as<ContractionAttrs>();
  attrs.conv.groups *= c.times_groups;
  Shape shape = of.node.shape;
  shape[c.axis] *= of.size;
  const Tensor y = build_as(of.node.op, of.node.dtype, shape, {c.a, c.b}, attrs);
  return {unfold_batch(y, c.axis, of.size)};
}

std::int64_t groups_of(const BatchedNode& of) {
  return of.node.attrs.as<ContractionAttrs>().conv.groups;
}

// x [N, C, H, W], weight [K, C / groups, R, S] to [N, K, P, Q].
FoldedConvolution folded_forward(const BatchedNode& of) {
  if (!of.is_batched(1)) return {fold_batch(of.operands[0], 0), of.operands[1], 0};
  const Tensor weight = fold_batch(of.operands[1], 0);
  if (!of.is_batched(0) && groups_of(of) == 1) return {of.operands[0], weight, 1};
  return {fold_batch(of.stack(0), 1), weight, 1, of.size};
}

// dy [N, K, P, Q], weight to [N, C, H, W].
FoldedConvolution folded_input_grad(const BatchedNode& of) {
  if (!of.is_batched(1)) return {fold_batch(of.operands[0], 0), of.operands[1], 0};
  return {fold_batch(of.stack(0), 1), fold_batch(of.operands[1], 0), 1, of.size};
}

// x, dy to [K, C / groups, R, S].
FoldedConvolution folded_weight_grad(const BatchedNode& of) {
  const Tensor dy = fold_batch(of.stack(1), 1);
  if (!of.is_batched(0) && groups_of(of) == 1) return {of.operands[0], dy, 0};
  return {fold_batch(of.stack(0), 1), dy, 0, of.size};
}

}  // namespace

std::vector<Tensor> batched_matmul(const BatchedNode& of) {
  const Tensor &a = of.operands[0], &b = of.operands[1];
  const bool matrices = of.node.shape.rank() == 2;
  if (matrices && !of.is_batched(1))
    return {unfold_batch(product(of, fold_batch(a, 0), b), 0, of.size)};
  if (matrices && !of.is_batched(0) && b.size(-1) == 1)
    return {unfold_batch(product(of, a, fold_batch(b, 1)), 1, of.size)};
  return {product(of, of.stack(0), of.stack(1))};
}

std::vector<Tensor> batched_convolution(const BatchedNode& of) {
  switch (of.node.op) {
    case Op::Conv2d:
      return convolved(of, folded_forward(of));
    case Op::Conv2dInputGrad:
      return convolved(of, folded_input_grad(of));
    default:
      return convolved(of, folded_weight_grad(of));
  }
}

}  // namespace tenon
