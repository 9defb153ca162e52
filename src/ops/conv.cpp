// 1-D and 3-D convolutions and their transposes, expressed as 2-D convolutions: an axis of size 1
// is added, or the filter's positions along the depth become channels.
#include <tenon/error.h>
#include <tenon/functional.h>
#include <tenon/rearrange.h>

#include "base/make_error.h"
#include "ops/infer.h"

namespace tenon {
namespace {

void require_axes(const char* op, const Tensor& x, const Tensor& weight, int axes,
                  const char* input, const char* filter) {
  if (x.rank() != axes)
    throw make_error<ShapeError>(where(op), ": input must be ", input, " or without N, not ",
                                 x.shape());
  if (weight.rank() != axes)
    throw make_error<ShapeError>(where(op), ": weight must be ", filter, ", not ", weight.shape());
}

// Checks the window parameters of a single axis.
void require_window(const char* op, std::int64_t stride, std::int64_t padding,
                    std::int64_t dilation) {
  if (stride < 1) throw make_error<ValueError>(where(op), ": stride ", stride, "; at least 1");
  if (dilation < 1)
    throw make_error<ValueError>(where(op), ": dilation ", dilation, "; at least 1");
  if (padding < 0) throw make_error<ValueError>(where(op), ": padding ", padding, " is negative");
}

void require_depth(const char* op, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                   std::int64_t dilation) {
  if (kernel < 1) throw make_error<ShapeError>(where(op), ": the kernel has size 0");
  require_window(op, stride, padding, dilation);
}

// [N, C, D, H, W] as images [N D, C, H, W], and back.
Tensor as_images(const Tensor& x) {
  return reshape(permute(x, {0, 2, 1, 3, 4}),
                 {x.size(0) * x.size(2), x.size(1), x.size(3), x.size(4)});
}
Tensor as_volumes(const Tensor& y, std::int64_t batch, std::int64_t depth) {
  return permute(reshape(y, {batch, depth, y.size(1), y.size(2), y.size(3)}), {0, 2, 1, 3, 4});
}

// A filter [K, C, T, R, S] with its depth merged into the channels.
Tensor depth_as_channels(const Tensor& weight) {
  return reshape(weight,
                 {weight.size(0), weight.size(1) * weight.size(2), weight.size(3), weight.size(4)});
}

// Moves element i of axis 2 to position i * step.
Tensor spaced(const Tensor& x, std::int64_t step) {
  const std::int64_t length = x.size(2);
  if (step == 1 || length <= 1) return x;
  Ints sizes = to_ints(x.shape());
  sizes[2] *= step;
  const Tensor wide = reshape(pad(unsqueeze(x, 3), {0, 0, 0, 0, 0, step - 1}), sizes);
  return slice(wide, 2, 0, (length - 1) * step + 1);
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv1dOptions& options) {
  const Called called("conv1d");
  require_defined("conv1d", x, weight);
  if (has_no_batch(x, 3)) return squeeze(conv1d(unsqueeze(x, 0), weight, bias, options), 0);
  require_axes("conv1d", x, weight, 3, "[N, C, L]", "[K, C / groups, R]");
  require_window("conv1d", options.stride, options.padding, options.dilation);
  const Conv2dOptions flat{{1, options.stride},
                           {0, options.padding},
                           {1, options.dilation},
                           options.groups,
                           options.padding_mode};
  return squeeze(conv2d(unsqueeze(x, 2), unsqueeze(weight, 2), bias, flat), 2);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dOptions& options) {
  const Called called("conv_transpose1d");
  require_defined("conv_transpose1d", x, weight);
  if (has_no_batch(x, 3))
    return squeeze(conv_transpose1d(unsqueeze(x, 0), weight, bias, options), 0);
  require_axes("conv_transpose1d", x, weight, 3, "[N, C, L]", "[C, K / groups, R]");
  require_window("conv_transpose1d", options.stride, options.padding, options.dilation);
  const ConvTranspose2dOptions flat{{1, options.stride},
                                    {0, options.padding},
                                    {0, options.output_padding},
                                    {1, options.dilation},
                                    options.groups};
  return squeeze(conv_transpose2d(unsqueeze(x, 2), unsqueeze(weight, 2), bias, flat), 2);
}

Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv3dOptions& o) {
  const Called called("conv3d");
  require_defined("conv3d", x, weight);
  if (has_no_batch(x, 5)) return squeeze(conv3d(unsqueeze(x, 0), weight, bias, o), 0);
  require_axes("conv3d", x, weight, 5, "[N, C, D, H, W]", "[K, C / groups, T, R, S]");
  if (o.padding_mode && o.padding.d >= 0 && o.padding.h >= 0 && o.padding.w >= 0) {
    const auto [d, h, w] = o.padding;
    const Tensor padded = pad(x, {w, w, h, h, d, d}, *o.padding_mode);
    return conv3d(padded, weight, bias, {o.stride, 0, o.dilation, o.groups});
  }
  const auto [step, height_step, width_step] = o.stride;
  const auto [margin, height_margin, width_margin] = o.padding;
  const auto [apart, height_apart, width_apart] = o.dilation;
  const std::int64_t taps = weight.size(2), padded = x.size(2) + 2 * margin,
                     span = apart * (taps - 1) + 1;
  require_depth("conv3d", taps, step, margin, apart);
  if (span > padded)
    throw make_error<ShapeError>(where("conv3d"), ": the kernel covers ", span,
                                 " positions along the depth, the padded input has ", padded);
  if (x.size(1) != weight.size(1) * o.groups)
    throw make_error<ShapeError>(where("conv3d"), ": input has ", x.size(1), " channels, weight ",
                                 weight.shape(), " takes ", weight.size(1) * o.groups);
  const std::int64_t depth = (padded - span) / step + 1, batch = x.size(0);
  const Tensor wide = margin == 0 ? x : pad(x, {0, 0, 0, 0, margin, margin});
  std::vector<Tensor> covered;  // [N, depth, C, 1, H, W] for each depth position of the filter
  for (std::int64_t t = 0; t < taps; ++t) {
    const Tensor part = slice(wide, 2, t * apart, t * apart + (depth - 1) * step + 1, step);
    covered.push_back(unsqueeze(permute(part, {0, 2, 1, 3, 4}), 3));
  }
  const Tensor images =
      reshape(concat(covered, 3), {batch * depth, x.size(1) * taps, x.size(3), x.size(4)});
  const Tensor y = conv2d(images, depth_as_channels(weight), bias,
                          {{height_step, width_step},
                           {height_margin, width_margin},
                           {height_apart, width_apart},
                           o.groups});
  return as_volumes(y, batch, depth);
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose3dOptions& o) {
  constexpr const char* kName = "conv_transpose3d";
  const Called called(kName);
  require_defined(kName, x, weight);
  if (has_no_batch(x, 5)) return squeeze(conv_transpose3d(unsqueeze(x, 0), weight, bias, o), 0);
  require_axes(kName, x, weight, 5, "[N, C, D, H, W]", "[C, K / groups, T, R, S]");
  const auto [step, height_step, width_step] = o.stride;
  const auto [margin, height_margin, width_margin] = o.padding;
  const auto [apart, height_apart, width_apart] = o.dilation;
  const auto [more, height_more, width_more] = o.output_padding;
  const std::int64_t taps = weight.size(2), batch = x.size(0), depth = x.size(2),
                     channels = weight.size(1) * o.groups;
  require_depth(kName, taps, step, margin, apart);
  const std::int64_t reached = (depth - 1) * step + 1, full = reached + apart * (taps - 1),
                     size = full - 2 * margin + more;
  if (more < 0 || more >= std::max(step, apart) || size < 0)
    throw make_error<ValueError>(where(kName), ": output padding ", more, " for stride ", step,
                                 " and dilation ", apart, "; it must be below one of them");
  // Partial results of 16-bit operands are summed in float32; a float32 bias has this effect.
  const DType dtype = operand_dtype(kName, x, weight);
  const bool parts_are_short = dtype == DType::Float16 || dtype == DType::BFloat16;
  const Tensor none = parts_are_short ? zeros({channels * taps}) : Tensor();
  const Tensor y = conv_transpose2d(as_images(x), depth_as_channels(weight), none,
                                    {{height_step, width_step},
                                     {height_margin, width_margin},
                                     {height_more, width_more},
                                     {height_apart, width_apart},
                                     o.groups});
  const Tensor places = reshape(y, {batch, depth, channels, taps, y.size(2), y.size(3)});
  Tensor sum;
  for (std::int64_t t = 0; t < taps; ++t) {
    const Tensor part = spaced(permute(select(places, 3, t), {0, 2, 1, 3, 4}), step);
    // Negative padding crops.
    const std::int64_t before = t * apart - margin;
    const Tensor moved = pad(part, {0, 0, 0, 0, before, size - before - reached});
    sum = sum.defined() ? sum + moved : moved;
  }
  if (!bias.defined()) return cast(sum, dtype);
  if (bias.shape() != Shape{channels})
    throw make_error<ShapeError>(where(kName), ": the bias is ", bias.shape(), ", the output has ",
                                 channels, " features");
  operand_dtype(kName, sum, bias);
  return cast(sum + reshape(bias, {channels, 1, 1, 1}), promote(dtype, bias.dtype()));
}

}  // namespace tenon
