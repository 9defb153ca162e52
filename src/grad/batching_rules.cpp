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

// The same op over stacks, with these attributes.
std::vector<Tensor> over_stacks(const BatchedNode& of, const Attrs& attrs) {
  const Node& node = of.node;
  const Shape shape = stacked_shape(of.size, node.shape);
  const Tensor out = build_as(node.op, node.dtype, shape, of.stacks(), attrs);
  out.node()->device = node.op == Op::ToDevice ? node.device : out.node()->device;
  if (has_trait(node.op, kSeveralResults)) return results_of(out);
  return {out};
}

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
  if (drops && of.is_batched(last)) return {};
  std::vector<Tensor> folded;
  for (int k = 0; k <= last; ++k)
    folded.push_back(drops && k == last ? of.operands[static_cast<std::size_t>(k)]
                                        : fold_batch(of.stack(k), 0));
  std::vector<Tensor> results = results_of(build(of.node.op, folded, of.node.attrs));
  for (Tensor& result : results) result = unfold_batch(result, 0, of.size);
  return results;
}

Attrs shifted_reduction(const Node& node) {
  return ReduceAttrs{node.attrs.as<ReduceAttrs>().axes << 1};
}

Attrs shifted_axis(const Node& node) { return AxisAttrs{node.attrs.as<AxisAttrs>().axis + 1}; }

Attrs shifted_recurrence(const Node& node) {
  RecurrenceAttrs attrs = node.attrs.as<RecurrenceAttrs>();
  ++attrs.axis;
  return attrs;
}

Attrs shifted_permute(const Node& node) {
  PermuteAttrs attrs;
  for (int a = 0; a < node.shape.rank(); ++a)
    attrs.axes[a + 1] = static_cast<std::uint8_t>(node.attrs.as<PermuteAttrs>().axes[a] + 1);
  return attrs;
}

Attrs shifted_slice(const Node& node) {
  const SliceAttrs& sample = node.attrs.as<SliceAttrs>();
  SliceAttrs attrs;
  std::copy_n(sample.start, node.shape.rank(), attrs.start + 1);
  std::copy_n(sample.step, node.shape.rank(), attrs.step + 1);
  attrs.step[0] = 1;
  return attrs;
}

Attrs shifted_pad(const Node& node) {
  const PadAttrs& sample = node.attrs.as<PadAttrs>();
  PadAttrs attrs;
  std::copy_n(sample.before, node.shape.rank(), attrs.before + 1);
  std::copy_n(sample.after, node.shape.rank(), attrs.after + 1);
  attrs.value = sample.value;
  return attrs;
}

// One table for all samples: their indices join along the axis, and the table is not repeated.
std::vector<Tensor> gathered(const BatchedNode& of) {
  if (of.is_batched(0)) return over_stacks(of, shifted_axis(of.node));
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

std::vector<Tensor> moved(const BatchedNode& of) {
  switch (of.node.op) {
    case Op::Permute:
      return over_stacks(of, shifted_permute(of.node));
    case Op::Slice:
      return over_stacks(of, shifted_slice(of.node));
    case Op::Pad:
      return over_stacks(of, shifted_pad(of.node));
    case Op::Gather:
      return gathered(of);
    case Op::Concat:
    case Op::Scatter:
    case Op::ScatterAdd:
      return over_stacks(of, shifted_axis(of.node));
    default:  // Reshape, Expand, Sort
      return over_stacks(of, of.node.attrs);
  }
}

std::vector<Tensor> composite(const BatchedNode& of) {
  switch (of.node.op) {
    case Op::Formula:
      return of_formula(of);
    case Op::Recurrence:
      return over_stacks(of, shifted_recurrence(of.node));
    case Op::ScatterMax:
    case Op::ScatterMin:
      return over_stacks(of, shifted_axis(of.node));
    case Op::Softmax:
    case Op::LogSoftmax:
      return over_stacks(of, of.node.attrs);
    default:
      return over_first_axis(of);
  }
}

std::vector<Tensor> transferred(const BatchedNode& of) {
  if (of.node.op == Op::ToDevice) return over_stacks(of, of.node.attrs);
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
    case OpKind::ArgReduction:
      return over_stacks(of, of.node.attrs);
    case OpKind::Reduction:
      return over_stacks(of, shifted_reduction(of.node));
    case OpKind::View:
    case OpKind::Movement:
      return moved(of);
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
