// Opens devices by name, or reports what is missing.
#include "run/devices.h"

#include <tenon/device.h>

#include "backends/backends.h"
#include "device/parse.h"
#include "graph/context.h"

namespace tenon {

Backend& backend_for(Device device) {
  register_backends();
  return backend_of(device);
}

Device device(const std::string& text) {
  const Device parsed = parse_device(text);
  backend_for(parsed).open(parsed.index);
  return parsed;
}

void set_device(Device device) {
  backend_for(device).open(device.index);
  this_context().device = device;
}

void set_device(const std::string& text) { set_device(device(text)); }

void synchronize() {
  for (Backend* backend : registered_backends()) backend->synchronize();
}

Device current_device() { return this_context().device; }

}  // namespace tenon
