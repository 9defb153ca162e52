// Stream output of tensors, shapes, dtypes and devices.
#include <tenon/print.h>

#include <ostream>

namespace tenon {

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << (tensor.defined() ? tensor.str() : "[undefined tensor]");
}
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.str(); }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }
std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.str(); }

}  // namespace tenon
