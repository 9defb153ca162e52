// Brings a convolution, its input gradient (a convolution of the output gradient with transposed
// and rotated filters) and its weight gradient to one geometry.
#include "cuda/engines/convolutions/conv_shape.h"

#include <algorithm>
#include <cstdlib>

#include "base/index.h"
#include "cuda/engines/launch/words.h"

namespace tenon::cuda {

namespace {

constexpr std::int64_t kMostPlaces = std::int64_t{1} << 29;

bool is_staged(DType t) {
  return t == DType::Float32 || t == DType::BFloat16 || t == DType::Float16;
}

/// The arithmetic of the products; Fp32 if these kernels cannot compute the contraction.
GemmMath math_of(const Contraction& c, DType a, DType b) {
  if (c.compute() == DType::BFloat16) return GemmMath::Bf16;
  if (c.compute() == DType::Float16) return GemmMath::F16;
  if (a == b && a == DType::BFloat16) return GemmMath::Bf16;
  if (a == b && a == DType::Float16) return GemmMath::F16;
  return c.tf32() ? GemmMath::Tf32 : GemmMath::Fp32;
}

std::int64_t reach_of(const View& view, const Shape& shape) {
  std::int64_t sum = 0;
  for (int d = 0; d < shape.rank(); ++d) sum += (shape[d] - 1) * std::abs(view.stride[d]);
  return sum;
}

class Shaper {
 public:
  Shaper(const Contraction& c, ConvShape& s) : c_(c), v_(c.attrs.conv), s_(s) {}

  void run() {
    s_.groups = v_.groups;
    if (c_.op == Op::Conv2d) forward();
    if (c_.op == Op::Conv2dInputGrad) input_grad();
    if (c_.op == Op::Conv2dWeightGrad) filter_grad();
    s_.whole = !s_.shifts && s_.channels % s_.vector == 0;
    s_.rows_first = std::abs(s_.weights.filter_stride) < std::abs(s_.weights.group_stride);
  }

 private:
  static ConvAxis axis(std::int64_t image, std::int64_t result, std::int64_t taps,
                       std::int64_t step, std::int64_t dilation, std::int64_t pad) {
    return {image, result, taps, step, dilation, -pad};
  }

  /// Sets the feature map to `x`; a group of the convolution has `channels` of its channels.
  void set_image(const View& x, const Shape& shape, std::int64_t channels) {
    s_.images = shape[0];
    s_.channels = channels;
    s_.image_value = x.value;
    s_.image_offset = x.offset;
    s_.image_step = channels * x.stride[1];
    const std::int64_t by_channels = (channels + s_.vector - 1) / s_.vector * s_.columns.taps;
    s_.shifts = s_.columns.taps <= s_.vector && channels < by_channels;
    ConvImage& p = s_.image;
    p.images = to_int(shape[0]), p.height = to_int(shape[2]), p.width = to_int(shape[3]);
    p.image_stride = to_int(x.stride[0]);
    p.row_stride = to_int(x.stride[2]), p.column_stride = to_int(x.stride[3]);
    if (s_.shifts) {
      p.groups = to_int(channels);
      p.elements = to_int(s_.columns.taps);
      p.group_stride = to_int(x.stride[1]);
      p.shift = to_int(s_.columns.dilation);
      p.element_stride = to_int(x.stride[3] * s_.columns.dilation);
    } else {
      p.groups = to_int((channels + s_.vector - 1) / s_.vector);
      p.elements = to_int(channels);
      p.group_stride = to_int(x.stride[1] * s_.vector);
      p.element_stride = to_int(x.stride[1]);
    }
  }

  /// Sets the filters by strides of (row of the result, channel of the image, tap row, tap column).
  void set_filters(const View& w, std::int64_t row, std::int64_t channel, std::int64_t tap_row,
                   std::int64_t tap_column) {
    s_.other_value = w.value;
    ConvFilters& f = s_.weights;
    f.filter_stride = to_int(row);
    f.row_stride = to_int(tap_row);
    f.group_stride = to_int(s_.shifts ? channel : channel * s_.vector);
    f.element_stride = to_int(s_.shifts ? tap_column : channel);
    f.column_stride = s_.shifts ? 0 : to_int(tap_column);
  }

  void forward() {
    const Shape &x = c_.a_shape, &w = c_.b_shape, &y = c_.out_shape;
    s_.rows = axis(x[2], y[2], w[2], v_.stride_h, v_.dil_h, v_.pad_h);
    s_.columns = axis(x[3], y[3], w[3], v_.stride_w, v_.dil_w, v_.pad_w);
    s_.filters = w[0] / v_.groups;
    set_image(c_.a, x, w[1]);
    const std::int64_t* stride = c_.b.stride;
    set_filters(c_.b, stride[0], stride[1], stride[2], stride[3]);
    s_.other_offset = c_.b.offset;
    s_.other_step = s_.filters * stride[0];
  }

  void input_grad() {
    const Shape &dy = c_.a_shape, &w = c_.b_shape, &dx = c_.out_shape;
    const std::int64_t filters = w[0] / v_.groups;
    s_.rows = axis(dy[2], dx[2], w[2], 1, v_.dil_h, (w[2] - 1) * v_.dil_h - v_.pad_h);
    s_.columns = axis(dy[3], dx[3], w[3], 1, v_.dil_w, (w[3] - 1) * v_.dil_w - v_.pad_w);
    s_.filters = w[1];
    set_image(c_.a, dy, filters);
    const std::int64_t* stride = c_.b.stride;
    set_filters(c_.b, stride[1], stride[0], -stride[2], -stride[3]);
    s_.other_offset = c_.b.offset + (w[2] - 1) * stride[2] + (w[3] - 1) * stride[3];
    s_.other_step = filters * stride[0];
  }

  void filter_grad() {
    const Shape &x = c_.a_shape, &w = c_.out_shape, &y = c_.b_shape;
    s_.filter_gradient = true;
    s_.rows = axis(x[2], y[2], w[2], v_.stride_h, v_.dil_h, v_.pad_h);
    s_.columns = axis(x[3], y[3], w[3], v_.stride_w, v_.dil_w, v_.pad_w);
    s_.filters = w[0] / v_.groups;
    set_image(c_.a, x, w[1]);
    s_.other_value = c_.b.value;
    s_.other_offset = c_.b.offset;
    s_.image_stride = c_.b.stride[0];
    s_.filter_stride = c_.b.stride[1];
    s_.other_step = s_.filters * c_.b.stride[1];
  }

  const Contraction& c_;
  const ConvAttrs v_;
  ConvShape& s_;
};

}  // namespace

const char* conv_shape(const Region& region, std::span<const Value> values, ConvShape& shape) {
  const Contraction& c = region.contraction;
  if (region.kind != RegionKind::Contraction || c.op == Op::Matmul) return "runs convolutions only";
  if (c.channels_last) return "does not write channels-last results";
  shape.image_dtype = values[at(c.a.value)].dtype;
  shape.other_dtype = values[at(c.b.value)].dtype;
  for (const DType dtype : {c.dtype, shape.image_dtype, shape.other_dtype})
    if (!is_staged(dtype)) return "takes float32 and 16-bit types only";
  shape.math = math_of(c, shape.image_dtype, shape.other_dtype);
  if (shape.math == GemmMath::Fp32) return "computes in tf32 and 16-bit types only, not in float32";
  if (c.out_shape.numel() == 0 || c.a_shape.numel() == 0 || c.b_shape.numel() == 0)
    return "does not run empty convolutions";
  const ConvAttrs v = c.attrs.conv;
  if (c.op == Op::Conv2dInputGrad && (v.stride_h != 1 || v.stride_w != 1))
    return "computes input gradients only of convolutions with stride 1";
  const Shape& y = c.b_shape;
  if (c.op == Op::Conv2dWeightGrad &&
      ((y[3] != 1 && c.b.stride[3] != 1) || (y[2] != 1 && c.b.stride[2] != y[3])))
    return "takes a gradient with contiguous pixels only";
  if (std::max({reach_of(c.a, c.a_shape), reach_of(c.b, c.b_shape), c.out_shape.numel()}) >=
      kMostPlaces)
    return "takes only tensors that 32-bit offsets can address";
  shape.vector = shape.math == GemmMath::Tf32 ? 4 : 8;
  shape.reduces_channels =
      c.op != Op::Conv2dWeightGrad && c.has_epilogue && !region.map.reduces.empty();
  Shaper(c, shape).run();
  return nullptr;
}

}  // namespace tenon::cuda
