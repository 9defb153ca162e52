// 1-D and 3-D pooling layers: options for the functions, and their description as text.
#include <array>

#include <tenon/pooling_layers.h>

#include "base/str.h"
#include "nn/windows.h"

namespace tenon::nn {
namespace {

Ints listed(std::int64_t size) { return {size}; }
Ints listed(Pair p) { return {p.h, p.w}; }
Ints listed(Triple t) { return {t.d, t.h, t.w}; }

template <class Options, class Sizes>
Options window_options(const char* layer, Sizes kernel, const PoolOptionsOf<Sizes>& options) {
  Options out;
  out.kernel = kernel;
  out.stride = options.stride;
  out.padding = options.padding;
  out.dilation = options.dilation;
  check_window(layer, {{"the kernel size", listed(out.kernel), 1},
                       {"the stride", listed(out.stride), 0},
                       {"the padding", listed(out.padding), 0},
                       {"the dilation", listed(out.dilation), 1}});
  out.ceil_mode = options.ceil_mode;
  out.count_include_pad = options.count_include_pad;
  out.divisor = options.divisor;
  return out;
}

// Text such as "stride=3" or "stride=(3, 2, 1)".
std::string sizes_text(const char* name, const Ints& sizes) {
  std::string list;
  for (const std::int64_t size : sizes) list += cat(list.empty() ? "" : ", ", size);
  return cat(name, sizes.size() == 1 ? "=" : "=(", list, sizes.size() == 1 ? "" : ")");
}

template <class Options>
std::string describe_window(const char* layer, const Options& o) {
  std::string out = cat(layer, "(", sizes_text("kernel_size", listed(o.kernel)));
  const Options standard;
  if (o.stride != standard.stride && o.stride != o.kernel)
    out += ", " + sizes_text("stride", listed(o.stride));
  if (o.padding != standard.padding) out += ", " + sizes_text("padding", listed(o.padding));
  if (o.dilation != standard.dilation) out += ", " + sizes_text("dilation", listed(o.dilation));
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
  return cat(layer, "(", sizes_text("output_size", listed(output)), ")");
}

}  // namespace

MaxPool1d::MaxPool1d(std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options)
    : options_(window_options<Pool1dOptions>("MaxPool1d", kernel, options)) {}
std::string MaxPool1d::describe() const { return describe_window("MaxPool1d", options_); }

AvgPool1d::AvgPool1d(std::int64_t kernel, const PoolOptionsOf<std::int64_t>& options)
    : options_(window_options<Pool1dOptions>("AvgPool1d", kernel, options)) {}
std::string AvgPool1d::describe() const { return describe_window("AvgPool1d", options_); }

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
  check_window("LPPool2d",
               {{"the kernel size", listed(kernel), 1}, {"the stride", listed(options.stride), 0}});
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
  check_window("MaxUnpool2d", {{"the kernel size", listed(kernel), 1},
                               {"the stride", listed(options.stride), 0},
                               {"the padding", listed(options.padding), 0}});
  options_.kernel = kernel;
  options_.stride = options.stride;
  options_.padding = options.padding;
}
std::string MaxUnpool2d::describe() const { return describe_window("MaxUnpool2d", options_); }

MaxUnpool3d::MaxUnpool3d(Triple kernel, const PoolOptionsOf<Triple>& options)
    : options_(window_options<Pool3dOptions>("MaxUnpool3d", kernel, options)) {}
std::string MaxUnpool3d::describe() const { return describe_window("MaxUnpool3d", options_); }

}  // namespace tenon::nn
