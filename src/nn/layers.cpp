// Linear, Conv2d, 2-D pooling, Flatten, Dropout and activation modules. Initial parameters are
// PyTorch's defaults: uniform in ±1 / sqrt(fan-in).
#include <cmath>

#include <tenon/error.h>
#include <tenon/nn.h>
#include <tenon/pooling.h>

#include "base/make_error.h"
#include "base/str.h"
#include "nn/initial.h"
#include "nn/windows.h"

namespace tenon::nn {
namespace {

std::string text(const char* name, Pair pair) { return cat(name, "=(", pair.h, ", ", pair.w, ")"); }

void check_positive(std::int64_t value, const char* layer, const char* what) {
  if (value < 1)
    throw make_error<ValueError>(layer, ": ", what, " is ", value, ", must be at least 1");
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& options) {
  check_positive(in, "Linear", "the number of inputs");
  check_positive(out, "Linear", "the number of outputs");
  const Shape shape{out, in};
  if (const Tensor& tied = options.tied_weight; tied.defined()) {
    if (tied.shape() != shape)
      throw make_error<ShapeError>("Linear: the tied weight is ", tied.shape(), ", must be ",
                                   shape);
    weight_ = tie("weight", tied);
  } else {
    weight_ = parameter("weight", initial_weight(shape, options.weight_init, options.generator));
  }
  if (options.bias) bias_ = parameter("bias", initial_bias(out, shape, options.generator));
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight_, bias_); }

std::string Linear::describe() const {
  return cat("Linear(", weight_.size(1), ", ", weight_.size(0),
             bias_.defined() ? ")" : ", bias=false)");
}

namespace {

Pool2dOptions pool_options(Pair kernel, const PoolOptions& options, const char* layer) {
  check_window(layer, {{"the kernel size", {kernel.h, kernel.w}, 1},
                       {"the stride", {options.stride.h, options.stride.w}, 0},
                       {"the padding", {options.padding.h, options.padding.w}, 0},
                       {"the dilation", {options.dilation.h, options.dilation.w}, 1}});
  Pool2dOptions out;
  out.kernel = kernel;
  out.stride = options.stride;
  out.padding = options.padding;
  out.dilation = options.dilation;
  out.ceil_mode = options.ceil_mode;
  out.count_include_pad = options.count_include_pad;
  return out;
}

std::string describe_pool(const char* layer, const Pool2dOptions& o) {
  std::string out = cat(layer, "(", text("kernel_size", o.kernel));
  const Pair none = 0;
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
  return cat("AdaptiveAvgPool2d(", text("output_size", output_), ")");
}
std::string AdaptiveMaxPool2d::describe() const {
  return cat("AdaptiveMaxPool2d(", text("output_size", output_), ")");
}

std::string Flatten::describe() const {
  return start_ == 1 && end_ == -1 ? "Flatten()" : cat("Flatten(", start_, ", ", end_, ")");
}

Dropout::Dropout(double p, const OptionalGenerator& generator) : p_(p), generator_(generator) {
  if (!(p >= 0 && p <= 1)) throw make_error<ValueError>("Dropout: p is ", p, ", must be in [0, 1]");
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
  throw make_error<ValueError>("'", name, "' is not an activation",
                               near.empty() ? "" : cat("; did you mean '", near, "'?"),
                               " (relu, tanh, sigmoid, gelu, silu, leaky_relu, elu, ...)");
}

}  // namespace tenon::nn
