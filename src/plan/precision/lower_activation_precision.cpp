// If a convolution's operands are 16-bit, torch.autocast stores its result in 16 bits too. This
// pass does the same for two kinds of graphs: GPU graphs that keep activations in NHWC, and graphs
// (on a GPU or the host) with many convolutions that read and write NCHW activations.
//
// * Results of convolutions, and their input gradients, are rounded.
// * If a convolution reads an activation rounded, all its readers read the rounded values.
// * Where a network branches, input gradients are added. The sum is rounded after the activation
//   mask that follows it.
// * On a GPU with NCHW: ops that slice, pad or permute an activation that was cast to float32 do so
//   before the cast.
//
// Only with NHWC:
//
// * Max pooling of such an activation, and its gradient, are 16-bit. The maximum of rounded values
//   is the rounded maximum; of equal values the first one counts.
// * Local response normalisation of a convolution's result, and its gradient, store 16 bits. The
//   arithmetic inside is float32.
// * Weight gradients in bfloat16 are rounded, as in torch.autocast, and accumulated in float32.
//
// All other arithmetic is float32. Sums over activations, and values that a normalisation computes
// from the sums, stay float32. If a bias is added directly to a result, the result is rounded after
// the bias. If a result is a summand of such a gradient sum, it is rounded after the sum.
#include "plan/precision/lower_activation_precision.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <tenon/ops.h>

#include "graph/node.h"
#include "ops/table.h"
#include "plan/graph/node_users.h"
#include "plan/layout/layout.h"
#include "plan/precision/lower_product_precision.h"
#include "plan/rewrites/sum_rules.h"

namespace tenon {
namespace {

constexpr int kMostMoves = 8;  // nodes between a gradient and its sum

bool is_16_bit(DType dtype) { return dtype == DType::BFloat16 || dtype == DType::Float16; }

/// Ops that read and write 16-bit activations if their input is 16-bit.
bool runs_in_16_bits(Op op) { return has_trait(op, kPicks) || has_trait(op, kAcrossChannels); }

class ActivationLowering {
 public:
  ActivationLowering(const Roots& roots, bool on_gpu, bool channels_last)
      : users_(roots.order()), on_gpu_(on_gpu), last_(channels_last) {
    for (const Tensor& root : roots) wanted_.insert(root.node());
    for (const Node* node : roots.order().nodes) consider(*node);
  }

  Roots rewritten(const Roots& roots) const {
    if (lowered_.empty()) return roots;
    return rewrite(roots, [this](Node& node, std::span<const Tensor> inputs) -> Tensor {
      if (sums_by_squares(node)) return deviations_by_squares(node, inputs[0]);
      if (node.op == Op::Cast && is_16_bit(node.dtype))
        if (Tensor inner = before_cast(*inputs[0].node(), node.dtype); inner.defined())
          return inner;
      if (last_ && runs_in_16_bits(node.op))
        if (const auto pooled = lowered_.find(node.input(0)); pooled != lowered_.end())
          return lower_pooling_precision(node, inputs, pooled->second);
      if (Tensor moved = moved_16_bit(node, inputs); moved.defined()) return moved;
      const auto found = lowered_.find(&node);
      if (found == lowered_.end()) return {};
      const Tensor image = make_node(node.op, node.dtype, node.shape, node.attrs, inputs);
      return cast(cast(image, found->second), node.dtype);
    });
  }

 private:
  /// The 16-bit dtype of a convolution's activations, which it reads and writes; Float32 if none.
  DType type_of_images(const Node& node) const {
    const bool lies_last = is_image_convolution(node) || is_pixel_product(node);
    if (!last_) return lower_type(node);
    return lies_last && is_16_bit(node.input(0)->dtype) ? node.input(0)->dtype : DType::Float32;
  }
  bool is_16_bit_convolution(const Node& node) const {
    return type_of_images(node) != DType::Float32;
  }

  /// Whether the host computes sum (x - mean)² from the sums of x and x², which are accumulated
  /// while x is written. Not done if a convolution reads the centred value, because it is then
  /// needed itself.
  bool sums_by_squares(const Node& node) const {
    const Node* x = on_gpu_ ? nullptr : summed_deviations(node);
    if (x == nullptr || lowered_.count(x) == 0) return false;
    const Node* square = node.input(0);
    return lowered_.count(square) == 0 && lowered_.count(square->input(0)) == 0;
  }

  /// sum (x - mean)² as sum x² minus the share of the mean. The cancellation error is smaller than
  /// the error from rounding x to 16 bits. `square`: the rewritten summand.
  static Tensor deviations_by_squares(const Node& node, const Tensor& square) {
    const Tensor x(square.node()->input(0)->input(0));
    const auto total = [&node](const Tensor& t) {
      return make_node(Op::Sum, node.dtype, node.shape, node.attrs, std::span(&t, 1));
    };
    const std::int64_t summands = x.numel() / std::max<std::int64_t>(1, node.shape.numel());
    const Tensor sum = total(x);
    const Tensor of_mean = sum * (sum / static_cast<double>(summands));
    return maximum(total(tenon::square(x)) - of_mean, 0.0);
  }

  /// Moves 16-bit elements first and casts them to float32 afterwards. The move then reads and
  /// writes half the bytes, and the cast becomes part of the reader.
  Tensor moved_16_bit(const Node& node, std::span<const Tensor> inputs) const {
    if (last_ || !on_gpu_ || !moves(node)) return {};
    const Node& wide = *inputs[0].node();
    if (wide.realised() || wide.op != Op::Cast || wide.dtype != DType::Float32) return {};
    const Tensor inner(wide.input(0));
    if (!is_16_bit(inner.dtype())) return {};
    if (node.op == Op::Reshape && (inner.node()->realised() || !moves(*inner.node()))) return {};
    return cast(make_node(node.op, inner.dtype(), node.shape, node.attrs, std::span(&inner, 1)),
                node.dtype);
  }

  /// Whether the node only moves an activation's elements to other positions, or adds zeros.
  static bool moves(const Node& node) {
    if (const auto* pad = node.attrs.get_if<PadAttrs>()) return pad->value.is_zero();
    return node.op == Op::Slice || node.op == Op::Permute || node.op == Op::Reshape;
  }

  static Tensor lower_pooling_precision(const Node& node, std::span<const Tensor> inputs,
                                        DType dtype) {
    std::vector<Tensor> rounded_inputs;
    for (const Tensor& input : inputs) {
      const Tensor rounded = before_cast(*input.node(), dtype);
      rounded_inputs.push_back(rounded.defined() ? rounded : cast(input, dtype));
    }
    return cast(make_node(node.op, dtype, node.shape, node.attrs, rounded_inputs), node.dtype);
  }

  std::span<const Node* const> users(const Node& node) const { return users_.of(&node); }

  void consider(const Node& node) {
    const bool image = node.dtype == DType::Float32 && node.shape.rank() == 4;
    if (node.realised() || !image || wanted_.count(&node) != 0) return;
    if (op_info(node.op).kind == OpKind::Contraction) {
      if (node.op == Op::Conv2dWeightGrad) {
        if (last_ && gains_by_rounding(node)) lowered_.emplace(&node, DType::BFloat16);
        return;
      }
      if (is_16_bit_convolution(node) && !feeds_epilogue(node) && !feeds_bias(node) &&
          !feeds_sum(node))
        lowered_.emplace(&node, type_of_images(node));
      return;
    }
    if (last_ && runs_in_16_bits(node.op)) {
      const Node& pooled = *node.input(0);
      const bool computed = !pooled.realised() && wanted_.count(&pooled) == 0;
      if (const DType made = made_by_convolution(pooled); computed && made != DType::Float32)
        lowered_.emplace(&pooled, made);
    }
    if (const DType read = read_by_convolutions(node); read != DType::Float32)
      lowered_.emplace(&node, read);
    else if (const DType summed = summed_gradient(node); summed != DType::Float32)
      lowered_.emplace(masked(node), summed);
  }

  /// The library's weight-gradient kernels are several times faster if they store 16 bits. float16
  /// might overflow where the sum is over many pixels, so only bfloat16 qualifies.
  static bool gains_by_rounding(const Node& node) {
    return is_image_convolution(node) && takes_channels_last(node, 0) &&
           node.input(0)->dtype == DType::BFloat16;
  }

  /// On the host, a result with one reader (a normalisation with known moments, for example)
  /// becomes an epilogue and is not stored.
  bool feeds_epilogue(const Node& node) const {
    return !on_gpu_ && node.op == Op::Conv2d && users(node).size() == 1;
  }

  /// Whether only a bias (a vector of channels) is added to the result, and only the sum has
  /// readers.
  bool feeds_bias(const Node& node) const {
    const std::span<const Node* const> readers = users(node);
    return readers.size() == 1 && readers[0]->op == Op::Add &&
           (readers[0]->input(0)->op == Op::Expand || readers[0]->input(1)->op == Op::Expand);
  }

  /// Whether the node is the summand of a gradient sum whose producer computes the sum in its
  /// epilogue.
  bool feeds_sum(const Node& node) const {
    const std::span<const Node* const> readers = users(node);
    if (node.op != Op::Conv2dInputGrad || readers.size() != 1 || readers[0]->op != Op::Add ||
        wanted_.count(readers[0]) != 0)
      return false;
    const Node& sum = *readers[0];
    const auto fits = [&](int k) {
      const Node& part = *sum.input(k);
      return part.op == Op::Conv2dInputGrad && users(part).size() == 1 &&
             is_16_bit_convolution(part);
    };
    // A matrix product takes epilogues.
    const bool first = fits(0) && (!fits(1) || is_pixel_product(*sum.input(0)) ||
                                   !is_pixel_product(*sum.input(1)));
    return &node == sum.input(first ? 0 : 1);
  }

  /// The dtype in which convolutions read the activation; Float32 if none reads it.
  DType read_by_convolutions(const Node& node) const {
    const OpKind kind = op_info(node.op).kind;
    if (kind != OpKind::Elementwise &&
        !(last_ && (kind == OpKind::Pooling || runs_in_16_bits(node.op))))
      return DType::Float32;
    for (const Node* cast : users(node))
      if (cast->op == Op::Cast && is_16_bit(cast->dtype) && is_operand(*cast)) return cast->dtype;
    return DType::Float32;
  }

  /// Whether a convolution reads the rounded value, or its cast back to float32.
  bool is_operand(const Node& rounded) const {
    const std::span<const Node* const> readers = users(rounded);
    return std::any_of(readers.begin(), readers.end(), [this](const Node* reader) {
      if (!last_ && reader->op == Op::Cast && reader->dtype == DType::Float32)
        return is_operand(*reader);
      return op_info(reader->op).kind == OpKind::Contraction && is_16_bit_convolution(*reader);
    });
  }

  /// The operand dtype of the convolution that the activation is computed from element by element;
  /// Float32 if no convolution is close enough.
  DType made_by_convolution(const Node& image) const {
    constexpr int kMostSteps = 6;  // a bias, a normalisation, an activation function
    const Node* node = &image;
    for (int k = 0; k < kMostSteps && !node->realised(); ++k) {
      if (node->op == Op::Conv2d) return type_of_images(*node);
      const bool same = op_info(node->op).kind == OpKind::Elementwise ||
                        (has_trait(node->op, kAcrossChannels) && op_info(node->op).arity == 1);
      if (!same || node->shape.rank() != 4) break;
      node = node->input(0);
    }
    return DType::Float32;
  }

  /// The operand dtype of a convolution whose input gradient this node adds to another gradient;
  /// Float32 if the node is no such sum.
  DType summed_gradient(const Node& node) const {
    if (node.op != Op::Add) return DType::Float32;
    for (const Node* part : node.in()) {
      for (int k = 0; k < kMostMoves && !part->realised() && moves(*part); ++k)
        part = on_gpu_ && !last_ ? part->input(0) : part;
      if (!part->realised() && part->op == Op::Conv2dInputGrad && is_16_bit_convolution(*part))
        return type_of_images(*part);
    }
    return DType::Float32;
  }

  /// The activation mask that is the only reader of a gradient sum.
  const Node* masked(const Node& sum) const {
    const std::span<const Node* const> readers = users(sum);
    const bool one =
        readers.size() == 1 && readers[0]->op == Op::Where && wanted_.count(readers[0]) == 0;
    return one ? readers[0] : &sum;
  }

  const NodeUsers users_;
  const bool on_gpu_, last_;
  std::unordered_set<const Node*> wanted_;
  std::unordered_map<const Node*, DType> lowered_;
};

}  // namespace

Roots lower_activation_precision(Roots roots, const PlanOptions& options) {
  if (!options.channels_last && !stores_activations_in_16_bits(roots.order().nodes, options))
    return roots;
  return ActivationLowering(roots, options.traits.stores_16_bits, options.channels_last)
      .rewritten(roots);
}

}  // namespace tenon
