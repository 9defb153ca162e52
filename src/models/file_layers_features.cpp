// Layer types of network files for features, signals, images and volumes: linear layers,
// convolution, pooling, padding and resampling, normalization.
#include <algorithm>
#include <type_traits>

#include <tenon/functional.h>
#include <tenon/pooling_layers.h>
#include <tenon/transformer.h>

#include "base/str.h"
#include "models/conv1d.h"
#include "models/file_kinds.h"
#include "models/file_modules.h"

namespace tenon::models {
namespace {

constexpr std::int64_t kLargestAdaptive = 8192, kLargestDepth = 1024;
constexpr char kSignals[] = "signals [N, channels, length]",
               kVolumes[] = "volumes [N, channels, depth, height, width]";

template <class Options>
void read_weight(LayerKeys& keys, Options& options, const LayerContext& at) {
  options.bias = keys.boolean("bias", true);
  options.generator = at.generator;
  if (const std::optional<FileDraw> draw = keys.draw("init")) options.weight_init = draw->make;
}

FileLayer linear_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t out = keys.own_whole("outputs", "{ linear = 10 }");
  if (at.x.rank() < 2)
    keys.refuse(cat("linear takes features [N, ..., features], not ", shape_text(at.x)));
  nn::LinearOptions options;
  read_weight(keys, options, at);
  if (const std::string tied = keys.text("tie"); !tied.empty())
    options.tied_weight = at.parameter(tied);
  const nn::Linear module(at.x.size(-1), out, options);
  replace_initial_value(keys, module, "bias", keys.draw("bias_init"), at.generator);
  return layer_of(module, ByPosition::Each);
}

FileLayer projection_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t out = keys.own_whole("outputs", "{ projection = 768 }");
  const std::optional<FileDraw> init = keys.draw("init");
  const Conv1D module(at.x.size(-1), out, keys.boolean("bias", true), init ? init->make : nullptr,
                      at.generator);
  replace_initial_value(keys, module, "bias", keys.draw("bias_init"), at.generator);
  return layer_of(module, ByPosition::Each);
}

FileLayer conv2d_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t out = keys.own_whole("channels", "{ conv2d = 16, kernel = 3 }");
  require_rank(keys, at, 4, kImages);
  if (keys.find("kernel") == nullptr)
    keys.refuse_missing("kernel", "conv2d needs a kernel, as in { conv2d = 16, kernel = 3 }");
  Conv2dOptions options;
  options.stride = keys.pair("stride", 1, 1);
  options.padding = keys.pair("padding", 0);
  options.dilation = keys.pair("dilation", 1, 1);
  options.groups = keys.whole("groups", 1, 1);
  nn::ParameterOptions parameters;
  read_weight(keys, parameters, at);
  const nn::Conv2d module(at.x.size(1), out, keys.pair("kernel", 1, 1), options, parameters);
  replace_initial_value(keys, module, "bias", keys.draw("bias_init"), at.generator);
  return layer_of(module);
}

// Convolution over one axis or three; transposed convolution over one to three.
template <std::size_t kAxes, bool transposed>
FileLayer convolution_layer(LayerKeys& keys, const LayerContext& at) {
  const std::string example = cat("{ ", keys.kind(), " = 16, kernel = 3 }");
  const std::int64_t out = keys.own_whole("channels", example.c_str());
  require_rank(keys, at, static_cast<int>(kAxes) + 2,
               kAxes == 1   ? kSignals
               : kAxes == 2 ? kImages
                            : kVolumes);
  if (keys.find("kernel") == nullptr)
    keys.refuse_missing("kernel", cat(keys.kind(), " needs a kernel, as in ", example));
  FileConvolution::Options options;
  options.stride = keys.axes("stride", kAxes, 1, 1);
  options.padding = keys.axes("padding", kAxes, 0, 0);
  options.dilation = keys.axes("dilation", kAxes, 1, 1);
  if (transposed) options.output_padding = keys.axes("output_padding", kAxes, 0, 0);
  options.groups = keys.whole("groups", 1, 1);
  read_weight(keys, options, at);
  const std::vector<std::int64_t> kernel = keys.axes("kernel", kAxes, 1, 1);
  // The module computes each depth of the kernel separately.
  if (transposed && kAxes == 3 && kernel[0] > kLargestDepth)
    keys.refuse(cat(keys.kind(), ": a kernel of depth ", kernel[0], "; the largest depth is ",
                    kLargestDepth));
  const FileConvolution module(at.x.size(1), out, kernel, options);
  replace_initial_value(keys, module, "bias", keys.draw("bias_init"), at.generator);
  return layer_of(module);
}

// Pooling over one axis, two or three; `Sizes` is the type of kernel size, stride and padding.
template <class Sizes>
using PoolOptionsOf =
    std::conditional_t<std::is_same_v<Sizes, Pair>, nn::PoolOptions, nn::PoolOptionsOf<Sizes>>;
template <class Sizes>
constexpr std::size_t kAxesOf = std::is_same_v<Sizes, Pair>     ? 2
                                : std::is_same_v<Sizes, Triple> ? 3
                                                                : 1;

template <class Sizes>
Sizes sizes_of(LayerKeys& keys, const std::string& key, std::int64_t fallback, std::int64_t low) {
  const std::vector<std::int64_t> each = keys.axes(key, kAxesOf<Sizes>, fallback, low);
  if constexpr (kAxesOf<Sizes> == 1)
    return each[0];
  else if constexpr (kAxesOf<Sizes> == 2)
    return {each[0], each[1]};
  else
    return {each[0], each[1], each[2]};
}

template <class Sizes>
void require_axes(const LayerKeys& keys, const LayerContext& at) {
  constexpr std::size_t kAxes = kAxesOf<Sizes>;
  require_rank(keys, at, static_cast<int>(kAxes) + 2,
               kAxes == 1   ? kSignals
               : kAxes == 2 ? kImages
                            : kVolumes);
}

// Sums over windows, divided by a given number.
FileLayer divided_pool2d(const Pair& kernel, const nn::PoolOptions& o, std::int64_t divisor) {
  const Pool2dOptions options{{kernel.h, kernel.w},
                              {o.stride.h, o.stride.w},
                              {o.padding.h, o.padding.w},
                              {1, 1},
                              o.ceil_mode};
  return function_of(
      cat("AvgPool2d(kernel_size=(", kernel.h, ", ", kernel.w, "), divisor=", divisor, ")"),
      [=](const Tensor& x) { return avg_pool2d(x, options, divisor); });
}

template <class Pool, class Sizes, bool average>
FileLayer pool_layer(LayerKeys& keys, const LayerContext& at) {
  keys.own("a window", "{ max_pool2d = 2 }");
  require_axes<Sizes>(keys, at);
  const Sizes kernel = sizes_of<Sizes>(keys, keys.kind(), 2, 1);
  PoolOptionsOf<Sizes> options;
  options.stride = sizes_of<Sizes>(keys, "stride", 0, 0);
  options.padding = sizes_of<Sizes>(keys, "padding", 0, 0);
  options.ceil_mode = keys.boolean("ceil_mode", false);
  if constexpr (average) {
    options.count_include_pad = keys.boolean("count_include_pad", true);
    const std::int64_t divisor = keys.whole("divisor", 0, 1);
    if constexpr (kAxesOf<Sizes> == 2) {
      if (divisor != 0) return divided_pool2d(kernel, options, divisor);
    } else {
      options.divisor = divisor;
    }
  } else {
    options.dilation = sizes_of<Sizes>(keys, "dilation", 1, 1);
  }
  return layer_of(Pool(kernel, options));
}

template <class Pool, class Sizes>
FileLayer adaptive_pool_layer(LayerKeys& keys, const LayerContext& at) {
  keys.own("a size", "{ adaptive_avg_pool2d = 7 }");
  require_axes<Sizes>(keys, at);
  // The operation builds a list of its windows.
  std::vector<std::int64_t> each = keys.axes(keys.kind(), kAxesOf<Sizes>, 1, 1);
  for (int axis = 2; axis < at.x.rank(); ++axis) each.push_back(at.x.size(axis));
  if (*std::max_element(each.begin(), each.end()) > kLargestAdaptive)
    keys.refuse(cat(keys.kind(), " takes and gives up to ", kLargestAdaptive,
                    kAxesOf<Sizes> == 1   ? " positions"
                    : kAxesOf<Sizes> == 2 ? " rows and columns"
                                          : " images, rows and columns",
                    ", not ", shape_text(at.x)));
  return layer_of(Pool(sizes_of<Sizes>(keys, keys.kind(), 1, 1)));
}

FileLayer global_avg_pool_layer(LayerKeys& keys, const LayerContext& at) {
  (void)keys.own();
  if (at.x.rank() < 3)
    keys.refuse(cat("global_avg_pool takes [N, channels, ...], not ", shape_text(at.x)));
  Axes axes;
  for (int axis = 2; axis < at.x.rank(); ++axis) axes.push_back(axis);
  return function_of("GlobalAvgPool()", [axes](const Tensor& x) { return mean(x, axes); });
}

// The number of input channels. If the file gives the number, it is checked.
std::int64_t channels_of(LayerKeys& keys, const LayerContext& at) {
  if (at.x.rank() < 2)
    keys.refuse(cat(keys.kind(), " takes [N, channels, ...], not ", shape_text(at.x)));
  const std::int64_t channels = at.x.size(1), said = keys.whole(keys.kind(), channels, 1);
  if (said != channels)
    keys.refuse(cat(keys.kind(), " is for ", said, " channels, and the input is ", shape_text(at.x),
                    "; the number may be left out"));
  return channels;
}

template <class Norm, int least, int most>
FileLayer batch_norm_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t channels = channels_of(keys, at);
  if (at.x.rank() < least || at.x.rank() > most)
    keys.refuse(cat(keys.kind(), " does not take ", shape_text(at.x), ": it is for ", least,
                    least == most ? "" : cat(" or ", most), " axes"));
  nn::BatchNormOptions options;
  options.eps = keys.number("eps", options.eps, 0, 1e9);
  options.momentum = keys.number("momentum", 0.1, 0, 1);
  options.affine = keys.boolean("affine", true);
  options.track_running_stats = keys.boolean("track_running_stats", true);
  const Norm module(channels, options);
  replace_initial_value(keys, module, "weight", keys.draw("init"), at.generator);
  return layer_of(module);
}

// Sizes of the normalized axes: given in the file, else the size of the last axis.
Shape last_axes(LayerKeys& keys, const LayerContext& at) {
  Shape out;
  const io::TomlValue* said = keys.own();
  if (said == nullptr) {
    out.push_back(at.x.size(-1));
  } else if (said->is(io::TomlValue::Kind::List)) {
    for (const io::TomlValue& size : said->items)
      out.push_back(whole_of(size, keys.variables(), keys.kind()));
  } else {
    out.push_back(whole_of(*said, keys.variables(), keys.kind()));
  }
  for (int k = 1; k <= out.rank(); ++k)
    if (k > at.x.rank() || out[out.rank() - k] != at.x.size(-k))
      keys.refuse(cat(keys.kind(), " is for last axes of ", out, ", and the input is ",
                      shape_text(at.x), "; without a number it normalizes the last axis"));
  return out;
}

FileLayer layer_norm_layer(LayerKeys& keys, const LayerContext& at) {
  nn::LayerNormOptions options;
  options.eps = keys.number("eps", options.eps, 0, 1e9);
  options.elementwise_affine = keys.boolean("affine", true);
  options.bias = keys.boolean("bias", true);
  const Shape shape = last_axes(keys, at);
  return layer_of(nn::LayerNorm(shape, options), each_if(shape.rank() == 1));
}

FileLayer rms_norm_layer(LayerKeys& keys, const LayerContext& at) {
  nn::RMSNormOptions options;
  if (keys.find("eps") != nullptr) options.eps = keys.number("eps", 0, 0, 1e9);
  options.elementwise_affine = keys.boolean("affine", true);
  const Shape shape = last_axes(keys, at);
  return layer_of(nn::RMSNorm(shape, options), each_if(shape.rank() == 1));
}

FileLayer group_norm_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t groups = keys.own_whole("groups", "{ group_norm = 8 }");
  if (at.x.rank() < 2)
    keys.refuse(cat("group_norm takes [N, channels, ...], not ", shape_text(at.x)));
  nn::GroupNormOptions options;
  options.eps = keys.number("eps", options.eps, 0, 1e9);
  options.affine = keys.boolean("affine", true);
  return layer_of(nn::GroupNorm(groups, at.x.size(1), options));
}

FileLayer local_response_norm_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t size = keys.own_whole("neighbours", "{ local_response_norm = 5 }");
  require_rank(keys, at, 4, kImages);
  nn::LocalResponseNormOptions options;
  options.alpha = keys.number("alpha", options.alpha, 0, 1e9);
  options.beta = keys.number("beta", options.beta, 0, 1e9);
  options.k = keys.number("k", options.k, 0, 1e9);
  return layer_of(nn::LocalResponseNorm(size, options));
}

FileLayer pad_layer(LayerKeys& keys, const LayerContext& at) {
  keys.own("rows and columns", "{ pad2d = 2 }");
  require_rank(keys, at, 4, kImages);
  const Pair each = keys.pair("pad2d", 0);
  const double value = keys.number("value", 0, -1e30, 1e30);
  return function_of(cat("Pad2d(", each.h, ", ", each.w, ")"), [=](const Tensor& x) {
    return pad(x, {each.w, each.w, each.h, each.h}, value);
  });
}

// Every step-th row and column, beginning with the first.
FileLayer subsample_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t step = keys.own_whole("a step", "{ subsample2d = 2 }");
  require_rank(keys, at, 4, kImages);
  return function_of(cat("Subsample2d(", step, ")"), [step](const Tensor& x) {
    return slice(slice(x, 2, 0, x.size(2), step), 3, 0, x.size(3), step);
  });
}

FileLayer pad_channels_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t channels = keys.own_whole("channels", "{ pad_channels = 64 }");
  require_rank(keys, at, 4, kImages);
  const std::int64_t added = channels - at.x.size(1);
  if (added < 0 || added % 2 != 0)
    keys.refuse(
        cat("pad_channels to ", channels, ": ", shape_text(at.x),
            " has more, or lacks an odd number; both sides get the same number of channels"));
  return function_of(cat("PadChannels(", channels, ")"), [added](const Tensor& x) {
    return pad(x, {0, 0, 0, 0, added / 2, added / 2});
  });
}

FileLayer upsample_layer(LayerKeys& keys, const LayerContext& at) {
  const std::int64_t factor = keys.own_whole("a factor", "{ upsample2d = 2 }");
  require_rank(keys, at, 4, kImages);
  const bool linear = keys.word("mode", {"nearest", "linear"}) == "linear";
  return function_of(cat("Upsample2d(", factor, ")"), [factor, linear](const Tensor& x) {
    return interpolate(x, {x.size(2) * factor, x.size(3) * factor},
                       linear ? Interpolation::Linear : Interpolation::Nearest);
  });
}

constexpr FileKind kFeatureKinds[] = {
    {"linear", linear_layer},
    {"projection", projection_layer},
    {"conv1d", convolution_layer<1, false>},
    {"conv2d", conv2d_layer},
    {"conv3d", convolution_layer<3, false>},
    {"conv_transpose1d", convolution_layer<1, true>},
    {"conv_transpose2d", convolution_layer<2, true>},
    {"conv_transpose3d", convolution_layer<3, true>},
    {"max_pool1d", pool_layer<nn::MaxPool1d, std::int64_t, false>},
    {"max_pool2d", pool_layer<nn::MaxPool2d, Pair, false>},
    {"max_pool3d", pool_layer<nn::MaxPool3d, Triple, false>},
    {"avg_pool1d", pool_layer<nn::AvgPool1d, std::int64_t, true>},
    {"avg_pool2d", pool_layer<nn::AvgPool2d, Pair, true>},
    {"avg_pool3d", pool_layer<nn::AvgPool3d, Triple, true>},
    {"adaptive_avg_pool1d", adaptive_pool_layer<nn::AdaptiveAvgPool1d, std::int64_t>},
    {"adaptive_avg_pool2d", adaptive_pool_layer<nn::AdaptiveAvgPool2d, Pair>},
    {"adaptive_avg_pool3d", adaptive_pool_layer<nn::AdaptiveAvgPool3d, Triple>},
    {"adaptive_max_pool1d", adaptive_pool_layer<nn::AdaptiveMaxPool1d, std::int64_t>},
    {"adaptive_max_pool2d", adaptive_pool_layer<nn::AdaptiveMaxPool2d, Pair>},
    {"adaptive_max_pool3d", adaptive_pool_layer<nn::AdaptiveMaxPool3d, Triple>},
    {"global_avg_pool", global_avg_pool_layer},
    {"upsample2d", upsample_layer},
    {"pad2d", pad_layer},
    {"pad_channels", pad_channels_layer},
    {"subsample2d", subsample_layer},
    {"batch_norm1d", batch_norm_layer<nn::BatchNorm1d, 2, 3>},
    {"batch_norm2d", batch_norm_layer<nn::BatchNorm2d, 4, 4>},
    {"batch_norm3d", batch_norm_layer<nn::BatchNorm3d, 5, 5>},
    {"layer_norm", layer_norm_layer},
    {"rms_norm", rms_norm_layer},
    {"group_norm", group_norm_layer},
    {"local_response_norm", local_response_norm_layer},
};

}  // namespace

std::span<const FileKind> feature_kinds() { return kFeatureKinds; }

}  // namespace tenon::models
