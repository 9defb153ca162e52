// 1-D and 3-D convolutions and transposed convolutions as layers; Conv2d is in layers.cpp.
#include <array>
#include <cmath>

#include <tenon/error.h>
#include <tenon/layers.h>

#include "base/str.h"
#include "nn/windows.h"

namespace tenon::nn {
namespace {

using Two = std::pair<std::int64_t, std::int64_t>;
using ThreeSizes = std::array<std::int64_t, 3>;

std::int64_t conv_sizes(std::int64_t size) { return size; }
Two conv_sizes(Pair p) { return {p.h, p.w}; }
ThreeSizes conv_sizes(Triple t) { return {t.d, t.h, t.w}; }

Ints size_list(std::int64_t size) { return {size}; }
Ints size_list(const Two& p) { return {p.first, p.second}; }
Ints size_list(const ThreeSizes& t) { return {t.begin(), t.end()}; }

std::string size_text(const char* name, const Ints& sizes) {
  std::string list;
  for (const std::int64_t size : sizes) list += cat(list.empty() ? "" : ", ", size);
  return cat(", ", name, sizes.size() == 1 ? "=" : "=(", list, sizes.size() == 1 ? "" : ")");
}

template <class Options, class LayerOptions>
Options conv_options(const char* layer, const LayerOptions& o) {
  Options out;
  out.stride = conv_sizes(o.stride);
  out.padding = conv_sizes(o.padding);
  out.dilation = conv_sizes(o.dilation);
  out.groups = o.groups;
  check_window(layer, {{"the stride", size_list(out.stride), 1},
                       {"the padding", size_list(out.padding), 0},
                       {"the dilation", size_list(out.dilation), 1}});
  if constexpr (requires { o.output_padding; }) {
    out.output_padding = conv_sizes(o.output_padding);
    check_window(layer, {{"the output padding", size_list(out.output_padding), 0}});
  }
  return out;
}

// The weight's shape: [out, in / groups, kernel…]; transposed: [in, out / groups, kernel…].
Shape filter_shape(const char* layer, std::int64_t in, std::int64_t out, std::int64_t groups,
                   const Ints& kernel, bool transposed) {
  const auto check = [&](std::int64_t value, const char* what) {
    if (value < 1) throw ValueError(cat(layer, ": ", what, " is ", value, ", must be at least 1"));
  };
  check(in, "the number of input channels");
  check(out, "the number of output channels");
  check(groups, "groups");
  check_window(layer, {{"the kernel size", kernel, 1}});
  if (in % groups != 0 || out % groups != 0)
    throw ValueError(cat(layer, ": ", in, " input and ", out,
                         " output channels do not divide into ", groups, " groups"));
  Shape shape = transposed ? Shape{in, out / groups} : Shape{out, in / groups};
  for (const std::int64_t size : kernel) shape.push_back(size);
  return shape;
}

// PyTorch's initialization: uniform in ±1 / sqrt(fan-in). The fan-in is computed from the second
// axis, even for transposed convolutions.
Tensor filter(const Shape& shape, Generator* generator) {
  return init::kaiming_uniform(shape, std::sqrt(5.0), init::FanMode::In, generator);
}
Tensor filter_bias(const Shape& shape, std::int64_t out, Generator* generator) {
  const double limit = 1 / std::sqrt(static_cast<double>(init::fans(shape).first));
  return init::uniform({out}, -limit, limit, generator);
}

template <class Options>
std::string describe_conv(const char* layer, const Tensor& weight, const Options& o, bool bias,
                          bool transposed) {
  const Shape& w = weight.shape();
  const std::int64_t first = w[0], second = w[1] * o.groups;
  const Options standard;
  std::string text = cat(layer, "(", transposed ? first : second, ", ", transposed ? second : first,
                         size_text("kernel_size", Ints(w.begin() + 2, w.end())));
  if (o.stride != standard.stride) text += size_text("stride", size_list(o.stride));
  if (o.padding != standard.padding) text += size_text("padding", size_list(o.padding));
  if constexpr (requires { o.output_padding; })
    if (o.output_padding != standard.output_padding)
      text += size_text("output_padding", size_list(o.output_padding));
  if (o.dilation != standard.dilation) text += size_text("dilation", size_list(o.dilation));
  if (o.groups != 1) text += cat(", groups=", o.groups);
  return text + (bias ? ")" : ", bias=false)");
}

}  // namespace

#define TENON_CONVOLUTION(Name, Options, Sizes, OptionsOf, transposed)                     \
  Name::Name(std::int64_t in, std::int64_t out, Sizes kernel, const OptionsOf<Sizes>& o)   \
      : options_(conv_options<Options>(#Name, o)) {                                        \
    const Shape shape =                                                                    \
        filter_shape(#Name, in, out, o.groups, size_list(conv_sizes(kernel)), transposed); \
    weight_ = parameter("weight", filter(shape, o.generator));                             \
    if (o.bias) bias_ = parameter("bias", filter_bias(shape, out, o.generator));           \
  }                                                                                        \
  std::string Name::describe() const {                                                     \
    return describe_conv(#Name, weight_, options_, bias_.defined(), transposed);           \
  }
TENON_CONVOLUTION(Conv1d, Conv1dOptions, std::int64_t, ConvOptionsOf, false)
TENON_CONVOLUTION(Conv3d, Conv3dOptions, Triple, ConvOptionsOf, false)
TENON_CONVOLUTION(ConvTranspose1d, ConvTranspose1dOptions, std::int64_t, ConvTransposeOptionsOf,
                  true)
TENON_CONVOLUTION(ConvTranspose2d, ConvTranspose2dOptions, Pair, ConvTransposeOptionsOf, true)
TENON_CONVOLUTION(ConvTranspose3d, ConvTranspose3dOptions, Triple, ConvTransposeOptionsOf, true)
#undef TENON_CONVOLUTION

}  // namespace tenon::nn
