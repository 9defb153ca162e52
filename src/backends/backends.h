// The backends that this library is made of: the only list of them. Everything else finds them in
// device/backend.h.
#pragma once

namespace tenon {

/// Registers them; later calls do nothing. Touches no device.
void register_backends();

}  // namespace tenon
