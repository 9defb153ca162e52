// Numbers of a device for whoever asks about them on the host: a GPU would need kernels for the
// question that nothing else needs.
#pragma once

#include <tenon/tensor.h>

namespace tenon {

/// The tensor where it is on the host, else a copy there. Has a value.
inline Tensor on_host(const Tensor& t) {
  if (t.device().kind == Device::Kind::Cpu) return t;
  return Tensor::from_data(t.data(), t.shape(), t.dtype(), Device{});
}

}  // namespace tenon
