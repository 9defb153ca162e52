// Printing and parsing of device names. Whether a device can be used is asked in run/.
#include "device/parse.h"

#include <charconv>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon {

std::string Device::str() const { return kind == Kind::Cpu ? "cpu" : cat("cuda:", index); }

Device parse_device(const std::string& text) {
  if (text == "cpu") return {};
  if (text == "cuda") return {Device::Kind::Cuda, 0};
  if (text.rfind("cuda:", 0) == 0) {
    Device device{Device::Kind::Cuda, 0};
    const char *begin = text.data() + 5, *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, device.index);
    if (error == std::errc() && stop == end && device.index >= 0) return device;
  }
  throw ValueError(cat("device '", text, "' is unknown: use cpu, cuda or cuda:N"));
}

}  // namespace tenon
