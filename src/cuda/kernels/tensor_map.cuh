// The descriptor of a tensor in memory for TMA; host and device share it.
#pragma once

namespace tenon::cuda {

/// A CUtensorMap: made by the driver, opaque to all other code.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

}  // namespace tenon::cuda
