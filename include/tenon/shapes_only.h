// Variables without memory: networks that are planned, summed up or counted, not run.
//
// The guard belongs to the thread. What is built under it can be planned and its kernels compiled;
// it must not be evaluated.
#pragma once

#include <tenon/tensor.h>

namespace tenon {

/// While one lives, variables that this thread makes have a shape, a dtype and a device, but no
/// memory: what they would hold is not computed, and setting their values does nothing. Generators
/// draw nothing and stay where they are, and no device is waited for.
class TENON_API ShapesOnly {
 public:
  ShapesOnly() noexcept;
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;

  /// Whether one lives in this thread.
  static bool is_on() noexcept;

 private:
  const bool before_;
};

/// A leaf that has no memory either.
TENON_API Tensor without_memory(const Shape& shape, DType dtype, Device device = {});

}  // namespace tenon
