// Linear, Conv2d, 2-D pooling, Flatten, Dropout and activation modules. Initial parameters are
// PyTorch's defaults: uniform in ±1 / sqrt(fan-in).
#include <cmath>

#include <tenon/error.h>
#include <tenon/nn.h>
#include <tenon/pooling.h>

#include "base/str.h"
#include "nn/windows.h"

namespace tenon::nn {
namespace {

std::string text(const char* name, std::pair<std::int64_t, std::int64_t> pair) {
  return cat(name, "=(", pair.first, ", ", pair.second, ")");
}

std::pair<std::int64_t, std::int64_t> std_pair(Pair p) { return {p.h, p.w}; }

void check_positive(std::int64_t value, const char* layer, const char* what) {
  if (value < 1) throw ValueError(cat(layer, ": ", what, " is ", value, ", must be at least 1"));
}

// PyTorch's default for weights and biases of linear and convolutional layers: ±1 / sqrt(fan-in).
template <class Options>
Tensor initial_weight(const Shape& shape, const Options& options) {
  if (options.weight_init) return options.weight_init(shape, options.generator);
  return init::kaiming_uniform(shape, std::sqrt(5.0), init::FanMode::In, options.generator);
}

Tensor default_bias(const Shape& weight, Generator* generator) {
  const double limit = 1.0 / std::sqrt(static_cast<double>(init::fans(weight).first));
  return init::uniform({weight[0]}, -limit, limit, generator);
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& options) {
  check_positive(in, "Linear", "the number of inputs");
  check_positive(out, "Linear", "the number of outputs");
  const Shape shape{out, in};
  if (const Tensor& tied = options.tied_weight; tied.defined()) {
    if (tied.shape() != shape)
      throw ShapeError(cat("Linear: the tied weight is ", tied.shape(), ", must be ", shape));
    weight_ = tie("weight", tied);
  } else {
    weight_ = parameter("weight", initial_weight(shape, options));
  }
  if (options.bias) bias_ = parameter("bias", default_bias(shape, options.generator));
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight_, bias_); }

std::string Linear::describe() const {
  return cat("Linear(", weight_.size(1), ", ", weight_.size(0),
             bias_.defined() ? ")" : ", bias=false)");
}

Conv2d::Conv2d(std::int64_t in, std::int64_t out, Pair kernel, const Conv2dOptions& options)
    : options_{std_pair(options.stride), std_pair(options.padding), std_pair(options.dilation),
               options.groups} {
  check_positive(in, "Conv2d", "the number of input channels");
  check_positive(out, "Conv2d", "the number of output channels");
  check_positive(options.groups, "Conv2d", "groups");
  check_window("Conv2d", {{"the kernel size", {kernel.h, kernel.w}, 1},
                          {"the stride", {options.stride.h, options.stride.w}, 1},
                          {"the padding", {options.padding.h, options.padding.w}, 0},
                          {"the dilation", {options.dilation.h, options.dilation.w}, 1}});
  if (in % options.groups != 0 || out % options.groups != 0)
    throw ValueError(cat("Conv2d: ", in, " input and ", out, " output channels do not divide into ",
                         options.groups, " groups"));
  const Shape shape{out, in / options.groups, kernel.h, kernel.w};
  weight_ = parameter("weight", initial_weight(shape, options));
  if (options.bias) bias_ = parameter("bias", default_bias(shape, options.generator));
}

Tensor Conv2d::forward(const Tensor& x) const { return conv2d(x, weight_, bias_, options_); }

std::string Conv2d::describe() const {
  const Shape& w = weight_.shape();
  std::string out =
      cat("Conv2d(", w[1] * options_.groups, ", ", w[0], ", ", text("kernel_size", {w[2], w[3]}));
  const std::pair<std::int64_t, std::int64_t> one{1, 1}, none{0, 0};
  if (options_.stride != one) out += ", " + text("stride", options_.stride);
  if (options_.padding != none) out += ", " + text("padding", options_.padding);
  if (options_.dilation != one) out += ", " + text("dilation", options_.dilation);
  if (options_.groups != 1) out += cat(", groups=", options_.groups);
  return out + (bias_.defined() ? ")" : ", bias=false)");
}

namespace {

Pool2dOptions pool_options(Pair kernel, const PoolOptions& options, const char* layer) {
  check_window(layer, {{"the kernel size", {kernel.h, kernel.w}, 1},
                       {"the stride", {options.stride.h, options.stride.w}, 0},
                       {"the padding", {options.padding.h, options.padding.w}, 0},
                       {"the dilation", {options.dilation.h, options.dilation.w}, 1}});
  Pool2dOptions out;
  out.kernel = std_pair(kernel);
  out.stride = std_pair(options.stride);
  out.padding = std_pair(options.padding);
  out.dilation = std_pair(options.dilation);
  out.ceil_mode = options.ceil_mode;
  out.count_include_pad = options.count_include_pad;
  return out;
}

std::string describe_pool(const char* layer, const Pool2dOptions& o) {
  std::string out = cat(layer, "(", text("kernel_size", o.kernel));
  const std::pair<std::int64_t, std::int64_t> none{0, 0};
  if (o.stride != none && o.stride != o.kernel) out += ", " + text("stride", o.stride);
  if (o.padding != none) out += ", " + text("padding", o.padding);
  if (o.ceil_mode) out += ", ceil_mode=true";
  return out + ")";
}

}  // namespace

MaxPool2d::MaxPool2d(Pair kernel, const PoolOptions& options)
    : options_(pool_options(kernel, options, "MaxPool2d")) {}
Tensor MaxPool2d::forward(const Tensor& x) const { return max_pool2d(x, options_); }
std::string MaxPool2d::describe() const { return describe_pool("MaxPool2d", options_); }

AvgPool2d::AvgPool2d(Pair kernel, const PoolOptions& options)
    : options_(pool_options(kernel, options, "AvgPool2d")), divisor_(options.divisor) {}
Tensor AvgPool2d::forward(const Tensor& x) const { return avg_pool2d(x, options_, divisor_); }
std::string AvgPool2d::describe() const { return describe_pool("AvgPool2d", options_); }

std::string AdaptiveAvgPool2d::describe() const {
  return cat("AdaptiveAvgPool2d(", text("output_size", std_pair(output_)), ")");
}
std::string AdaptiveMaxPool2d::describe() const {
  return cat("AdaptiveMaxPool2d(", text("output_size", std_pair(output_)), ")");
}

std::string Flatten::describe() const {
  return start_ == 1 && end_ == -1 ? "Flatten()" : cat("Flatten(", start_, ", ", end_, ")");
}

Dropout::Dropout(double p, Generator* generator) : p_(p), generator_(generator) {
  if (!(p >= 0 && p <= 1)) throw ValueError(cat("Dropout: p is ", p, ", must be in [0, 1]"));
}
std::string Dropout::describe() const { return cat("Dropout(p=", p_, ")"); }

std::string GELU::describe() const { return value_ ? "GELU(tanh)" : "GELU()"; }
std::string LeakyReLU::describe() const { return cat("LeakyReLU(", value_, ")"); }
std::string ELU::describe() const { return cat("ELU(", value_, ")"); }
std::string Softmax::describe() const { return cat("Softmax(", value_, ")"); }
std::string LogSoftmax::describe() const { return cat("LogSoftmax(", value_, ")"); }

AnyModule activation(const std::string& name) {
  using Make = AnyModule (*)();
  static constexpr std::pair<const char*, Make> kTable[] = {
      {"relu", [] { return AnyModule(ReLU()); }},
      {"tanh", [] { return AnyModule(Tanh()); }},
      {"sigmoid", [] { return AnyModule(Sigmoid()); }},
      {"gelu", [] { return AnyModule(GELU()); }},
      {"silu", [] { return AnyModule(SiLU()); }},
      {"leaky_relu", [] { return AnyModule(LeakyReLU()); }},
      {"elu", [] { return AnyModule(ELU()); }},
      {"mish", [] { return AnyModule(Mish()); }},
      {"relu6", [] { return AnyModule(ReLU6()); }},
      {"softplus", [] { return AnyModule(Softplus()); }},
      {"softsign", [] { return AnyModule(Softsign()); }},
      {"hardtanh", [] { return AnyModule(Hardtanh()); }},
      {"hardsigmoid", [] { return AnyModule(Hardsigmoid()); }},
      {"identity", [] { return AnyModule(Identity()); }},
  };
  std::vector<std::string> names;
  for (const auto& [known, make] : kTable) {
    if (name == known) return make();
    names.emplace_back(known);
  }
  const std::string near = nearest(name, names.data(), static_cast<int>(names.size()));
  throw ValueError(cat("'", name, "' is not an activation",
                       near.empty() ? "" : cat("; did you mean '", near, "'?"),
                       " (relu, tanh, sigmoid, gelu, silu, leaky_relu, elu, ...)"));
}

}  // namespace tenon::nn
