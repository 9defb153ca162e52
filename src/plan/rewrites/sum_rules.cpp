// Rules about sums. Each sum is a pass over memory, or a row reduction that later values of the row
// wait for. First rule: sum(x * f) is f * sum(x) if f is constant along the summed axes. Second
// rule: the sum of a tensor minus its mean, times such a factor, is zero.
//
// The gradient of batch normalisation needs the sums of dy, of dy times the scale, and of the
// centred input times a number: with both rules the first sum serves all three. The same holds for
// the row sums of layer normalisation's gradient, of which the last would otherwise wait for
// another. Values are the same up to rounding, with two exceptions: near the ends of the dtype's
// range, because the factor is applied after the sum; and where a sum that is now zero would have
// been NaN because of an element or a factor.
#include "plan/rewrites/sum_rules.h"

#include <algorithm>
#include <vector>

#include "graph/attrs.h"
#include "graph/node.h"

namespace tenon {
namespace {

constexpr int kMostFactors = 8;  // factors examined for one sum, so that planning stays linear

const Node* unmade(const Tensor& t, Op op) {
  const Node& node = *t.node();
  return node.op == op && !node.realised() ? &node : nullptr;
}

Tensor splat_constant(DType dtype, const Shape& shape, const ConstantAttrs& value) {
  return make_node(Op::Constant, dtype, shape, value, {});
}

/// The leaf that stands for a number, if x is this number in some shape (Node::is_number).
Tensor changing_number(const Tensor& x) {
  const Node* node = x.node();
  while (!node->realised() && (node->op == Op::Expand || node->op == Op::Reshape))
    node = node->input(0);
  return node->is_number ? Tensor(const_cast<Node*>(node)) : Tensor();
}

Tensor in_shape(Tensor number, const Shape& shape) {
  Shape of_ones;
  for (int a = 0; a < shape.rank(); ++a) of_ones.push_back(1);
  if (shape.rank() > 0)
    number = make_node(Op::Reshape, number.dtype(), of_ones, {}, std::span(&number, 1));
  if (of_ones != shape)
    number = make_node(Op::Expand, number.dtype(), shape, {}, std::span(&number, 1));
  return number;
}

/// The factor of every summand of a sum, in the sum's shape; undefined if it is not constant.
Tensor factor_in(const Tensor& x, const Shape& sum) {
  if (const Node* number = unmade(x, Op::Constant))
    return splat_constant(x.dtype(), sum, number->attrs.as<ConstantAttrs>());
  if (const Tensor number = changing_number(x); number.defined()) return in_shape(number, sum);
  const Node* expand = unmade(x, Op::Expand);
  if (expand == nullptr || expand->input(0)->shape != sum) return {};
  return Tensor(expand->input(0));
}

/// Whether x is a tensor minus its mean over the axes of the sum.
bool is_without_mean(const Tensor& x, const Node& sum) {
  const Node* difference = unmade(x, Op::Sub);
  if (difference == nullptr) return false;
  const Node* expand = unmade(Tensor(difference->input(1)), Op::Expand);
  if (expand == nullptr) return false;
  const Node* mean = unmade(Tensor(expand->input(0)), Op::Div);
  if (mean == nullptr || mean->shape != sum.shape) return false;
  const Node* total = unmade(Tensor(mean->input(0)), Op::Sum);
  const Node* count = unmade(Tensor(mean->input(1)), Op::Constant);
  if (total == nullptr || count == nullptr || total->input(0) != difference->input(0) ||
      total->attrs.as<ReduceAttrs>().axes != sum.attrs.as<ReduceAttrs>().axes)
    return false;
  const std::int64_t summands = x.numel() / std::max<std::int64_t>(1, sum.shape.numel());
  return count->attrs.as<ConstantAttrs>().value.real() == static_cast<double>(summands);
}

/// The rewritten sum, or an undefined tensor if it has no such factor.
Tensor factor_out_of_sum(const Node& node, std::span<const Tensor> inputs) {
  const bool wide = node.dtype == DType::Float32 || node.dtype == DType::Float64;
  if (node.op != Op::Sum || !wide) return {};  // in 16 bits a sum without its factor may overflow
  Tensor x = inputs[0];
  if (x.numel() == 0) return {};  // a sum of no elements is 0, whatever its factor
  std::vector<Tensor> factors;
  bool negative = false, changed = false;
  for (int looked = 0; looked < kMostFactors; ++looked) {
    if (const Node* neg = unmade(x, Op::Neg)) {
      negative = !negative;
      x = Tensor(neg->input(0));
      continue;
    }
    const Node* product = unmade(x, Op::Mul);
    if (product == nullptr) break;
    const Tensor a(product->input(0)), b(product->input(1));
    const Tensor right = factor_in(b, node.shape),
                 left = right.defined() ? Tensor() : factor_in(a, node.shape);
    if (!right.defined() && !left.defined()) break;
    factors.push_back(right.defined() ? right : left);
    x = right.defined() ? a : b;
    changed = true;
  }
  // Without a factor, the user may want exactly this sum: for example the rounding error that
  // corrects a variance.
  if (!changed) return {};
  if (is_without_mean(x, node)) return splat_constant(node.dtype, node.shape, {Scalar(0)});
  Tensor total = make_node(Op::Sum, node.dtype, node.shape, node.attrs, std::span(&x, 1));
  // Multiplies in the order in which the factors were written. In another order, an intermediate
  // product may overflow.
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    const Tensor operands[2] = {total, *factor};
    total = make_node(Op::Mul, node.dtype, node.shape, {}, operands);
  }
  if (negative) total = make_node(Op::Neg, node.dtype, node.shape, {}, std::span(&total, 1));
  return total;
}

}  // namespace

Node* summed_deviations(const Node& node) {
  const bool wide = node.dtype == DType::Float32 || node.dtype == DType::Float64;
  if (node.op != Op::Sum || node.realised() || !wide) return nullptr;
  const Node* square = unmade(Tensor(node.input(0)), Op::Square);
  if (square == nullptr || !is_without_mean(Tensor(square->input(0)), node)) return nullptr;
  return square->input(0)->input(0);
}

Roots factors(Roots roots, const PlanOptions&) {
  const auto is_sum = [](const Node& node) { return node.op == Op::Sum; };
  return rewrite_where(roots, is_sum, factor_out_of_sum);
}

}  // namespace tenon
