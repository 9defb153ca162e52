// Copies between memory of any two devices.
#pragma once

#include <cstddef>

#include <tenon/device.h>

namespace tenon {

/// In the order of both devices' work. When the call returns, host memory may be reused or read.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device,
                std::size_t bytes);

}  // namespace tenon
