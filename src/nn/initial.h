// PyTorch's initial values of linear and convolutional layers: uniform in ±1 / sqrt(fan-in).
#pragma once

#include <cmath>

#include <tenon/nn.h>

namespace tenon::nn {

/// A weight from `initializer`, or by PyTorch's default if that is empty.
inline Tensor initial_weight(const Shape& shape, const Initializer& initializer,
                             const OptionalGenerator& generator) {
  if (initializer) return initializer(shape, generator);
  return init::kaiming_uniform(shape, std::sqrt(5.0), init::FanMode::In, generator);
}

/// A bias of `out` elements for a weight of this shape. The fan-in is that of the second axis, for
/// transposed convolutions too, as in PyTorch.
inline Tensor initial_bias(std::int64_t out, const Shape& weight,
                           const OptionalGenerator& generator) {
  const double limit = 1.0 / std::sqrt(static_cast<double>(init::fans(weight).first));
  return init::uniform({out}, -limit, limit, generator);
}

}  // namespace tenon::nn
