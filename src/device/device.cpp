// Prints and parses device names. Whether a device can be used is checked in src/run.
#include <charconv>
#include <string_view>

#include <tenon/error.h>

#include "base/str.h"
#include "device/backend.h"
#include "device/parse.h"

namespace tenon {
namespace {

// The public kinds have names even if their backends are not registered.
std::string kind_name(Device::Kind kind) {
  if (kind == Device::Kind::Cpu) return "cpu";
  if (kind == Device::Kind::Cuda) return "cuda";
  const Backend* backend = find_backend(kind);
  return backend != nullptr ? backend->name() : cat("backend", static_cast<int>(kind));
}

std::vector<Device::Kind> gpus() {
  std::vector<Device::Kind> kinds{Device::Kind::Cuda};
  for (const Backend* backend : registered_backends())
    if (backend->kind() > Device::Kind::Cuda) kinds.push_back(backend->kind());
  return kinds;
}

}  // namespace

std::string Device::str() const {
  return kind == Kind::Cpu ? "cpu" : cat(kind_name(kind), ":", index);
}

Device parse_device(const std::string& text) {
  if (text == "cpu") return {};
  const std::size_t colon = text.find(':');
  for (const Device::Kind kind : gpus()) {
    if (std::string_view(text).substr(0, colon) != kind_name(kind)) continue;
    Device device{kind, 0};
    if (colon == std::string::npos) return device;
    const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, device.index);
    if (error == std::errc() && stop == end && device.index >= 0) return device;
  }
  throw ValueError(cat("device '", text, "' is unknown: use cpu, cuda or cuda:N"));
}

}  // namespace tenon
