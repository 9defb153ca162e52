// Activation functions by name, those of <tenon/nn.h> and two more that published Transformers
// have.
#pragma once

#include <string>
#include <vector>

#include <tenon/nn.h>

namespace tenon::models {

/// The activations that the name of a Transformer may choose, as Tenon spells them.
const std::vector<std::string>& transformer_activations();

/// Applies the activation of this name to x; names as in named_activation().
Tensor activated(const std::string& name, const Tensor& x);

/// nn::activation(), and "gelu_tanh" and "quick_gelu", x · sigmoid(1.702 x). Throws ValueError for
/// another name.
nn::AnyModule named_activation(const std::string& name);

}  // namespace tenon::models
