// Backends for the rest of the room, which knows none of them by name.
#pragma once

#include "device/backend.h"

namespace tenon {

/// The device's backend. Throws DeviceError where this process has none of its kind.
Backend& backend_for(Device device);

}  // namespace tenon
