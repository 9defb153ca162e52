// Linear, Flatten, Dropout and activation modules.
#include <tenon/error.h>
#include <tenon/layers.h>
#include <tenon/more_layers.h>

#include "base/make_error.h"
#include "base/str.h"
#include "nn/initial.h"

namespace tenon::nn {
namespace {

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

std::string Softplus::describe() const {
  return beta_ == 1 && threshold_ == 20 ? "Softplus()"
                                        : cat("Softplus(", beta_, ", ", threshold_, ")");
}

Hardtanh::Hardtanh(double low, double high) : low_(low), high_(high) {
  if (!(low < high))
    throw make_error<ValueError>("Hardtanh: the limits are ", low, " and ", high,
                                 ", must be ascending");
}
Tensor Hardtanh::forward(const Tensor& x) const {
  if (low_ == -1 && high_ == 1) return hardtanh(x);
  return where(le(x, low_), low_, where(ge(x, high_), high_, x));
}
std::string Hardtanh::describe() const {
  return low_ == -1 && high_ == 1 ? "Hardtanh()" : cat("Hardtanh(", low_, ", ", high_, ")");
}

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
      {"hardswish", [] { return AnyModule(Hardswish()); }},
      {"selu", [] { return AnyModule(SELU()); }},
      {"celu", [] { return AnyModule(CELU()); }},
      {"logsigmoid", [] { return AnyModule(LogSigmoid()); }},
      {"tanhshrink", [] { return AnyModule(Tanhshrink()); }},
      {"softshrink", [] { return AnyModule(Softshrink()); }},
      {"hardshrink", [] { return AnyModule(Hardshrink()); }},
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
