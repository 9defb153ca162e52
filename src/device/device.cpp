// Parsing and printing of device names.
#include <tenon/device.h>
#include <tenon/error.h>

#include "base/str.h"

namespace tenon {

std::string Device::str() const { return kind == Kind::Cpu ? "cpu" : cat("cuda:", index); }

Device device(const std::string& text) {
  if (text == "cpu") return {};
  if (text == "cuda" || text.rfind("cuda:", 0) == 0)
    throw DeviceError(cat("device '", text, "': this build serves the CPU only; use 'cpu'"));
  throw ValueError(cat("device '", text, "' is unknown: use 'cpu'"));
}

}  // namespace tenon
