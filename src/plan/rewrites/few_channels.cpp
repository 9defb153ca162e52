// Convolutions of stride s over few channels become convolutions of stride 1 over more channels.
//
// At output position p, tap r of the filter reads input element s p + r. With r = s q + a this is
// element p + q of phase a. So the convolution is one of stride 1 over the phases, which are
// channels of their own, with filters of 1/s as many taps. Example: 3 channels read by 11 x 11
// filters in steps of 4 become 48 channels read by 3 x 3 filters. Taps beyond the filter are zero.
// Channels of zeros are added until a row is a multiple of 16 bytes.
//
// The image is rounded and written in NHWC once, for the convolution and its weight gradient. Sums
// have the same terms in another order, plus zeros.
#include "plan/rewrites/few_channels.h"

#include <tenon/ops.h>

#include "base/index.h"
#include "graph/attrs.h"
#include "graph/node.h"
#include "plan/layout/layout.h"

namespace tenon {
namespace {

// Number of channels of all phases together. Over fewer channels the library's kernels are slower
// than our own NCHW kernels: 3 x 3 filters over 8 channels take .36 ms, over 3 channels .22 ms
// (VGG16's first layer on an H200).
constexpr std::int64_t kFewestChannels = 32, kMostChannels = 64;
constexpr std::int64_t kStep = 8;  // channels of 16 bits in 16 bytes
// Minimum for any number of taps (plan/layout/layout.cpp).
constexpr std::int64_t kFewestFilters = 64;

/// One axis: number of taps in each phase, and number of positions of each phase.
struct Axis {
  std::int64_t stride, pad, taps, places;

  Axis(std::int64_t by, std::int64_t padding, std::int64_t filter, std::int64_t out)
      : stride(by), pad(padding), taps(divide_up(filter, by)), places(out + taps - 1) {}
  /// Zeros that are added after `size` elements of the image. Negative: the last elements are not
  /// read.
  std::int64_t behind(std::int64_t size) const { return places * stride - pad - size; }
};

class FullChannels {
 public:
  FullChannels(const Node& node, const Shape& x, const Shape& y, const Shape& w)
      : node_(node),
        attrs_(node.attrs.as<ContractionAttrs>()),
        w_(w),
        h_(attrs_.conv.stride_h, attrs_.conv.pad_h, w[2], y[2]),
        u_(attrs_.conv.stride_w, attrs_.conv.pad_w, w[3], y[3]),
        filled_(round_up(phases(), kStep) - phases()),
        x_(x) {}

  bool fits() const {
    const ConvAttrs& v = attrs_.conv;
    return v.dil_h == 1 && v.dil_w == 1 && w_[0] >= kFewestFilters && phases() >= kFewestChannels &&
           phases() <= kMostChannels && h_.stride <= w_[2] && u_.stride <= w_[3];
  }

  Tensor convolution(const Tensor& x, const Tensor& w) const {
    const Tensor operands[2] = {image(x), filters(w)};
    return make_node(Op::Conv2d, node_.dtype, node_.shape, behind(), operands);
  }

  Tensor filter_gradient(const Tensor& x, const Tensor& dy) const {
    const Tensor operands[2] = {image(x), rounded(dy)};
    const Shape wide{w_[0], phases() + filled_, h_.taps, u_.taps};
    Tensor dw = make_node(Op::Conv2dWeightGrad, node_.dtype, wide, behind(), operands);
    dw = slice(dw, 1, 0, phases());
    dw = reshape(dw, {w_[0], w_[1], h_.stride, u_.stride, h_.taps, u_.taps});
    dw = reshape(permute(dw, {0, 1, 4, 2, 5, 3}),
                 {w_[0], w_[1], h_.taps * h_.stride, u_.taps * u_.stride});
    return slice(slice(dw, 2, 0, w_[2]), 3, 0, w_[3]);
  }

 private:
  std::int64_t phases() const { return w_[1] * h_.stride * u_.stride; }

  /// Cast to 16 bits if the convolution multiplies in 16 bits.
  Tensor rounded(const Tensor& t) const {
    return t.dtype() == DType::Float32 ? cast(t, lower_type(node_)) : t;
  }

  /// [N, H, W, phases] as images [N, phases, H, W], with channels of zeros added.
  Tensor filled(const Tensor& rows) const {
    return permute(filled_ > 0 ? pad(rows, {0, filled_}) : rows, {0, 3, 1, 2});
  }

  Tensor image(const Tensor& x) const {
    const Tensor whole = pad(x, {u_.pad, u_.behind(x_[3]), h_.pad, h_.behind(x_[2])});
    return filled(by_phases(whole));
  }

  Tensor filters(const Tensor& w) const {
    return filled(
        by_phases(pad(w, {0, u_.taps * u_.stride - w_[3], 0, h_.taps * h_.stride - w_[2]})));
  }

  /// Images as [N, positions, positions, phases], rounded.
  Tensor by_phases(const Tensor& images) const {
    const std::int64_t count = images.size(0), rows = images.size(2) / h_.stride,
                       columns = images.size(3) / u_.stride;
    const Tensor apart = reshape(images, {count, w_[1], rows, h_.stride, columns, u_.stride});
    const Tensor inside = rounded(permute(apart, {0, 2, 4, 1, 3, 5}));
    return reshape(inside, {count, rows, columns, phases()});
  }

  /// Attributes of the convolution over the phases. The image already contains its padding.
  ContractionAttrs behind() const {
    ContractionAttrs attrs = attrs_;
    attrs.conv.stride_h = attrs.conv.stride_w = 1;
    attrs.conv.pad_h = attrs.conv.pad_w = 0;
    return attrs;
  }

  const Node& node_;
  const ContractionAttrs& attrs_;
  const Shape w_;
  const Axis h_, u_;
  const std::int64_t filled_;
  const Shape x_;
};

/// Undefined if the rule does not fit.
Tensor with_full_channels(const Node& node, std::span<const Tensor> inputs) {
  const bool by_filter = node.op == Op::Conv2dWeightGrad;
  const Shape& second = inputs[1].shape();
  const FullChannels rule(node, inputs[0].shape(), by_filter ? second : node.shape,
                          by_filter ? node.shape : second);
  if (!rule.fits()) return {};
  return by_filter ? rule.filter_gradient(inputs[0], inputs[1])
                   : rule.convolution(inputs[0], inputs[1]);
}

}  // namespace

Roots fill_channels(Roots roots, const PlanOptions&) {
  const auto reads_image = [](const Node& node) {
    return (node.op == Op::Conv2d || node.op == Op::Conv2dWeightGrad) &&
           is_image_convolution(node) && !takes_channels_last(node, 0);
  };
  return rewrite_where(roots, reads_image, with_full_channels);
}

}  // namespace tenon
