// Central differences: (f(x + h) - f(x - h)) / 2h, with an error of order h^2 and rounding of order
// eps / h.
#include "grad/numeric.h"

#include <tenon/error.h>

#include "base/make_error.h"

namespace tenon {

std::vector<std::vector<double>> numeric_gradient(const ScalarFunction& f,
                                                  const std::vector<Tensor>& inputs, double step) {
  std::vector<std::vector<double>> gradients;
  std::vector<Tensor> at = inputs;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].dtype() != DType::Float64)
      throw make_error<DTypeError>("numeric_gradient: input ", k, " is ", inputs[k].dtype(),
                                   "; differences need float64");
    std::vector<double> values = inputs[k].to_vector<double>(), gradient(values.size());
    for (std::size_t e = 0; e < values.size(); ++e) {
      const double centre = values[e];
      values[e] = centre + step;
      at[k] = Tensor::from(values, inputs[k].shape());
      const double above = f(at).item();
      values[e] = centre - step;
      at[k] = Tensor::from(values, inputs[k].shape());
      gradient[e] = (above - f(at).item()) / (2 * step);
      values[e] = centre;
    }
    at[k] = inputs[k];
    gradients.push_back(std::move(gradient));
  }
  return gradients;
}

}  // namespace tenon
