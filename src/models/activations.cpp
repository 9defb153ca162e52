// The table of activations for Transformers.
#include "models/activations.h"

#include "models/file_modules.h"

namespace tenon::models {
namespace {

Tensor quick_gelu(const Tensor& x) { return x * sigmoid(x * 1.702); }

}  // namespace

const std::vector<std::string>& transformer_activations() {
  static const std::vector<std::string> names{"gelu",    "gelu_tanh", "quick_gelu", "relu",
                                              "relu6",   "silu",      "mish",       "tanh",
                                              "sigmoid", "identity"};
  return names;
}

Tensor activated(const std::string& name, const Tensor& x) {
  if (name == "gelu") return gelu(x);
  if (name == "gelu_tanh") return gelu(x, true);
  if (name == "quick_gelu") return quick_gelu(x);
  return nn::activation(name)(x);
}

nn::AnyModule named_activation(const std::string& name) {
  if (name == "gelu_tanh") return nn::GELU(true);
  if (name == "quick_gelu") return FileFunction("QuickGELU()", quick_gelu);
  return nn::activation(name);
}

}  // namespace tenon::models
