// Where a convolution's operands are 16 bits, torch.autocast stores its result in 16 bits too. So
// does this pass, for graphs of a GPU that keep the images of convolutions with the channels last
// and for those, of the host too, whose many convolutions read and make them in their own order:
//
// * results of convolutions and gradients with respect to their inputs are rounded;
// * an image that a convolution reads rounded is read rounded by everyone else;
// * sums of such gradients, where a network branches, are rounded behind the mask that follows;
// * on a GPU that keeps images in their own order, what picks, pads or turns an image that was
//   cast to float32 does so before that;
// and, with the channels last alone,
//
// * max pooling of such an image, and its gradient, are of 16 bits: the maximum of rounded values
//   is the rounded maximum, and of equal ones the first counts;
// * response normalisation of an image that a convolution made, and its gradient, likewise: results
//   are rounded, all arithmetic within is float32;
// * gradients of filters by bfloat16 are rounded, as torch.autocast's are, and added up in float32.
//
// All arithmetic between is float32; sums over images and what normalisation makes of them stay
// float32. A result to which a bias is added at once is rounded behind that, and
// one that goes into such a sum behind the sum.
#include "plan/lower_activation_precision.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <tenon/ops.h>

#include "graph/node.h"
#include "ops/table.h"
#include "plan/layout.h"
#include "plan/lower_product_precision.h"
#include "plan/node_users.h"
#include "plan/sum_rules.h"

namespace tenon {
namespace {

constexpr int kMostMoves = 8;  // between a gradient and the sum that takes it

bool is_16_bit(DType dtype) { return dtype == DType::BFloat16 || dtype == DType::Float16; }

/// Ops that read and write images of 16 bits where they are given such.
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
  /// The 16-bit type of the images of a convolution, which makes and reads them so; Float32: none.
  DType type_of_images(const Node& node) const {
    const bool lies_last = is_image_convolution(node) || is_pixel_product(node);
    if (!last_) return lower_type(node);
    return lies_last && is_16_bit(node.input(0)->dtype) ? node.input(0)->dtype : DType::Float32;
  }
  bool is_16_bit_convolution(const Node& node) const {
    return type_of_images(node) != DType::Float32;
  }

  /// Whether the host makes a sum of (x - mean)² of the sums of x and x², which are made while x is
  /// written: not where what lies between is an image of its own, which a convolution reads.
  bool sums_by_squares(const Node& node) const {
    const Node* x = on_gpu_ ? nullptr : summed_deviations(node);
    if (x == nullptr || lowered_.count(x) == 0) return false;
    const Node* square = node.input(0);
    return lowered_.count(square) == 0 && lowered_.count(square->input(0)) == 0;
  }

  /// Sum of (x - mean)² as the sum of x² without that of the mean's. What cancels is less than what
  /// rounding x to 16 bits has changed. `square`: the rewritten summand.
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

  /// Elements of 16 bits that are moved and then cast to float32, rather than the reverse: what
  /// moves them reads and writes half the bytes, and the cast to float32 is part of whatever reads
  /// them.
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

  /// Whether the node has an image's elements, or zeros, at other places.
  static bool moves(const Node& node) {
    if (const auto* pad = node.attrs.get_if<PadAttrs>()) return pad->value.is_zero();
    return node.op == Op::Slice || node.op == Op::Permute || node.op == Op::Reshape;
  }

  static Tensor lower_pooling_precision(const Node& node, std::span<const Tensor> inputs,
                                        DType dtype) {
    std::vector<Tensor> half;
    for (const Tensor& input : inputs) {
      const Tensor rounded = before_cast(*input.node(), dtype);
      half.push_back(rounded.defined() ? rounded : cast(input, dtype));
    }
    return cast(make_node(node.op, dtype, node.shape, node.attrs, half), node.dtype);
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

  /// The library's kernels for filters' gradients are several times faster where they store 16
  /// bits. float16 might overflow where the sum is over many pixels.
  static bool gains_by_rounding(const Node& node) {
    return is_image_convolution(node) && takes_channels_last(node, 0) &&
           node.input(0)->dtype == DType::BFloat16;
  }

  /// On the host, a result that is handed on to one reader, as to a normalisation by moments that
  /// are known, is not stored.
  bool feeds_epilogue(const Node& node) const {
    return !on_gpu_ && node.op == Op::Conv2d && users(node).size() == 1;
  }

  /// A vector of channels is all that is added, and the sum alone goes on.
  bool feeds_bias(const Node& node) const {
    const std::span<const Node* const> readers = users(node);
    return readers.size() == 1 && readers[0]->op == Op::Add &&
           (readers[0]->input(0)->op == Op::Expand || readers[0]->input(1)->op == Op::Expand);
  }

  /// The one part of a sum of gradients that the sum is an epilogue of.
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
    // A matrix product takes epilogues on.
    const bool first = fits(0) && (!fits(1) || is_pixel_product(*sum.input(0)) ||
                                   !is_pixel_product(*sum.input(1)));
    return &node == sum.input(first ? 0 : 1);
  }

  /// The type that a convolution reads the image in; Float32: none does.
  DType read_by_convolutions(const Node& node) const {
    const OpKind kind = op_info(node.op).kind;
    if (kind != OpKind::Elementwise &&
        !(last_ && (kind == OpKind::Pooling || runs_in_16_bits(node.op))))
      return DType::Float32;
    for (const Node* cast : users(node))
      if (cast->op == Op::Cast && is_16_bit(cast->dtype) && is_operand(*cast)) return cast->dtype;
    return DType::Float32;
  }

  /// Whether a convolution reads what is rounded, or what is cast to float32 again behind that.
  bool is_operand(const Node& rounded) const {
    const std::span<const Node* const> readers = users(rounded);
    return std::any_of(readers.begin(), readers.end(), [this](const Node* reader) {
      if (!last_ && reader->op == Op::Cast && reader->dtype == DType::Float32)
        return is_operand(*reader);
      return op_info(reader->op).kind == OpKind::Contraction && is_16_bit_convolution(*reader);
    });
  }

  /// The type of the operands of the convolution that the image is computed of, element by element;
  /// Float32: none is near.
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

  /// The type of a convolution whose input's gradient the node adds to another; Float32: it is
  /// none.
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

  /// The activation function's slope that alone reads a gradient.
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
  return ActivationLowering(roots, options.traits.is_queued, options.channels_last)
      .rewritten(roots);
}

}  // namespace tenon
