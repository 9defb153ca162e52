// Three rules. First, a 1 x 1 filter with a stride reads only every stride-th pixel: these pixels
// are selected first. Second, in NHWC, the input gradient of such a convolution is spread among
// zeros at the end. Third, the input gradient of any other strided convolution: element s u + a of
// the gradient reads filter taps a, a + s, a + 2 s …, so each phase a is a gradient of stride 1
// with a filter of its own. All phases are channels of one such gradient; reading the result
// interleaves them. If the taps are not a multiple of the stride, the shorter phases get taps of
// zero: 16 taps instead of 9 for 3 x 3 filters in steps of 2.
//
// Sums have the same terms in another order, plus zeros.
#include "plan/rewrites/strided.h"

#include <algorithm>
#include <unordered_set>

#include <tenon/ops.h>

#include "graph/attrs.h"
#include "graph/node.h"
#include "plan/layout/layout.h"

namespace tenon {
namespace {

/// Whether the rewrite pays: kernels for stride 1 are fast if they round operands and have enough
/// channels.
bool pays(const Node& node, const ContractionAttrs& attrs, const Shape& w) {
  constexpr std::int64_t kChannels = 16;
  const DType dtype = node.input(0)->dtype;
  const bool rounds =
      dtype == DType::Float32 ? attrs.precision != Precision::Fp32 : dtype != DType::Float64;
  return rounds && attrs.conv.groups == 1 && std::min(w[0], w[1]) >= kChannels &&
         node.shape.numel() > 0;
}

/// One axis of an image: its phases and their positions.
struct Phases {
  std::int64_t stride, phases, taps;  // phases that have taps; taps of each phase
  std::int64_t front, behind;         // zeros around the filter
  std::int64_t first, count;          // positions of each phase that are in the result

  /// Zeros in front of the filter make the padding a multiple of the stride, so that all phases
  /// start at the same position.
  Phases(std::int64_t by, std::int64_t padding, std::int64_t filter, std::int64_t size)
      : stride(by), front((by - padding % by) % by), first((padding + front) / by) {
    const std::int64_t all = filter + front;
    phases = std::min(by, all);
    taps = (all + by - 1) / by;
    behind = taps * phases - all;
    count = (size + by - 1) / by;
  }
};

Tensor input_grad(const Node& node, const Tensor& dy, const Tensor& w) {
  ContractionAttrs attrs = node.attrs.as<ContractionAttrs>();
  const ConvAttrs& v = attrs.conv;
  const Shape& x = node.shape;
  const std::int64_t filters = w.size(0), channels = w.size(1);
  const Phases h(v.stride_h, v.pad_h, w.size(2), x[2]), u(v.stride_w, v.pad_w, w.size(3), x[3]);
  Tensor taps = pad(w, {u.front, u.behind, h.front, h.behind});
  taps = reshape(taps, {filters, channels, h.taps, h.phases, u.taps, u.phases});
  taps = reshape(permute(taps, {0, 3, 5, 1, 2, 4}),
                 {filters, h.phases * u.phases * channels, h.taps, u.taps});
  const Shape wide{x[0], taps.size(1), dy.size(2) + h.taps - 1, dy.size(3) + u.taps - 1};
  attrs.conv = {};
  const Tensor operands[2] = {dy, taps};
  Tensor y = make_node(Op::Conv2dInputGrad, node.dtype, wide, attrs, operands);
  y = pad(y, {-u.first, u.first + u.count - wide[3], -h.first, h.first + h.count - wide[2]});
  y = reshape(y, {x[0], h.phases, u.phases, channels, h.count, u.count});
  y = permute(y, {0, 3, 4, 1, 5, 2});
  y = pad(y, {0, u.stride - u.phases, 0, 0, 0, h.stride - h.phases});
  y = reshape(y, {x[0], channels, h.count * h.stride, u.count * u.stride});
  return pad(y, {0, x[3] - y.size(3), 0, x[2] - y.size(2)});
}

bool is_strided(const Node& node) {
  if (node.op != Op::Conv2d && node.op != Op::Conv2dInputGrad && node.op != Op::Conv2dWeightGrad)
    return false;
  const ConvAttrs& v = node.attrs.as<ContractionAttrs>().conv;
  return v.stride_h != 1 || v.stride_w != 1;
}

/// The first and the third rule; undefined if neither fits.
Tensor without_stride(const Node& node, std::span<const Tensor> inputs) {
  const bool by_input = node.op == Op::Conv2dInputGrad;
  ContractionAttrs attrs = node.attrs.as<ContractionAttrs>();
  ConvAttrs& v = attrs.conv;
  const Shape& w = node.op == Op::Conv2dWeightGrad ? node.shape : inputs[1].shape();
  if (!pays(node, attrs, w)) return {};
  if (by_input)
    return v.dil_h == 1 && v.dil_w == 1 ? input_grad(node, inputs[0], inputs[1]) : Tensor();
  if (w[2] != 1 || w[3] != 1 || v.pad_h != 0 || v.pad_w != 0) return {};
  const Tensor rows = slice(inputs[0], 2, 0, inputs[0].size(2), v.stride_h);
  const Tensor operands[2] = {slice(rows, 3, 0, rows.size(3), v.stride_w), inputs[1]};
  v.stride_h = v.stride_w = 1;
  return make_node(node.op, node.dtype, node.shape, attrs, operands);
}

/// The second rule; undefined if it does not fit.
Tensor spread_pixels(const Node& node, std::span<const Tensor> inputs) {
  ContractionAttrs attrs = node.attrs.as<ContractionAttrs>();
  const ConvAttrs v = attrs.conv;
  const Shape &x = node.shape, &w = inputs[1].shape(), &dy = inputs[0].shape();
  const bool bf16 = attrs.precision == Precision::Bf16;
  if (v.groups != 1 || w[2] != 1 || w[3] != 1 || v.pad_h != 0 || v.pad_w != 0 ||
      (!bf16 && attrs.precision != Precision::Fp16))
    return {};
  attrs.conv = {};
  const Tensor pixels = make_node(node.op, node.dtype, {x[0], x[1], dy[2], dy[3]}, attrs, inputs);
  Tensor y = permute(cast(pixels, bf16 ? DType::BFloat16 : DType::Float16), {0, 2, 3, 1});
  y = reshape(y, {x[0], dy[2], 1, dy[3], 1, x[1]});
  y = pad(y, {0, 0, 0, v.stride_w - 1, 0, 0, 0, v.stride_h - 1});
  y = reshape(y, {x[0], dy[2] * v.stride_h, dy[3] * v.stride_w, x[1]});
  y = pad(y, {0, 0, 0, x[3] - y.size(2), 0, x[2] - y.size(1)});
  return cast(permute(y, {0, 3, 1, 2}), node.dtype);
}

}  // namespace

Roots remove_strides(Roots roots, const PlanOptions& options) {
  // Results that the user asked for are not rounded to the 16 bits of activations.
  std::unordered_set<const Node*> wanted;
  for (const Tensor& root : roots) wanted.insert(root.node());
  return rewrite_where(
      roots, is_strided, [&](Node& node, std::span<const Tensor> inputs) -> Tensor {
        const bool stays_last =
            options.channels_last && node.op == Op::Conv2dInputGrad && is_image_convolution(node);
        if (!stays_last) return without_stride(node, inputs);
        return wanted.count(&node) == 0 ? spread_pixels(node, inputs) : Tensor();
      });
}

}  // namespace tenon
