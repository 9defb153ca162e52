// The registry of backends: one entry for each kind of device, written once.
#include "device/backend.h"

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon {
namespace {

constexpr std::size_t kKinds = 16;
std::array<std::atomic<Backend*>, kKinds> g_backends{};

}  // namespace

void register_backend(Backend& backend) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto kind = static_cast<std::size_t>(backend.kind());
  if (kind >= kKinds)
    throw InternalError(cat("backend ", backend.name(), ": kind ", kind, " of ", kKinds));
  for (std::size_t k = 0; k < kKinds; ++k) {
    const Backend* known = g_backends[k].load(std::memory_order_acquire);
    if (known == &backend) return;
    if (known != nullptr && (k == kind || std::strcmp(known->name(), backend.name()) == 0))
      throw InternalError(cat("backend ", backend.name(), ": ", known->name(), " has its kind"));
  }
  g_backends[kind].store(&backend, std::memory_order_release);
}

Backend* find_backend(Device::Kind kind) noexcept {
  const auto k = static_cast<std::size_t>(kind);
  return k < kKinds ? g_backends[k].load(std::memory_order_acquire) : nullptr;
}

Backend& backend_of(Device device) {
  if (Backend* backend = find_backend(device.kind)) return *backend;
  throw DeviceError(cat(device.str(), " has no backend in this process: get it by device(\"",
                        device.str(), "\"), which says what is missing"));
}

std::vector<Backend*> registered_backends() {
  std::vector<Backend*> all;
  for (const auto& entry : g_backends)
    if (Backend* backend = entry.load(std::memory_order_acquire)) all.push_back(backend);
  return all;
}

}  // namespace tenon
