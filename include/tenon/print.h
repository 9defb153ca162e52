// Stream output: `std::cout << x << x.shape() << x.dtype() << x.device()`. Modules have their
// operator<< in module.h.
#pragma once

#include <iosfwd>

#include <tenon/tensor.h>

namespace tenon {

/// Writes the tensor's str(); "[undefined tensor]" for one without a value. Evaluates.
TENON_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
/// Writes the shape's str(): "[64, 3, 28, 28]".
TENON_API std::ostream& operator<<(std::ostream& out, const Shape& shape);
/// Writes the name(): "float32".
TENON_API std::ostream& operator<<(std::ostream& out, DType dtype);
/// Writes the device's str(): "cpu" or "cuda:0".
TENON_API std::ostream& operator<<(std::ostream& out, const Device& device);

}  // namespace tenon
