// Copies a tensor's values to the host for code that inspects them there. On a GPU such an
// inspection would need kernels that nothing else needs.
#pragma once

#include <tenon/tensor.h>

namespace tenon {

/// The tensor itself if it is on the host, otherwise a copy there. The result has a value.
inline Tensor on_host(const Tensor& t) {
  if (t.device().kind == Device::Kind::Cpu) return t;
  return Tensor::from_data(t.data(), t.shape(), t.dtype(), Device{});
}

}  // namespace tenon
