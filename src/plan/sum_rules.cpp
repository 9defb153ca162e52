// Rules about sums, each of which is a kernel over memory or a reduction that a row's numbers wait
// for: sum(x * f) is f * sum(x) where f does not change along the summed axes, and what remains of
// a tensor without its mean, times such a factor, adds up to nothing.
//
// The gradient of batch normalisation asks for sums of dy, of dy times its scale and of the input
// without its mean times a number: with both rules the first serves all. So with the sums over a
// row of layer normalisation's, of which the last would wait for another. Values are the same up to
// rounding, but near the ends of the numbers' range, for what is summed has not met its factor yet,
// and where that nothing would be NaN because an element or the factor is.
#include "plan/sum_rules.h"

#include <algorithm>
#include <vector>

#include "graph/attrs.h"

namespace tenon {
namespace {

constexpr int kMostFactors = 8;  // looked through, so that planning stays linear

const Node* unmade(const Tensor& t, Op op) {
  const Node& node = *t.node();
  return node.op == op && !node.realised() ? &node : nullptr;
}

Tensor splat_constant(DType dtype, const Shape& shape, const ConstantAttrs& value) {
  return make_node(Op::Constant, dtype, shape, value, {});
}

/// What multiplies every summand of one sum, in the sum's shape; undefined where it changes.
Tensor factor_in(const Tensor& x, const Shape& sum) {
  if (const Node* number = unmade(x, Op::Constant))
    return splat_constant(x.dtype(), sum, number->attrs.as<ConstantAttrs>());
  const Node* expand = unmade(x, Op::Expand);
  if (expand == nullptr || expand->input(0)->shape != sum) return {};
  return Tensor(expand->input(0));
}

/// x - mean of x over the axes of the sum.
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

}  // namespace

Node* summed_deviations(const Node& node) {
  const bool wide = node.dtype == DType::Float32 || node.dtype == DType::Float64;
  if (node.op != Op::Sum || node.realised() || !wide) return nullptr;
  const Node* square = unmade(Tensor(node.input(0)), Op::Square);
  if (square == nullptr || !is_without_mean(Tensor(square->input(0)), node)) return nullptr;
  return square->input(0)->input(0);
}

Tensor factor_out_of_sum(const Node& node, std::span<const Tensor> inputs) {
  const bool wide = node.dtype == DType::Float32 || node.dtype == DType::Float64;
  if (node.op != Op::Sum || !wide) return {};  // 16 bits: a sum without its factor may overflow
  Tensor x = inputs[0];
  if (x.numel() == 0) return {};  // nothing is 0, whatever its factor
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
  // Without a factor it may be what a user corrects a variance by: what rounding left.
  if (!changed) return {};
  if (is_without_mean(x, node)) return splat_constant(node.dtype, node.shape, {Scalar(0)});
  Tensor total = make_node(Op::Sum, node.dtype, node.shape, node.attrs, std::span(&x, 1));
  // In the order in which they were written, lest one that follows another overflow alone.
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    const Tensor operands[2] = {total, *factor};
    total = make_node(Op::Mul, node.dtype, node.shape, {}, operands);
  }
  if (negative) total = make_node(Op::Neg, node.dtype, node.shape, {}, std::span(&total, 1));
  return total;
}

}  // namespace tenon
