// A number as a value that programs read.
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
