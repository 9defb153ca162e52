// The queues of devices: which thread may queue work.
#include "run/queue.h"

#include <array>

#include "base/index.h"

namespace tenon {

std::unique_lock<std::mutex> lock_queue(Device device) {
  constexpr std::size_t kKinds = 16, kOfAKind = 64;
  static std::array<std::mutex, kKinds * kOfAKind> queues;
  if (device.kind == Device::Kind::Cpu) return {};
  return std::unique_lock(queues[static_cast<std::size_t>(device.kind) % kKinds * kOfAKind +
                                 at(device.index) % kOfAKind]);
}

}  // namespace tenon
