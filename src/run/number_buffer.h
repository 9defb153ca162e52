// Buffers that hold one number, so that programs can read the number as a value.
#pragma once

#include <memory>

#include <tenon/device.h>
#include <tenon/dtype.h>
#include <tenon/number.h>

namespace tenon {

class Buffer;

/// A buffer that contains a number as an element of this type.
std::shared_ptr<Buffer> number_buffer(Scalar value, DType dtype, Device device);

}  // namespace tenon
