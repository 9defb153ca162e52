// The backends of this library: the only list of them. All other code finds them through
// device/backend.h.
#pragma once

namespace tenon {

/// Registers all backends; later calls do nothing. Touches no device.
void register_backends();

}  // namespace tenon
