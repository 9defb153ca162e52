// Conversions between NCHW and NHWC, and the decision which convolutions gain from NHWC. What the
// layout means is described in layout.h.
#include "plan/layout/layout.h"

#include <algorithm>

#include "ops/table.h"
#include "plan/graph/views.h"

namespace tenon {
namespace {

constexpr int kPlaceInLast[4] = {0, 2, 3, 1};  // axis of NCHW at each position of NHWC
constexpr std::int64_t kPixelChannels = 16, kPixelChannelStep = 8;

}  // namespace

Shape channels_last(const Shape& images) { return {images[0], images[2], images[3], images[1]}; }

Ref channels_last(const Ref& images) {
  Ref out = images;
  out.shape = channels_last(images.shape);
  for (int d = 0; d < 4; ++d) out.stride[d] = images.stride[kPlaceInLast[d]];
  return out;
}

Ref channels_first(const Ref& images) {
  Ref out = images;
  for (int d = 0; d < 4; ++d) {
    out.shape[kPlaceInLast[d]] = images.shape[d];
    out.stride[kPlaceInLast[d]] = images.stride[d];
  }
  return out;
}

bool has_channels_inside(const Ref& images) {
  const auto is_outside = [&images](int d) {
    return images.shape[d] == 1 || images.stride[d] > images.stride[1];
  };
  return images.shape.rank() == 4 && images.stride[1] == 1 && is_outside(0) && is_outside(2) &&
         is_outside(3);
}

bool reads_any_order(const Node& node) {
  const OpKind kind = op_info(node.op).kind;
  return node.attrs.get_if<PadAttrs>() != nullptr || kind == OpKind::Elementwise ||
         kind == OpKind::Reduction;
}

Attrs channels_last_attrs(const Node& node) {
  if (const auto* pad = node.attrs.get_if<PadAttrs>(); pad != nullptr) {
    PadAttrs permuted = *pad;
    for (int d = 0; d < 4; ++d) {
      permuted.before[d] = pad->before[kPlaceInLast[d]];
      permuted.after[d] = pad->after[kPlaceInLast[d]];
    }
    return permuted;
  }
  if (op_info(node.op).kind != OpKind::Reduction) return node.attrs;
  const std::int64_t axes = node.attrs.as<ReduceAttrs>().axes;
  ReduceAttrs permuted;
  for (int d = 0; d < 4; ++d) permuted.axes |= (axes >> kPlaceInLast[d] & 1) << d;
  return permuted;
}

bool is_pixel_product(const Node& node) {
  const bool by_filter = node.op == Op::Conv2dWeightGrad;
  if (node.op != Op::Conv2d && node.op != Op::Conv2dInputGrad && !by_filter) return false;
  const auto& attrs = node.attrs.as<ContractionAttrs>();
  const ConvAttrs& v = attrs.conv;
  const Shape& w = by_filter ? node.shape : node.input(1)->shape;
  const bool plain = v.stride_h == 1 && v.stride_w == 1 && v.pad_h == 0 && v.pad_w == 0;
  const DType dtype = node.input(0)->dtype;
  const bool rounds =
      dtype == DType::Float32 ? attrs.precision != Precision::Fp32 : dtype != DType::Float64;
  return plain && rounds && v.groups == 1 && w[2] == 1 && w[3] == 1 &&
         std::min(w[0], w[1]) >= kPixelChannels && w[0] % kPixelChannelStep == 0 &&
         w[1] % kPixelChannelStep == 0 && node.shape.numel() > 0 &&
         node.input(0)->shape.numel() > 0;
}

namespace {

/// The activations at both ends of a chain of convolutions must be transposed. From this many
/// convolutions on, the gain is larger than that cost.
constexpr std::ptrdiff_t kFewestConvolutions = 3;
/// With fewer channels, or with small filters, our own NCHW kernels are faster than the library's
/// NHWC kernels. Steps on an H200: resnet56 (16 to 64 channels, 3 x 3) takes 3.7 ms in NCHW and 4.8
/// ms in NHWC; alexnet_r (32 and 64 channels, 5 x 5) takes 1.87 ms and 1.13 ms.
constexpr std::int64_t kImageChannels = 64, kFewestImageChannels = 16, kFilterNumbers = 512;

/// Sizes of one group: channels of the convolution's input, channels of its result, and taps of a
/// filter.
struct Channels {
  std::int64_t in = 0, out = 0, taps = 0;
};
Channels channels_of(const Node& node) {
  const Shape& w = node.op == Op::Conv2dWeightGrad ? node.shape : node.input(1)->shape;
  return {w[1], w[0] / node.attrs.as<ContractionAttrs>().conv.groups, w[2] * w[3]};
}

/// Whether the images are a view of NHWC rows (plan/rewrites/few_channels.h writes images so).
bool is_written_last(const Node& images) {
  const auto* order = images.realised() ? nullptr : images.attrs.get_if<PermuteAttrs>();
  return order != nullptr && images.shape.rank() == 4 && images.shape[1] % kPixelChannelStep == 0 &&
         order->axes[0] == 0 && order->axes[1] == 3 && order->axes[2] == 1 && order->axes[3] == 2;
}

bool is_convolution(const Node& node) {
  return node.op == Op::Conv2d || node.op == Op::Conv2dInputGrad || node.op == Op::Conv2dWeightGrad;
}

/// Whether enough convolutions of a graph qualify that the layout pays for the whole graph.
bool are_most(std::ptrdiff_t fit, std::ptrdiff_t all) {
  return fit >= kFewestConvolutions && 2 * fit >= all;
}

}  // namespace

bool is_image_convolution(const Node& node) {
  if (node.realised() || !is_convolution(node) || is_pixel_product(node)) return false;
  const auto& attrs = node.attrs.as<ContractionAttrs>();
  const DType dtype = node.input(0)->dtype;
  const bool is_16_bit = dtype == DType::BFloat16 || dtype == DType::Float16;
  // The library's kernels for grouped convolutions in TF32 are slow: a step of AlexNet of 2012
  // takes 9.4 ms on an H100 in NCHW, 165 ms in NHWC.
  const bool in_tf32 = attrs.precision == Precision::Tf32 && attrs.conv.groups == 1;
  const bool rounds = dtype == DType::Float32 && (in_tf32 || attrs.precision == Precision::Bf16 ||
                                                  attrs.precision == Precision::Fp16);
  const Channels channels = channels_of(node);
  const auto fits = [&channels](std::int64_t count) {
    const bool many = count >= kFewestImageChannels && count * channels.taps >= kFilterNumbers;
    return count % kPixelChannelStep == 0 && (many || count >= kImageChannels);
  };
  const bool image = attrs.conv.groups == 1 && node.op != Op::Conv2dInputGrad &&
                     (channels.in < kPixelChannels || is_written_last(*node.input(0)));
  return (is_16_bit || rounds) && fits(channels.out) && (image || fits(channels.in)) &&
         node.shape.numel() > 0 && node.input(0)->shape.numel() > 0;
}

bool keeps_channels_last(std::span<Node* const> nodes, const PlanOptions& options) {
  if (!options.traits.convolves_channels_last || !options.enabled(kLayout) ||
      !options.enabled(kChannelsLast))
    return false;
  std::ptrdiff_t all = 0, fit = 0;
  for (const Node* node : nodes) {
    if (node->realised() || node->op != Op::Conv2d || is_pixel_product(*node)) continue;
    ++all;
    fit += is_image_convolution(*node) ? 1 : 0;
  }
  return are_most(fit, all);
}

namespace {

/// On the host: several convolutions of many channels multiply in bfloat16.
bool host_stores_activations_in_16_bits(std::span<Node* const> nodes, const PlanOptions& options) {
  if (!options.traits.keeps_bf16_matrices || !options.enabled(kAutocast)) return false;
  return std::count_if(nodes.begin(), nodes.end(), [](const Node* node) {
           if (node->realised() || node->op != Op::Conv2d) return false;
           const Channels channels = channels_of(*node);
           return lower_type(*node) == DType::BFloat16 &&
                  std::min(channels.in, channels.out) >= kPixelChannels;
         }) >= kFewestConvolutions;
}

}  // namespace

bool stores_activations_in_16_bits(std::span<Node* const> nodes, const PlanOptions& options) {
  if (!options.enabled(kLowerActivationPrecision)) return false;
  if (!options.traits.stores_16_bits) return host_stores_activations_in_16_bits(nodes, options);
  if (!options.traits.rounds_operands || !options.enabled(kLayout)) return false;
  std::ptrdiff_t all = 0, fit = 0;
  for (const Node* node : nodes) {
    if (node->realised() || node->op != Op::Conv2d) continue;
    ++all;
    const Channels channels = channels_of(*node);
    fit += !is_pixel_product(*node) && lower_type(*node) != DType::Float32 &&
           std::min(channels.in, channels.out) >= kPixelChannelStep;
  }
  return are_most(fit, all) && !options.channels_last;
}

DType lower_type(const Node& convolution) {
  if (convolution.realised() || !is_convolution(convolution)) return DType::Float32;
  const DType dtype = convolution.input(0)->dtype;
  if (dtype == DType::BFloat16 || dtype == DType::Float16) return dtype;
  if (dtype != DType::Float32) return DType::Float32;
  const Precision precision = convolution.attrs.as<ContractionAttrs>().precision;
  if (precision == Precision::Bf16) return DType::BFloat16;
  return precision == Precision::Fp16 ? DType::Float16 : DType::Float32;
}

bool reads_16_bit_image(const Node& convolution, int index) {
  const bool by_filter = convolution.op == Op::Conv2dWeightGrad;
  if (index == 1 && !by_filter) return false;
  const Channels channels = channels_of(convolution);
  const bool of_result = convolution.op == Op::Conv2dInputGrad || index == 1;
  const Node* image = base_of(convolution.input(index));
  return (of_result ? channels.out : channels.in) >= kPixelChannelStep && !image->realised() &&
         (is_convolution(*image) || op_info(image->op).kind == OpKind::Elementwise);
}

bool pools_channels_last(const Node& node) {
  constexpr std::int64_t kMostCell = 4, kMostTaps = 16;  // elements that one thread holds
  const bool picks = has_trait(node.op, kPicks);
  if (!picks && !has_trait(node.op, kAcrossChannels)) return false;
  const bool fits =
      node.dtype == DType::BFloat16 || node.dtype == DType::Float16 || node.dtype == DType::Float32;
  const bool images = node.shape.rank() == 4 && node.shape[1] % kPixelChannelStep == 0 &&
                      node.shape.numel() > 0 && node.input(0)->shape.numel() > 0;
  if (!fits || !images) return false;
  // One thread handles kPixelChannelStep channels and reads those of the neighbouring threads only.
  if (!picks) return node.attrs.as<ResponseAttrs>().size <= kPixelChannelStep + 1;
  const auto& v = node.attrs.as<PoolAttrs>();
  return v.dil_h == 1 && v.dil_w == 1 && v.stride_h * v.stride_w <= kMostCell &&
         v.kernel_h * v.kernel_w <= kMostTaps;
}

bool takes_channels_last(const Node& node, int index) {
  if (index == 1) return node.op == Op::Conv2dWeightGrad;
  return node.op == Op::Conv2dInputGrad || channels_of(node).in >= kPixelChannels ||
         is_written_last(*node.input(0));
}

}  // namespace tenon
