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
  std::string_view part;  ///< "original0", "0._u"; of the older functions "g", "v", "orig", "u"
};
/// What "conv.parametrizations.weight.original0" or "conv.weight_g" is of; nothing for other names.
/// The older functions' names are recognised by their ending alone: whoever asks knows whether the
/// other parts are there.
std::optional<ParametrizedName> parametrized(std::string_view name);

/// Whether torch.nn.utils.weight_norm() can have given these shapes: the magnitude has the
/// direction's size in one axis, or in none, and 1 in all others.
bool is_weight_norm(const Shape& magnitude, const Shape& direction);
/// magnitude * direction / |direction|, with norms over the axes in which the magnitude has size 1;
/// float64 where the direction is, or else float32. Both are floating and is_weight_norm().
Tensor weight_of_norm(const Tensor& magnitude, const Tensor& direction);

}  // namespace tenon::io
