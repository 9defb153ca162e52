// Access to backends for src/run, which knows no backend by name.
#pragma once

#include "device/backend.h"

namespace tenon {

/// The device's backend. Throws DeviceError if this process has no backend of the device's kind.
Backend& backend_for(Device device);

}  // namespace tenon
