// The passes autocast and sum_rounded, and the choice of weights that keep a rounded copy.
//
// Operands of large products are rounded once, by their producer, and read many times. Operands of
// small products are rounded when loaded, which saves a kernel. A weight's rounded copy costs no
// kernel: it is one more store in the weight's update.
#include "plan/precision/rounding.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include <tenon/ops.h>

#include "graph/node.h"
#include "graph/order.h"
#include "ops/infer.h"
#include "ops/table.h"
#include "plan/graph/views.h"
#include "plan/layout/layout.h"

namespace tenon {
namespace {

// Rows, columns and inner length of a product, or of the matrix product that a convolution
// corresponds to.
std::array<std::int64_t, 3> product_sizes(const Node& node, const Shape& a, const Shape& b) {
  switch (node.op) {
    case Op::Matmul:
      return {a.at(-2), b.at(-1), a.at(-1)};
    case Op::Conv2d:
      return {b[0], node.shape.numel() / std::max<std::int64_t>(node.shape[1], 1),
              b[1] * b[2] * b[3]};
    case Op::Conv2dInputGrad:
      return {b[1], node.shape.numel() / std::max<std::int64_t>(node.shape[1], 1),
              b[0] * b[2] * b[3]};
    default:
      return {b[1], node.shape.numel() / std::max<std::int64_t>(node.shape[0], 1),
              b.numel() / std::max<std::int64_t>(b[1], 1)};
  }
}

// Whether the product's operands are worth rounding before the product. An operand must be read
// often, unless rounding it is free (`kept_a`, `kept_b`).
bool worth_rounding_first(const Node& node, const Shape& a, const Shape& b, bool kept_a,
                          bool kept_b, bool channels_last) {
  constexpr std::int64_t kReads = 256;  // minimum number of reads per element
  // Minimum sizes that the 16-bit kernels support well.
  constexpr std::int64_t kInner = 64, kThin = 16;
  const auto [rows, columns, inner] = product_sizes(node, a, b);
  // The producer writes the activations for this convolution, in NHWC.
  if (is_pixel_product(node) || (channels_last && is_image_convolution(node))) return true;
  if (node.op != Op::Matmul) return std::min({rows, columns, inner}) >= kReads;
  return (kept_a || columns >= kReads) && (kept_b || rows >= kReads) && inner >= kInner &&
         std::min(rows, columns) >= kThin;
}

// Whether both operands are rounded ahead of the product. If kernels round while packing: only if
// one operand has a rounded copy.
bool rounds_first(const Node& node, std::span<const Tensor> inputs, const bool (&keeps)[2],
                  const PlanOptions& options, bool channels_last) {
  if (!options.traits.rounds_operands) return keeps[0] || keeps[1];
  return worth_rounding_first(node, inputs[0].shape(), inputs[1].shape(), keeps[0], keeps[1],
                              channels_last);
}

bool is_product_of_float32(const Node& node) {
  return op_info(node.op).kind == OpKind::Contraction && node.dtype == DType::Float32 &&
         node.input(0)->dtype == DType::Float32;
}

// The precision that the product was built with; on the CPU, as far as the CPU supports it.
Precision precision_of(const Node& node, const PlanOptions& options) {
  const Precision precision = node.attrs.as<ContractionAttrs>().precision;
  const bool here = precision == Precision::Bf16 || options.traits.rounds_operands;
  return here ? precision : Precision::Fp32;
}

// The 16-bit dtype that operands are rounded to ahead of a product; Float32: none.
DType rounded_dtype(Precision precision, const PlanOptions& options) {
  if (!options.traits.rounds_operands) return DType::Float32;
  if (precision == Precision::Bf16) return DType::BFloat16;
  return precision == Precision::Fp16 ? DType::Float16 : DType::Float32;
}

// The 16-bit dtype in which this product reads values rounded ahead: rounded copies of weights and,
// if activations are stored in 16 bits, activations. Float32: none.
DType kept_dtype(const Node& node, Precision precision, const PlanOptions& options,
                 bool lower_activation_precision) {
  const bool packs =
      node.op == Op::Matmul ? options.traits.keeps_bf16_matrices : lower_activation_precision;
  return packs && precision == Precision::Bf16 ? DType::BFloat16
                                               : rounded_dtype(precision, options);
}

bool may_be_kept(const Node& node) {
  constexpr std::int64_t kLarge = 1 << 18;
  return node.op == Op::Variable && node.dtype == DType::Float32 && node.shape.numel() >= kLarge;
}

// Whether `weight` is filters of a GPU convolution that the graph does not assign. Rounding them
// costs a launch, whatever their size.
bool are_fixed_filters(const Node& convolution, const Node& weight) {
  constexpr std::int64_t kNumbers = 4096;
  const bool reads = convolution.op == Op::Conv2d || convolution.op == Op::Conv2dInputGrad;
  return reads && convolution.input(1) == &weight && weight.op == Op::Variable &&
         weight.dtype == DType::Float32 && weight.shape.numel() >= kNumbers;
}

// The copy, viewed with the weight's shape.
Tensor as_weight(const RoundedCopy& kept) {
  if (!is_stored_channels_last(kept.copy, *kept.weight)) return kept.copy;
  const Shape& s = kept.weight->shape;
  return permute(reshape(kept.copy, {s[0], s[2], s[3], s[1]}), {0, 3, 1, 2});
}

// The rounded copy of the variable that `x` is a view of, or null.
const RoundedCopy* copy_of(const PlanOptions& options, Node* x, DType dtype) {
  const Node* base = base_of(x);
  for (const RoundedCopy& copy : options.copies)
    if (copy.weight == base && copy.copy.dtype() == dtype) return &copy;
  return nullptr;
}

// Whether all elements were of that 16-bit dtype before a cast to float32.
bool was_16_bit(const Node& node, DType dtype) {
  if (node.realised()) return false;
  if (node.op == Op::Cast) return node.input(0)->dtype == dtype;
  if (is_view(node)) return was_16_bit(*node.input(0), dtype);
  const auto in = node.in();
  return node.op == Op::Concat && std::all_of(in.begin(), in.end(), [dtype](const Node* part) {
           return was_16_bit(*part, dtype);
         });
}

// Whether the inputs of a concatenation are rounded instead of its result. True if all inputs are
// numbers or values already rounded for other products (a loop's states at the start of each step).
// Also true inside the body of a loop, where the producers store the inputs rounded.
bool joins_rounded(const Node& node, const RoundedValues& rounded, const PlanOptions& options) {
  if (node.realised() || node.op != Op::Concat) return false;
  if (options.results_apart) return true;
  const auto in = node.in();
  return std::all_of(in.begin(), in.end(), [&](Node* part) {
    const Node* base = base_of(part);
    return base->op == Op::Constant || base->is_number || rounded.find(base) != rounded.end();
  });
}

// Whether the node is a view of a loop parameter with that dtype (plan/precision/loop_rounding.h).
bool was_rounded(const Node& node, DType dtype) {
  if (node.realised()) return false;
  if (is_view(node)) return was_rounded(*node.input(0), dtype);
  return node.op == Op::Cast && node.input(0)->realised() && node.input(0)->dtype == dtype;
}

// The cast goes below views, so that a product and its transpose share one cast.
Tensor downcast(const Tensor& x, DType dtype, const PlanOptions& options, RoundedValues& rounded) {
  const Node& node = *x.node();
  if (is_view(node)) {
    const Tensor base = downcast(Tensor(node.input(0)), dtype, options, rounded);
    return make_node(node.op, dtype, node.shape, node.attrs, std::span(&base, 1));
  }
  if (const RoundedCopy* kept = copy_of(options, x.node(), dtype)) return as_weight(*kept);
  if (was_16_bit(node, dtype) || joins_rounded(node, rounded, options)) {
    if (node.op == Op::Cast) return Tensor(node.input(0));
    std::vector<Tensor> parts;
    for (Node* part : node.in()) parts.push_back(downcast(Tensor(part), dtype, options, rounded));
    return rounded[&node] = make_node(node.op, dtype, node.shape, node.attrs, parts);
  }
  return rounded[&node] = make_node(Op::Cast, dtype, x.shape(), {}, std::span(&x, 1));
}

// The dtype in which attention multiplies its operands.
DType attention_dtype(const Node& attention, const PlanOptions& options) {
  const DType memory = attention.input(0)->dtype;
  if (memory != DType::Float32 || !options.enabled(kAutocast)) return memory;
  return rounded_dtype(attention.attrs.as<AttentionAttrs>().precision, options);
}

// Attention in 16 bits: all operands of its products are rounded, and its results have that dtype
// too.
Tensor lowered_attention(const Node& node, std::span<const Tensor> inputs,
                         const PlanOptions& options, RoundedValues& rounded) {
  const DType low_dtype = attention_dtype(node, options);
  if (low_dtype == node.input(0)->dtype) return {};
  std::vector<Tensor> operands(inputs.begin(), inputs.end());
  const bool is_grad = node.op == Op::AttentionGrad;
  for (std::size_t k = 0; k < operands.size(); ++k)
    if (k < 3 || (is_grad && (k == 3 || k == 5)))  // the logsumexp and the mask stay float32
      operands[k] = downcast(inputs[k], low_dtype, options, rounded);
  return make_node(node.op, low_dtype, node.shape, node.attrs, operands);
}

// A result of an attention whose dtype changed, cast to the dtype that its readers expect.
Tensor cast_result(const Node& node, const Tensor& owner) {
  const bool logarithms = owner.node()->op == Op::Attention && result_index(node) == 1;
  if (op_info(owner.node()->op).kind != OpKind::Attention || logarithms ||
      owner.dtype() == node.dtype)
    return {};
  const Tensor low_precision =
      make_node(Op::Result, owner.dtype(), node.shape, node.attrs, std::span(&owner, 1));
  return make_node(Op::Cast, node.dtype, node.shape, {}, std::span(&low_precision, 1));
}

}  // namespace

DType rounded_ahead(const Node& product, const std::array<bool, 2>& kept,
                    const PlanOptions& options) {
  if (!is_product_of_float32(product)) return DType::Float32;
  const DType low_dtype = rounded_dtype(precision_of(product, options), options);
  const Shape &a = product.input(0)->shape, &b = product.input(1)->shape;
  return worth_rounding_first(product, a, b, kept[0], kept[1], false) ? low_dtype : DType::Float32;
}

Roots autocast(Roots roots, const PlanOptions& options, RoundedValues& rounded) {
  const bool lower_activation_precision =
      stores_activations_in_16_bits(roots.order().nodes, options);
  const auto rule = [&](Node& node, std::span<const Tensor> inputs) -> Tensor {
    if (op_info(node.op).kind == OpKind::Attention)
      return lowered_attention(node, inputs, options, rounded);
    if (node.op == Op::Result) return cast_result(node, inputs[0]);
    if (options.results_apart && node.op == Op::Cast && item_size(node.dtype) == 2 &&
        is_floating(node.dtype) && inputs[0].node()->op == Op::Concat)
      return downcast(inputs[0], node.dtype, options, rounded);
    if (!is_product_of_float32(node)) return {};
    ContractionAttrs attrs = node.attrs.as<ContractionAttrs>();
    const Precision asked = std::exchange(attrs.precision, precision_of(node, options));
    const DType low_dtype = kept_dtype(node, attrs.precision, options, lower_activation_precision);
    if (low_dtype == DType::Float32 && attrs.precision == asked) return {};
    const auto is_kept = [&](const Tensor& x) {
      return copy_of(options, x.node(), low_dtype) != nullptr || was_rounded(*x.node(), low_dtype);
    };
    const bool keeps[2] = {is_kept(inputs[0]), is_kept(inputs[1])};
    if (low_dtype == DType::Float32)
      return make_node(node.op, node.dtype, node.shape, attrs, inputs);
    const bool both = rounds_first(node, inputs, keeps, options, options.channels_last);
    Tensor operands[2] = {inputs[0], inputs[1]};
    for (int k = 0; k < 2; ++k)
      if (both)
        operands[k] = downcast(inputs[k], low_dtype, options, rounded);
      else if (lower_activation_precision && reads_16_bit_image(node, k))  // filters stay float32
        operands[k] = cast(downcast(inputs[k], low_dtype, options, rounded), node.dtype);
    return make_node(node.op, node.dtype, node.shape, attrs, operands);
  };
  const auto may_round = [](const Node& node) {
    const OpKind kind = kind_of(node.op);
    return kind == OpKind::Contraction || kind == OpKind::Attention || node.op == Op::Result ||
           node.op == Op::Cast;
  };
  return rewrite_where(roots, may_round, rule);
}

Roots sum_rounded(Roots roots, const PlanOptions& options, RoundedValues& rounded) {
  const auto rule = [&](Node& node, std::span<const Tensor> inputs) -> Tensor {
    const auto found = rounded.find(base_of(inputs[0].node()));
    if (found == rounded.end() || inputs[0].node()->realised()) return {};
    const Tensor low_precision = downcast(inputs[0], found->second.dtype(), options, rounded);
    const Tensor wide =
        make_node(Op::Cast, node.dtype, inputs[0].shape(), {}, std::span(&low_precision, 1));
    return make_node(Op::Sum, node.dtype, node.shape, node.attrs, std::span(&wide, 1));
  };
  const auto is_sum = [](const Node& node) { return node.op == Op::Sum; };
  return rewrite_where(roots, is_sum, rule);
}

LowPrecision low_precision_in(std::span<Node* const> nodes) {
  LowPrecision found;
  for (const Node* node : nodes) {
    if (item_size(node->dtype) == 2) found.any = true;
    const auto* attrs = node->realised() ? nullptr : node->attrs.get_if<ContractionAttrs>();
    if (attrs == nullptr) continue;
    if (attrs->precision == Precision::Bf16) found.any = found.bf16_products = true;
    if (attrs->precision == Precision::Fp16) found.any = true;
  }
  return found;
}

Tensor rounded_copy(const Tensor& weight, DType dtype, bool channels_last) {
  if (!channels_last) return cast(weight, dtype);
  const Shape& s = weight.shape();
  return cast(reshape(permute(weight, {0, 2, 3, 1}), {s[0], s[2] * s[3], s[1]}), dtype);
}

bool is_stored_channels_last(const Tensor& copy, const Node& weight) {
  return copy.rank() != weight.shape.rank();
}

std::vector<WeightToKeep> weights_to_keep_rounded(std::span<const Tensor> roots,
                                                  const PlanOptions& options) {
  std::vector<WeightToKeep> weights;
  if (!options.enabled(kAutocast)) return weights;
  const std::vector<Node*> nodes = topological_order(roots);
  const bool channels_last = keeps_channels_last(nodes, options);
  std::unordered_set<const Node*> assigned, done;
  for (const Node* node : nodes)
    if (node->op == Op::Assign && !node->realised()) assigned.insert(node->input(0));
  if (options.traits.keeps_bf16_matrices) done = assigned;
  for (Node* node : nodes) {
    if (node->realised() || !is_product_of_float32(*node)) continue;
    const DType low_dtype = kept_dtype(*node, precision_of(*node, options), options, false);
    if (low_dtype == DType::Float32) continue;
    const Tensor inputs[2] = {Tensor(node->input(0)), Tensor(node->input(1))};
    Node *a = base_of(node->input(0)), *b = base_of(node->input(1));
    if (!rounds_first(*node, inputs, {may_be_kept(*a), may_be_kept(*b)}, options, channels_last))
      continue;
    for (Node* weight : {a, b}) {
      const bool fixed =
          channels_last && assigned.count(weight) == 0 && are_fixed_filters(*node, *weight);
      if ((fixed || may_be_kept(*weight)) && done.insert(weight).second)
        weights.push_back({weight, low_dtype, fixed && is_image_convolution(*node)});
    }
  }
  return weights;
}

}  // namespace tenon
