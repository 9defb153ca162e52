// Convolutions and transposed convolutions over one to three axes as layers.
#include <tenon/error.h>
#include <tenon/layers.h>

#include "base/make_error.h"
#include "base/str.h"
#include "nn/initial.h"
#include "nn/windows.h"

namespace tenon::nn {
namespace {

template <class Options>
const Options& checked(const char* layer, const Options& o) {
  check_window(layer, {{"the stride", size_list(o.stride), 1},
                       {"the padding", size_list(o.padding), 0},
                       {"the dilation", size_list(o.dilation), 1}});
  if constexpr (requires { o.output_padding; })
    check_window(layer, {{"the output padding", size_list(o.output_padding), 0}});
  return o;
}

// The weight's shape: [out, in / groups, kernel…]; transposed: [in, out / groups, kernel…].
Shape filter_shape(const char* layer, std::int64_t in, std::int64_t out, std::int64_t groups,
                   const Ints& kernel, bool transposed) {
  const auto check = [&](std::int64_t value, const char* what) {
    if (value < 1)
      throw make_error<ValueError>(layer, ": ", what, " is ", value, ", must be at least 1");
  };
  check(in, "the number of input channels");
  check(out, "the number of output channels");
  check(groups, "groups");
  check_window(layer, {{"the kernel size", kernel, 1}});
  if (in % groups != 0 || out % groups != 0)
    throw make_error<ValueError>(layer, ": ", in, " input and ", out,
                                 " output channels do not divide into ", groups, " groups");
  Shape shape = transposed ? Shape{in, out / groups} : Shape{out, in / groups};
  for (const std::int64_t size : kernel) shape.push_back(size);
  return shape;
}

constexpr const char* kPadModes[] = {"reflect", "replicate", "circular"};

template <class Options>
std::string describe_conv(const char* layer, const Tensor& weight, const Options& o, bool bias,
                          bool transposed) {
  const Shape& w = weight.shape();
  const std::int64_t first = w[0], second = w[1] * o.groups;
  const Options standard;
  std::string text = cat(layer, "(", transposed ? first : second, ", ", transposed ? second : first,
                         ", ", sizes_text("kernel_size", Ints(w.begin() + 2, w.end())));
  if (o.stride != standard.stride) text += ", " + sizes_text("stride", size_list(o.stride));
  if (o.padding != standard.padding) text += ", " + sizes_text("padding", size_list(o.padding));
  if constexpr (requires { o.output_padding; })
    if (o.output_padding != standard.output_padding)
      text += ", " + sizes_text("output_padding", size_list(o.output_padding));
  if (o.dilation != standard.dilation) text += ", " + sizes_text("dilation", size_list(o.dilation));
  if (o.groups != 1) text += cat(", groups=", o.groups);
  if constexpr (requires { o.padding_mode; })
    if (o.padding_mode)
      text += std::string(", padding_mode=") + kPadModes[static_cast<int>(*o.padding_mode)];
  return text + (bias ? ")" : ", bias=false)");
}

}  // namespace

#define TENON_CONVOLUTION(Name, Sizes, transposed)                                                \
  Name::Name(std::int64_t in, std::int64_t out, Sizes kernel, const Name##Options& options,       \
             const ParameterOptions& parameters)                                                  \
      : options_(checked(#Name, options)) {                                                       \
    const Shape shape =                                                                           \
        filter_shape(#Name, in, out, options.groups, size_list(kernel), transposed);              \
    weight_ =                                                                                     \
        parameter("weight", initial_weight(shape, parameters.weight_init, parameters.generator)); \
    if (parameters.bias)                                                                          \
      bias_ = parameter("bias", initial_bias(out, shape, parameters.generator));                  \
  }                                                                                               \
  std::string Name::describe() const {                                                            \
    return describe_conv(#Name, weight_, options_, bias_.defined(), transposed);                  \
  }
TENON_CONVOLUTION(Conv1d, std::int64_t, false)
TENON_CONVOLUTION(Conv2d, Pair, false)
TENON_CONVOLUTION(Conv3d, Triple, false)
TENON_CONVOLUTION(ConvTranspose1d, std::int64_t, true)
TENON_CONVOLUTION(ConvTranspose2d, Pair, true)
TENON_CONVOLUTION(ConvTranspose3d, Triple, true)
#undef TENON_CONVOLUTION

Tensor Conv2d::forward(const Tensor& x) const { return conv2d(x, weight_, bias_, options_); }

}  // namespace tenon::nn
