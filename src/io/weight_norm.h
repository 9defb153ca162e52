// Weights that PyTorch's parametrizations store as several tensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tenon/tensor.h>

namespace tenon::io {

/// A tensor from which a module computes its weight.
struct ParametrizedName {
  std::string weight;     ///< "conv.weight"
  std::string_view part;  ///< "original0", "0._u"; older functions: "g", "v", "orig", "u"
};
/// Splits "conv.parametrizations.weight.original0" or "conv.weight_g"; nullopt for other names.
/// Names of the older functions are recognised by their ending only; the caller checks that the
/// other parts exist.
std::optional<ParametrizedName> parametrized(std::string_view name);

/// Whether the shapes can come from torch.nn.utils.weight_norm(): the magnitude has the direction's
/// size in at most one axis, and 1 in all others.
bool is_weight_norm(const Shape& magnitude, const Shape& direction);
/// magnitude * direction / |direction|, with norms over the axes in which the magnitude has size 1.
/// float64 if the direction is float64, else float32. Requires floating tensors and
/// is_weight_norm().
Tensor weight_of_norm(const Tensor& magnitude, const Tensor& direction);

}  // namespace tenon::io
