// Numeric derivatives for checking the rules: central differences in float64.
//
// For tests: evaluates the function twice for each element of each input.
#pragma once

#include <functional>
#include <vector>

#include <tenon/tensor.h>

namespace tenon {

using ScalarFunction = std::function<Tensor(const std::vector<Tensor>&)>;

/// d f / d inputs[k][e] at [k][e]. The inputs are float64; f returns one number.
std::vector<std::vector<double>> numeric_gradient(const ScalarFunction& f,
                                                  const std::vector<Tensor>& inputs,
                                                  double step = 1e-6);

}  // namespace tenon
