// Layer types of network files that treat each value alone or change the shape alone: activations,
// dropout, scaling, flattening, reshaping and transposition.
#include <tenon/functional.h>

#include "base/str.h"
#include "models/activations.h"
#include "models/file_kinds.h"

namespace tenon::models {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

FileLayer dropout_layer(LayerKeys& keys, const LayerContext& at) {
  return layer_of(nn::Dropout(keys.number("dropout", 0.5, 0, 1), at.generator), ByPosition::Each);
}

FileLayer flatten_layer(LayerKeys& keys, const LayerContext&) {
  return layer_of(nn::Flatten(static_cast<int>(keys.whole("flatten", 1, 0, 7)),
                              static_cast<int>(keys.whole("end", -1, -8, 7))));
}

FileLayer activation_layer(LayerKeys& keys, const LayerContext&) {
  (void)keys.own();
  return layer_of(nn::activation(keys.kind()), ByPosition::Each);
}

// The activation of the top-level key `activation`.
FileLayer own_activation_layer(LayerKeys& keys, const LayerContext& at) {
  (void)keys.own();
  if (at.activation.empty())
    keys.refuse(
        "the layer \"activation\" applies the activation of the file, and the file has none: write "
        "activation = \"relu\" above 'layers'");
  return layer_of(named_activation(at.activation), ByPosition::Each);
}

// Activation functions without a module in nn/.
FileLayer function_layer(LayerKeys& keys, const LayerContext&) {
  (void)keys.own();
  const std::string& kind = keys.kind();
  return function_of(kind == "hardswish" ? "Hardswish()"
                     : kind == "selu"    ? "SELU()"
                                         : "LogSigmoid()",
                     kind == "hardswish" ? Function([](const Tensor& x) { return hardswish(x); })
                     : kind == "selu"    ? Function([](const Tensor& x) { return selu(x); })
                                         : Function([](const Tensor& x) { return logsigmoid(x); }),
                     ByPosition::Each);
}
FileLayer celu_layer(LayerKeys& keys, const LayerContext&) {
  const double alpha = keys.number("celu", 1, 1e-9, 1e9);
  return function_of(
      cat("CELU(alpha=", alpha, ")"), [alpha](const Tensor& x) { return celu(x, alpha); },
      ByPosition::Each);
}
FileLayer glu_layer(LayerKeys& keys, const LayerContext& at) {
  const int axis = static_cast<int>(keys.whole("glu", -1, -8, 7));
  return function_of(
      cat("GLU(dim=", axis, ")"), [axis](const Tensor& x) { return glu(x, axis); },
      each_if(axis == -1 || axis == at.x.rank() - 1));
}

FileLayer gelu_layer(LayerKeys& keys, const LayerContext&) {
  return layer_of(nn::GELU(keys.word("gelu", {"exact", "tanh"}) == "tanh"), ByPosition::Each);
}
FileLayer leaky_relu_layer(LayerKeys& keys, const LayerContext&) {
  return layer_of(nn::LeakyReLU(keys.number("leaky_relu", 0.01, -1e9, 1e9)), ByPosition::Each);
}
FileLayer elu_layer(LayerKeys& keys, const LayerContext&) {
  return layer_of(nn::ELU(keys.number("elu", 1, -1e9, 1e9)), ByPosition::Each);
}
FileLayer scaled_tanh_layer(LayerKeys& keys, const LayerContext&) {
  const double scale = keys.number("scaled_tanh", 1.7159, -1e9, 1e9),
               slope = keys.number("slope", 2.0 / 3, -1e9, 1e9);
  return function_of(
      cat("ScaledTanh(", scale, ", slope=", slope, ")"),
      [=](const Tensor& x) { return tanh(x * slope) * scale; }, ByPosition::Each);
}
template <class Normalised>
FileLayer softmax_layer(LayerKeys& keys, const LayerContext& at) {
  const int axis = static_cast<int>(keys.whole(keys.kind(), -1, -8, 7));
  return layer_of(Normalised(axis), each_if(axis == -1 || axis == at.x.rank() - 1));
}

FileLayer transpose_layer(LayerKeys& keys, const LayerContext&) {
  const std::vector<std::int64_t> axes = keys.axes("transpose", 2, 1, 1);
  const int a = static_cast<int>(axes[0]), b = static_cast<int>(axes[1]);
  return function_of(cat("Transpose(", a, ", ", b, ")"),
                     [a, b](const Tensor& x) { return transpose(x, a, b); });
}

FileLayer reshape_layer(LayerKeys& keys, const LayerContext& at) {
  const io::TomlValue& sizes = keys.own("the sizes of a sample", "{ reshape = [16, 7, 7] }");
  Shape shape;
  for (const io::TomlValue& size : sizes.items)
    shape.push_back(whole_of(size, keys.variables(), "reshape"));
  if (shape.numel() != at.x.numel() / 2)
    keys.refuse(
        cat("reshape to ", shape, ": ", shape_text(at.x), " has a different number of values"));
  return function_of(cat("Reshape(", shape, ")"), [shape](const Tensor& x) {
    Ints all{x.size(0)};
    for (const std::int64_t size : shape) all.push_back(size);
    return reshape(x, all);
  });
}

FileLayer scale_layer(LayerKeys& keys, const LayerContext&) {
  keys.own("a factor", "{ scale = 0.5 }");
  const double factor = keys.number("scale", 1, -1e30, 1e30);
  return function_of(
      cat("Scale(", factor, ")"), [factor](const Tensor& x) { return x * factor; },
      ByPosition::Each);
}

constexpr FileKind kActivationKinds[] = {
    {"dropout", dropout_layer},
    {"flatten", flatten_layer, true},
    {"reshape", reshape_layer, true},
    {"transpose", transpose_layer, true},
    {"scale", scale_layer},
    {"activation", own_activation_layer},
    {"relu", activation_layer},
    {"relu6", activation_layer},
    {"tanh", activation_layer},
    {"scaled_tanh", scaled_tanh_layer},
    {"sigmoid", activation_layer},
    {"gelu", gelu_layer},
    {"silu", activation_layer},
    {"mish", activation_layer},
    {"elu", elu_layer},
    {"leaky_relu", leaky_relu_layer},
    {"softplus", activation_layer},
    {"softsign", activation_layer},
    {"hardtanh", activation_layer},
    {"hardsigmoid", activation_layer},
    {"identity", activation_layer, true},
    {"hardswish", function_layer},
    {"selu", function_layer},
    {"logsigmoid", function_layer},
    {"celu", celu_layer},
    {"glu", glu_layer},
    {"softmax", softmax_layer<nn::Softmax>},
    {"log_softmax", softmax_layer<nn::LogSoftmax>},
};

}  // namespace

std::span<const FileKind> activation_kinds() { return kActivationKinds; }

}  // namespace tenon::models
