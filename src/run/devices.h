// Opening devices for the rest of the room.
#pragma once

#include <tenon/device.h>

namespace tenon {

/// Makes the device's memory available to Buffer. Throws DeviceError when it cannot be used.
void open_device(Device device);

}  // namespace tenon
