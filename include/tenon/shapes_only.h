// ShapesOnly: builds networks without memory for their variables, to plan or count them without
// running them.
//
// The guard affects its thread only. A graph that was built under it can be planned and its kernels
// can be compiled, but it must not be evaluated.
#pragma once

#include <tenon/tensor.h>

namespace tenon {

/// While a ShapesOnly lives, variables that this thread creates have a shape, a dtype and a device,
/// but no memory. Their initial values are not computed, and set_value() does nothing. Generators
/// do not draw and do not advance. Nothing waits for a device. PyTorch: the "meta" device.
class TENON_API ShapesOnly {
 public:
  ShapesOnly() noexcept;                              ///< Begins.
  ~ShapesOnly();                                      ///< Ends.
  ShapesOnly(const ShapesOnly&) = delete;             ///< Not copyable.
  ShapesOnly& operator=(const ShapesOnly&) = delete;  ///< Not copyable.

  /// Whether a ShapesOnly lives in this thread.
  static bool is_on() noexcept;

 private:
  const bool before_;
};

/// A leaf tensor without memory; it can be planned with but not evaluated.
TENON_API Tensor without_memory(const Shape& shape, DType dtype, Device device = {});

}  // namespace tenon
