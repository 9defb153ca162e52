// Rules for ops whose batched form is the same op over one more axis, or over a larger first axis.
#include "grad/batching_rules.h"

#include <algorithm>

#include <tenon/error.h>
#include <tenon/joining.h>
#include <tenon/ops.h>

#include "base/make_error.h"
#include "ops/attention.h"
#include "ops/infer.h"

namespace tenon {

Shape stacked_shape(std::int64_t size, const Shape& sample) {
  Shape shape{size};
  for (const std::int64_t s : sample) shape.push_back(s);
  return shape;
}

Tensor repeated_for_each(const Tensor& x, std::int64_t size) {
  const Shape shape = stacked_shape(size, x.shape());
  if (is_number(x)) return constant(shape, constant_value(x), x.dtype());
  return expand(unsqueeze(x, 0), to_ints(shape));
}

Tensor BatchedNode::stack(int k) const {
  const Tensor& x = operands[static_cast<std::size_t>(k)];
  return is_batched(k) ? x : repeated_for_each(x, size);
}

std::vector<Tensor> BatchedNode::stacks() const {
  std::vector<Tensor> all;
  all.reserve(operands.size());
  for (int k = 0; k < node.input_count; ++k) all.push_back(stack(k));
  return all;
}

Tensor BatchedNode::state(int k) const {
  const Tensor& x = operands[static_cast<std::size_t>(k)];
  return is_batched(k) ? select(x, 0, 0) : x;
}

Tensor fold_batch(const Tensor& stack, int axis) {
  Ints sizes = to_ints(stack.shape());
  const std::int64_t samples = sizes[0];
  sizes.erase(sizes.begin());
  sizes[static_cast<std::size_t>(axis)] *= samples;
  return reshape(movedim(stack, {0}, {axis}), sizes);
}

Tensor unfold_batch(const Tensor& x, int axis, std::int64_t size) {
  Ints sizes = to_ints(x.shape());
  const auto at_axis = sizes.begin() + axis;
  *at_axis /= size;
  sizes.insert(at_axis, size);
  return movedim(reshape(x, sizes), {axis}, {0});
}

namespace {

// The same op over a first axis that has the batch.
std::vector<Tensor> over_first_axis(const BatchedNode& of) {
  const Node& node = of.node;
  std::vector<Tensor> folded;
  for (const Tensor& stack : of.stacks()) folded.push_back(fold_batch(stack, 0));
  Shape shape = node.shape;
  shape[0] *= of.size;
  return {unfold_batch(build_as(node.op, node.dtype, shape, folded, node.attrs), 0, of.size)};
}

// The dropout input is no operand of a sample: a draw over the folded batch serves all samples.
std::vector<Tensor> attended(const BatchedNode& of) {
  const bool drops = drops_weights(of.node);
  const int last = of.node.input_count - 1;
  std::vector<Tensor> folded;
  for (int k = 0; k <= last; ++k)
    folded.push_back(drops && k == last ? of.state(k) : fold_batch(of.stack(k), 0));
  std::vector<Tensor> results = results_of(build(of.node.op, folded, of.node.attrs));
  for (Tensor& result : results) result = unfold_batch(result, 0, of.size);
  return results;
}

Attrs behind_batch(const PermuteAttrs& sample, int rank) {
  PermuteAttrs attrs;
  for (int a = 0; a < rank; ++a) attrs.axes[a + 1] = static_cast<std::uint8_t>(sample.axes[a] + 1);
  return attrs;
}

Attrs behind_batch(const SliceAttrs& sample, int rank) {
  SliceAttrs attrs;
  std::copy_n(sample.start, rank, attrs.start + 1);
  std::copy_n(sample.step, rank, attrs.step + 1);
  attrs.step[0] = 1;
  return attrs;
}

Attrs behind_batch(const PadAttrs& sample, int rank) {
  PadAttrs attrs;
  std::copy_n(sample.before, rank, attrs.before + 1);
  std::copy_n(sample.after, rank, attrs.after + 1);
  attrs.value = sample.value;
  return attrs;
}

// The attributes of the same op over one more axis in front. The kind of the attributes says
// whether they name axes.
Attrs behind_batch(const Node& node) {
  const int rank = node.shape.rank();
  if (const auto* reduce = node.attrs.get_if<ReduceAttrs>()) return ReduceAttrs{reduce->axes << 1};
  if (const auto* axis = node.attrs.get_if<AxisAttrs>()) return AxisAttrs{axis->axis + 1};
  if (const auto* along = node.attrs.get_if<RecurrenceAttrs>())
    return RecurrenceAttrs{along->axis + 1, along->kind, along->reverse};
  if (const auto* transform = node.attrs.get_if<FourierAttrs>()) {
    FourierAttrs attrs = *transform;
    ++attrs.axis;
    return attrs;
  }
  if (const auto* permute = node.attrs.get_if<PermuteAttrs>()) return behind_batch(*permute, rank);
  if (const auto* slice = node.attrs.get_if<SliceAttrs>()) return behind_batch(*slice, rank);
  if (const auto* margin = node.attrs.get_if<PadAttrs>()) return behind_batch(*margin, rank);
  return node.attrs;
}

// The same op over stacks.
std::vector<Tensor> over_stacks(const BatchedNode& of) {
  const Node& node = of.node;
  const Shape shape = stacked_shape(of.size, node.shape);
  const Tensor out = build_as(node.op, node.dtype, shape, of.stacks(), behind_batch(node));
  out.node()->device = node.op == Op::ToDevice ? node.device : out.node()->device;
  if (has_trait(node.op, kSeveralResults)) return results_of(out);
  return {out};
}

// One table for all samples: their indices join along the axis, and the table is not repeated.
std::vector<Tensor> gathered(const BatchedNode& of) {
  if (of.is_batched(0)) return over_stacks(of);
  const int axis = node_axis(of.node, of.node.shape.rank());
  const Tensor index = fold_batch(of.operands[1], axis);
  const Tensor y = build(Op::Gather, {of.operands[0], index}, of.node.attrs);
  return {unfold_batch(y, axis, of.size)};
}

// Operands of a formula broadcast from the last axis, so the axes of smaller ones are filled up
// behind the batch.
std::vector<Tensor> of_formula(const BatchedNode& of) {
  const Node& node = of.node;
  std::vector<Tensor> operands = of.stacks();
  for (Tensor& x : operands)
    while (x.rank() <= node.shape.rank()) x = unsqueeze(x, 1);
  return {build(Op::Formula, operands, node.attrs)};
}

std::vector<Tensor> composite(const BatchedNode& of) {
  switch (of.node.op) {
    case Op::Formula:
      return of_formula(of);
    case Op::Recurrence:
    case Op::Fourier:
    case Op::ScatterMax:
    case Op::ScatterMin:
    case Op::Softmax:
    case Op::LogSoftmax:
      return over_stacks(of);
    default:
      return over_first_axis(of);
  }
}

std::vector<Tensor> transferred(const BatchedNode& of) {
  if (of.node.op == Op::ToDevice) return over_stacks(of);
  throw make_error<NotSupported>(where("vmap"),
                                 ": the function exchanges values between devices: call the "
                                 "collective outside");
}

// What a value carries is the same for all samples; an assigned value must be too.
std::vector<Tensor> effect(const BatchedNode& of) {
  if (of.node.op == Op::WithUpdates) return {build(Op::WithUpdates, of.operands)};
  const std::string& label = label_text(of.node.input(0)->label);
  throw make_error<NotSupported>(
      where("vmap"), ": the function assigns a variable", label.empty() ? "" : " (" + label + ")",
      " a value that differs between samples: switch batch normalization to eval(), or return the "
      "value and assign it outside");
}

}  // namespace

std::vector<Tensor> batched_op(const BatchedNode& of) {
  switch (kind_of(of.node.op)) {
    case OpKind::Elementwise:
    case OpKind::Reduction:
    case OpKind::ArgReduction:
    case OpKind::View:
      return over_stacks(of);
    case OpKind::Movement:
      return of.node.op == Op::Gather ? gathered(of) : over_stacks(of);
    case OpKind::Contraction:
      return of.node.op == Op::Matmul ? batched_matmul(of) : batched_convolution(of);
    case OpKind::Pooling:
      return over_first_axis(of);
    case OpKind::Attention:
      return attended(of);
    case OpKind::Composite:
      return composite(of);
    case OpKind::Transfer:
      return transferred(of);
    case OpKind::Effect:
      return effect(of);
    default:
      return {};
  }
}

}  // namespace tenon
