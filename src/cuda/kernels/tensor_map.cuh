// What the tensor copy engine is told of a tensor in memory; host and device share it.
#pragma once

namespace tenon::cuda {

/// A CUtensorMap: made by the driver, opaque to everybody else.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

}  // namespace tenon::cuda
