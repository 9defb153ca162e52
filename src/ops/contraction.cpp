// Matrix products and convolutions. Gradients of contractions are contractions, so they can be
// differentiated again.
//
// Matmul nodes take equal batch axes: builders expand operands by views, and Expand's gradient sums
// again.
#include <algorithm>

#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/rearrange.h>

#include "base/make_error.h"
#include "base/str.h"
#include "graph/called.h"
#include "graph/precision.h"
#include "ops/infer.h"
#include "ops/rules.h"

namespace tenon {
namespace {

// Adds a bias to y, a product of operands of `dtype`; y's dtype is as product_attrs() leaves it.
Tensor add_bias(const char* op, const Tensor& y, DType dtype, const Tensor& bias, int axis) {
  if (!bias.defined()) return y;
  if (bias.shape() != Shape{y.size(axis)})
    throw make_error<ShapeError>(where(op), ": the bias is ", bias.shape(), ", the output has ",
                                 y.size(axis), " features");
  Ints sizes(static_cast<std::size_t>(y.rank()), 1);
  sizes[static_cast<std::size_t>(axis)] = y.size(axis);
  operand_dtype(op, y, bias);
  return cast(y + reshape(bias, sizes), promote(dtype, bias.dtype()));
}

Tensor with_matrix(const Tensor& x, Shape batch) {
  batch.push_back(x.size(-2));
  batch.push_back(x.size(-1));
  return broadcast_to(x, batch);
}

bool is_short_float(DType dtype) { return dtype == DType::Float16 || dtype == DType::BFloat16; }

// The precision of products of 16-bit operands whose sums stay float32 (product_dtype).
Precision unrounded(DType operands) {
  return operands == DType::Float16 ? Precision::Fp16 : Precision::Bf16;
}

// The attributes of a product built now, for operands of this dtype. If more is added to the sums
// of 16-bit operands, rounding happens once, after that addition.
ContractionAttrs product_attrs(DType dtype, bool more_is_added, const ConvAttrs& conv = {}) {
  if (more_is_added && is_short_float(dtype)) return {conv, unrounded(dtype)};
  return {conv, dtype == DType::Float32 ? current_precision() : Precision::Fp32};
}

// The product of integers, which wrap around: sums of element-wise products, which fuse into one
// kernel over [B, M, N, K].
Tensor whole_product(const Tensor& a, const Tensor& b) {
  const std::int64_t batch = Shape(a.shape().begin(), a.rank() - 2).numel();
  const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  const Tensor rows = reshape(a, {batch, m, 1, k}),
               columns = reshape(transpose(b, -1, -2), {batch, 1, n, k});
  Ints sizes = to_ints(a.shape());
  sizes.back() = n;
  return reshape(cast(sum(mul(rows, columns), {-1}), a.dtype()), sizes);
}

Tensor product(const Tensor& a, const Tensor& b, bool more_is_added = false) {
  if (is_integral(a.dtype()) && !is_bool(a.dtype())) return whole_product(a, b);
  return build(Op::Matmul, {a, b}, product_attrs(a.dtype(), more_is_added));
}

Shape batch_axes(const Tensor& x) { return Shape(x.shape().begin(), x.rank() - 2); }

// Whether batch axes and rows can be merged into one axis without a copy, as far as the graph
// shows.
bool merges_into_rows(const Tensor& x) {
  const Node& node = *x.node();
  return node.realised() || op_info(node.op).kind != OpKind::View || node.op == Op::Reshape;
}

// x [.., rows, K] times one matrix [K, N] as a single product. So the gradient of the matrix is a
// single product too, instead of a sum of one product for each batch entry.
Tensor times_one_matrix(const Tensor& x, const Tensor& matrix) {
  const std::int64_t rows = Shape(x.shape().begin(), x.rank() - 1).numel();
  Ints sizes = to_ints(x.shape());
  sizes.back() = matrix.size(1);
  return reshape(product(reshape(x, {rows, x.size(-1)}), matrix), sizes);
}

}  // namespace

// ---- Matrix products --------------------------------------------------------------------------

Tensor matmul(const Tensor& a, const Tensor& b) {
  const Called called("matmul");
  require_defined("matmul", a, b);
  if (a.rank() == 0 || b.rank() == 0)
    throw make_error<ShapeError>(where("matmul"), ": ", a.shape(), " and ", b.shape(),
                                 ": a scalar has no axis to sum over; use mul");
  const DType dtype = operand_dtype("matmul", a, b);
  Tensor x = cast(a.rank() == 1 ? unsqueeze(a, 0) : a, dtype);
  Tensor y = cast(b.rank() == 1 ? unsqueeze(b, 1) : b, dtype);
  if (x.size(-1) != y.size(-2))
    throw make_error<ShapeError>(where("matmul"), ": ", a.shape(), " and ", b.shape(),
                                 " do not multiply: ", x.size(-1), " columns meet ", y.size(-2),
                                 " rows");
  if (b.rank() == 2 && a.rank() > 2 && merges_into_rows(x)) return times_one_matrix(x, y);
  const Shape batch = broadcast_shapes(batch_axes(x), batch_axes(y), where("matmul"));
  Tensor out = product(with_matrix(x, batch), with_matrix(y, batch));
  if (b.rank() == 1) out = squeeze(out, -1);
  if (a.rank() == 1) out = squeeze(out, b.rank() == 1 ? -1 : -2);
  return out;
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Called called("linear");
  require_defined("linear", x, weight);
  if (weight.rank() != 2)
    throw make_error<ShapeError>(where("linear"), ": weight must be [out, in], not ",
                                 weight.shape());
  if (x.rank() == 0 || x.size(-1) != weight.size(1))
    throw make_error<ShapeError>(where("linear"), ": input ", x.shape(), " has ",
                                 x.rank() == 0 ? 0 : x.size(-1), " features, weight ",
                                 weight.shape(), " takes ", weight.size(1));
  const DType dtype = operand_dtype("linear", x, weight);
  // One matrix product whatever the number of batch axes. The number of rows is computed
  // explicitly, because reshape's -1 cannot be inferred when `in` is 0.
  const std::int64_t rows = Shape(x.shape().begin(), x.rank() - 1).numel();
  const Tensor flat = reshape(cast(x, dtype), {rows, x.size(-1)});
  const Tensor sums = product(flat, transpose(cast(weight, dtype)), bias.defined());
  const Tensor y = add_bias("linear", sums, dtype, bias, 1);
  Ints sizes = to_ints(x.shape());
  sizes.back() = weight.size(0);
  return reshape(y, sizes);
}

namespace {

// Products of 16-bit operands have float32 results if a precision is given: operands rounded by
// autocast, and results to which more is added. Otherwise the result has the operands' dtype.
DType product_dtype(const Node& node) {
  const DType dtype = node.input(0)->dtype;
  const bool unrounded = node.attrs.as<ContractionAttrs>().precision != Precision::Fp32;
  return is_short_float(dtype) && unrounded ? DType::Float32 : dtype;
}

// Gradients of a product have the operands' dtype, whatever the dtype of its sums.
ContractionAttrs gradient_attrs(const Tensor& out) {
  ContractionAttrs attrs = out.node()->attrs.as<ContractionAttrs>();
  if (out.dtype() != out.node()->input(0)->dtype) attrs.precision = Precision::Fp32;
  return attrs;
}

// The gradient of one matrix shared by a batch is summed over the batch in float32: the parts are
// not rounded before that sum.
ContractionAttrs gradient_attrs(const Tensor& out, int input) {
  const Node& operand = *out.node()->input(input);
  ContractionAttrs attrs = gradient_attrs(out);
  if (is_short_float(operand.dtype) && operand.op == Op::Expand && !operand.realised())
    attrs.precision = unrounded(operand.dtype);
  return attrs;
}

}  // namespace

Inferred infer_matmul(const Node& node) {
  require_floating(node, "cast it first");
  require_same_dtype(node);
  const Shape &a = node.input(0)->shape, &b = node.input(1)->shape;
  bool fits = a.rank() >= 2 && a.rank() == b.rank() && a.at(-1) == b.at(-2);
  for (int k = 0; fits && k < a.rank() - 2; ++k) fits = a[k] == b[k];
  if (!fits) throw make_error<ShapeError>(where(node), ": ", a, " and ", b, " do not multiply");
  Shape shape = a;
  shape[a.rank() - 1] = b.at(-1);
  return {product_dtype(node), Shape(shape.begin(), shape.rank())};
}

Gradients vjp_matmul(const Tensor& out, const Tensor& g) {
  const Tensor a = input_of(out, 0), b = input_of(out, 1), dy = cast(g, a.dtype());
  return {build(Op::Matmul, {dy, transpose(b)}, gradient_attrs(out, 0)),
          build(Op::Matmul, {transpose(a), dy}, gradient_attrs(out, 1))};
}

// ---- Convolutions -----------------------------------------------------------------------------

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  require_defined("conv2d", x, weight);
  if (has_no_batch(x, 4)) return squeeze(conv2d(unsqueeze(x, 0), weight, bias, options), 0);
  if (options.padding_mode && options.padding.h >= 0 && options.padding.w >= 0) {
    const Called called("conv2d");
    const auto [h, w] = options.padding;
    const Tensor padded = pad(x, {w, w, h, h}, *options.padding_mode);
    return conv2d(padded, weight, bias, {options.stride, 0, options.dilation, options.groups});
  }
  const DType dtype = operand_dtype("conv2d", x, weight);
  const ContractionAttrs attrs =
      product_attrs(dtype, bias.defined(),
                    {options.stride.h, options.stride.w, options.padding.h, options.padding.w,
                     options.dilation.h, options.dilation.w, options.groups});
  const Tensor sums = build(Op::Conv2d, {cast(x, dtype), cast(weight, dtype)}, attrs);
  return add_bias("conv2d", sums, dtype, bias, 1);
}

// The gradient of a convolution with respect to its input, which is what a transposed convolution
// computes. It supports no output padding of a stride or more; in that case the whole result is
// computed and sliced.
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& o) {
  constexpr const char* kName = "conv_transpose2d";
  const Called called(kName);
  require_defined(kName, x, weight);
  if (has_no_batch(x, 4)) return squeeze(conv_transpose2d(unsqueeze(x, 0), weight, bias, o), 0);
  if (x.rank() != 4)
    throw make_error<ShapeError>(where(kName), ": input must be [N, C, H, W] or [C, H, W], not ",
                                 x.shape());
  if (weight.rank() != 4 || weight.size(0) != x.size(1))
    throw make_error<ShapeError>(where(kName), ": weight is ", weight.shape(), "; for input ",
                                 x.shape(), " it must be [", x.size(1), ", K / groups, R, S]");
  if (o.groups > 0 && x.size(1) % o.groups != 0)
    throw make_error<ShapeError>(where(kName), ": ", x.size(1),
                                 " input channels do not divide into ", o.groups, " groups");
  struct Axis {
    std::int64_t stride, padding, dilation, more, reached, size;
  };
  const auto axis_of = [&](int a, std::int64_t stride, std::int64_t padding, std::int64_t dilation,
                           std::int64_t more) {
    if (more < 0 || more >= std::max(stride, dilation))
      throw make_error<ValueError>(where(kName), ": output padding ", more, " for stride ", stride,
                                   " and dilation ", dilation, "; it must be below one of them");
    const std::int64_t reached = (x.size(a) - 1) * stride + dilation * (weight.size(a) - 1) + 1;
    return Axis{stride, padding, dilation, more, reached, reached - 2 * padding + more};
  };
  Axis h = axis_of(2, o.stride.h, o.padding.h, o.dilation.h, o.output_padding.h);
  Axis w = axis_of(3, o.stride.w, o.padding.w, o.dilation.w, o.output_padding.w);
  const std::int64_t channels = weight.size(1) * o.groups;
  if (h.size < 1 || w.size < 1)
    throw make_error<ShapeError>(where(kName), ": input ", x.shape(), " and weight ",
                                 weight.shape(), " with this padding give an empty output");
  const bool whole = h.more >= h.stride || w.more >= w.stride;
  const DType dtype = operand_dtype(kName, x, weight);
  const ContractionAttrs attrs =
      product_attrs(dtype, bias.defined(),
                    {h.stride, w.stride, whole ? 0 : h.padding, whole ? 0 : w.padding, h.dilation,
                     w.dilation, o.groups});
  const Shape shape{x.size(0), channels, whole ? h.reached : h.size, whole ? w.reached : w.size};
  const DType sums = attrs.precision != Precision::Fp32 ? DType::Float32 : dtype;
  Tensor y =
      build_as(Op::Conv2dInputGrad, sums, shape, {cast(x, dtype), cast(weight, dtype)}, attrs);
  if (whole) y = pad(y, {-w.padding, w.more - w.padding, -h.padding, h.more - h.padding});
  return add_bias(kName, y, dtype, bias, 1);
}

namespace {

void require_conv_attrs(const Node& node, const ConvAttrs& c) {
  if (c.stride_h < 1 || c.stride_w < 1)
    throw make_error<ValueError>(where(node), ": stride ", c.stride_h, " x ", c.stride_w,
                                 "; at least 1");
  if (c.dil_h < 1 || c.dil_w < 1)
    throw make_error<ValueError>(where(node), ": dilation ", c.dil_h, " x ", c.dil_w,
                                 "; at least 1");
  if (c.pad_h < 0 || c.pad_w < 0)
    throw make_error<ValueError>(where(node), ": padding ", c.pad_h, " x ", c.pad_w,
                                 " is negative");
  if (c.groups < 1)
    throw make_error<ValueError>(where(node), ": ", c.groups, " groups; at least 1");
}

std::int64_t conv_size(const Node& node, std::int64_t in, std::int64_t kernel, std::int64_t stride,
                       std::int64_t pad, std::int64_t dil) {
  if (std::max(pad, stride) > kLargestSize ||
      dil > kLargestSize / std::max<std::int64_t>(kernel, 1))
    throw make_error<ShapeError>(where(node), ": padding ", pad, ", stride ", stride,
                                 " or dilation ", dil, " is too large: sizes overflow");
  const std::int64_t span = dil * (kernel - 1) + 1, padded = in + 2 * pad;
  if (kernel < 1) throw make_error<ShapeError>(where(node), ": the kernel has size 0");
  if (span > padded)
    throw make_error<ShapeError>(where(node), ": the kernel covers ", span,
                                 " pixels, the padded input has ", padded,
                                 ": use a larger input, a smaller kernel or more padding");
  return (padded - span) / stride + 1;
}

// The output shape for x and weight of these shapes.
Shape conv_shape(const Node& node, const Shape& x, const Shape& w) {
  const ConvAttrs& c = node.attrs.as<ContractionAttrs>().conv;
  require_conv_attrs(node, c);
  if (x.rank() != 4)
    throw make_error<ShapeError>(where(node), ": input must be [N, C, H, W] or [C, H, W], not ", x);
  if (w.rank() != 4)
    throw make_error<ShapeError>(where(node), ": weight must be [K, C / groups, R, S], not ", w);
  if (x[1] != w[1] * c.groups) {
    const std::string in_groups = c.groups == 1 ? "" : cat(" in ", c.groups, " groups");
    throw make_error<ShapeError>(where(node), ": input has ", x[1], " channels, weight ", w,
                                 " takes ", w[1] * c.groups, in_groups);
  }
  if (w[0] % c.groups != 0)
    throw make_error<ShapeError>(where(node), ": ", w[0], " output channels do not divide into ",
                                 c.groups, " groups");
  return {x[0], w[0], conv_size(node, x[2], w[2], c.stride_h, c.pad_h, c.dil_h),
          conv_size(node, x[3], w[3], c.stride_w, c.pad_w, c.dil_w)};
}

void require_output(const Node& node, const Shape& dy, const Shape& wanted) {
  if (dy != wanted)
    throw make_error<ShapeError>(where(node), ": the output's gradient is ", dy, ", the output is ",
                                 wanted);
}

// One operand is an input of the node `like`, the other the gradient of its result.
Tensor conv(Op op, const Tensor& a, const Tensor& b, const Shape& shape, const Tensor& like) {
  const DType dtype = like.node()->input(0)->dtype;
  return build_as(op, dtype, shape, {cast(a, dtype), cast(b, dtype)}, gradient_attrs(like));
}

}  // namespace

Inferred infer_conv2d(const Node& node) {
  require_floating(node, "cast it first");
  require_same_dtype(node);
  return {product_dtype(node), conv_shape(node, node.input(0)->shape, node.input(1)->shape)};
}

// Inputs (dy, weight); the node's own shape is the input's.
Inferred infer_conv2d_input_grad(const Node& node) {
  require_floating(node, "cast it first");
  require_same_dtype(node);
  require_output(node, node.input(0)->shape, conv_shape(node, node.shape, node.input(1)->shape));
  return {product_dtype(node), node.shape};
}

// Inputs (x, dy); the node's own shape is the weight's.
Inferred infer_conv2d_weight_grad(const Node& node) {
  require_floating(node, "cast it first");
  require_same_dtype(node);
  require_output(node, node.input(1)->shape, conv_shape(node, node.input(0)->shape, node.shape));
  return {product_dtype(node), node.shape};
}

// The three ops are one trilinear form <conv(x, w), dy>, differentiated by each argument: the
// gradients of each op are the other two.
Gradients vjp_conv2d(const Tensor& out, const Tensor& dy) {
  const Tensor x = input_of(out, 0), w = input_of(out, 1);
  return {conv(Op::Conv2dInputGrad, dy, w, x.shape(), out),
          conv(Op::Conv2dWeightGrad, x, dy, w.shape(), out)};
}

Gradients vjp_conv2d_input_grad(const Tensor& out, const Tensor& x) {
  const Tensor dy = input_of(out, 0), w = input_of(out, 1);
  return {conv(Op::Conv2d, x, w, dy.shape(), out),
          conv(Op::Conv2dWeightGrad, x, dy, w.shape(), out)};
}

Gradients vjp_conv2d_weight_grad(const Tensor& out, const Tensor& w) {
  const Tensor x = input_of(out, 0), dy = input_of(out, 1);
  return {conv(Op::Conv2dInputGrad, dy, w, x.shape(), out),
          conv(Op::Conv2d, x, w, dy.shape(), out)};
}

}  // namespace tenon
