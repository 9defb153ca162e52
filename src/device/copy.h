// Copies between memory of any two devices.
#pragma once

#include <cstddef>

#include <tenon/device.h>

namespace tenon {

/// In the order of both devices' work. Memory of the host may be reused, or read, when it returns.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device,
                std::size_t bytes);

}  // namespace tenon
