// Pooling layers over one to three axes: options for the functions, and their description as text.
#include <tenon/pooling_layers.h>

#include "base/str.h"
#include "nn/windows.h"

namespace tenon::nn {
namespace {

template <class Options, class Sizes, class LayerOptions>
Options window_options(const char* layer, Sizes kernel, const LayerOptions& options) {
  Options out;
  out.kernel = kernel;
  out.stride = options.stride;
  out.padding = options.padding;
  out.dilation = options.dilation;
  check_window(layer, {{"the kernel size", size_list(out.kernel), 1},
                       {"the stride", size_list(out.stride), 0},
                       {"the padding", size_list(out.padding), 0},
                       {"the dilation", size_list(out.dilation), 1}});
  out.ceil_mode = options.ceil_mode;
  out.count_include_pad = options.count_include_pad;
  if constexpr (requires { out.divisor; }) out.divisor = options.divisor;
  return out;
}

template <class Options>
std::string describe_window(const char* layer, const Options& o) {
  std::string out = cat(layer, "(", sizes_text("kernel_size", size_list(o.kernel)));
  const Options standard;
  if (o.stride != standard.stride && o.stride != o.kernel)
    out += ", " + sizes_text("stride", size_list(o.stride));
  if (o.padding != standard.padding) out += ", " + sizes_text("padding", size_list(o.padding));
  if (o.dilation != standard.dilation) out += ", " + sizes_text("dilation", size_list(o.dilation));
  if (o.ceil_mode) out += ", ceil_mode=true";
  return out + ")";
}

// Text such as "LPPool1d(2, kernel_size=3)".
template <class Options>
std::string describe_power(const char* layer, double p, const Options& o) {
  const std::string text = describe_window(layer, o);
  const std::size_t at = text.find('(') + 1;
  return cat(text.substr(0, at), p, ", ", text.substr(at));
}

template <class Sizes>
std::string describe_adaptive(const char* layer, Sizes output) {
  return cat(layer, "(", sizes_text("output_size", size_list(output)), ")");
}

}  // namespace

MaxPool1d::MaxPool1d(std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options)
    : options_(window_options<Pool1dOptions>("MaxPool1d", kernel, options)) {}
std::string MaxPool1d::describe() const { return describe_window("MaxPool1d", options_); }

AvgPool1d::AvgPool1d(std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options)
    : options_(window_options<Pool1dOptions>("AvgPool1d", kernel, options)) {}
std::string AvgPool1d::describe() const { return describe_window("AvgPool1d", options_); }

MaxPool2d::MaxPool2d(Pair kernel, const PoolOptions& options)
    : options_(window_options<Pool2dOptions>("MaxPool2d", kernel, options)) {}
Tensor MaxPool2d::forward(const Tensor& x) const { return max_pool2d(x, options_); }
std::string MaxPool2d::describe() const { return describe_window("MaxPool2d", options_); }

AvgPool2d::AvgPool2d(Pair kernel, const PoolOptions& options)
    : options_(window_options<Pool2dOptions>("AvgPool2d", kernel, options)),
      divisor_(options.divisor) {}
Tensor AvgPool2d::forward(const Tensor& x) const { return avg_pool2d(x, options_, divisor_); }
std::string AvgPool2d::describe() const { return describe_window("AvgPool2d", options_); }

MaxPool3d::MaxPool3d(Triple kernel, const PoolOptionsOf<Triple>& options)
    : options_(window_options<Pool3dOptions>("MaxPool3d", kernel, options)) {}
std::string MaxPool3d::describe() const { return describe_window("MaxPool3d", options_); }

AvgPool3d::AvgPool3d(Triple kernel, const PoolOptionsOf<Triple>& options)
    : options_(window_options<Pool3dOptions>("AvgPool3d", kernel, options)) {}
std::string AvgPool3d::describe() const { return describe_window("AvgPool3d", options_); }

std::string AdaptiveAvgPool1d::describe() const {
  return describe_adaptive("AdaptiveAvgPool1d", output_);
}
std::string AdaptiveMaxPool1d::describe() const {
  return describe_adaptive("AdaptiveMaxPool1d", output_);
}
std::string AdaptiveAvgPool2d::describe() const {
  return describe_adaptive("AdaptiveAvgPool2d", output_);
}
std::string AdaptiveMaxPool2d::describe() const {
  return describe_adaptive("AdaptiveMaxPool2d", output_);
}
std::string AdaptiveAvgPool3d::describe() const {
  return describe_adaptive("AdaptiveAvgPool3d", output_);
}
std::string AdaptiveMaxPool3d::describe() const {
  return describe_adaptive("AdaptiveMaxPool3d", output_);
}

LPPool1d::LPPool1d(double p, std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options)
    : p_(p), options_(window_options<Pool1dOptions>("LPPool1d", kernel, options)) {}
std::string LPPool1d::describe() const { return describe_power("LPPool1d", p_, options_); }

LPPool2d::LPPool2d(double p, Pair kernel, const PoolOptions& options) : p_(p) {
  check_window("LPPool2d", {{"the kernel size", size_list(kernel), 1},
                            {"the stride", size_list(options.stride), 0}});
  options_.kernel = kernel;
  options_.stride = options.stride;
  options_.ceil_mode = options.ceil_mode;
}
std::string LPPool2d::describe() const { return describe_power("LPPool2d", p_, options_); }

LPPool3d::LPPool3d(double p, Triple kernel, const PoolOptionsOf<Triple>& options)
    : p_(p), options_(window_options<Pool3dOptions>("LPPool3d", kernel, options)) {}
std::string LPPool3d::describe() const { return describe_power("LPPool3d", p_, options_); }

MaxUnpool1d::MaxUnpool1d(std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options)
    : options_(window_options<Pool1dOptions>("MaxUnpool1d", kernel, options)) {}
std::string MaxUnpool1d::describe() const { return describe_window("MaxUnpool1d", options_); }

MaxUnpool2d::MaxUnpool2d(Pair kernel, const PoolOptions& options) {
  check_window("MaxUnpool2d", {{"the kernel size", size_list(kernel), 1},
                               {"the stride", size_list(options.stride), 0},
                               {"the padding", size_list(options.padding), 0}});
  options_.kernel = kernel;
  options_.stride = options.stride;
  options_.padding = options.padding;
}
std::string MaxUnpool2d::describe() const { return describe_window("MaxUnpool2d", options_); }

MaxUnpool3d::MaxUnpool3d(Triple kernel, const PoolOptionsOf<Triple>& options)
    : options_(window_options<Pool3dOptions>("MaxUnpool3d", kernel, options)) {}
std::string MaxUnpool3d::describe() const { return describe_window("MaxUnpool3d", options_); }

}  // namespace tenon::nn
