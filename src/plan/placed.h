// Programs on several devices: a graph is cut where tensors change their device, each part is
// planned for its own, and transfers stand between as steps.
//
// A step of such a program is a call of one device's program (an opaque region with a body), a
// transfer (Op::ToDevice) or a collective of a group (device/communicator.h). Each is queued on its
// devices; transfers keep the order of both (device/memory.h), so nothing else waits. Values in the
// arena lie in that of their own device.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plan/program.h"

namespace tenon {

/// The devices that a graph's values live on, those with queues first, in the order of kind and
/// index. One, as a rule.
std::vector<Device> devices_of(std::span<Node* const> order);

using OptionsFor = std::function<PlanOptions(Device)>;

/// As plan_program() for a graph on several `devices`; options are asked for each.
std::shared_ptr<const Program> plan_placed(std::span<const Tensor> roots,
                                           std::span<Node* const> leaves,
                                           std::span<const Device> devices,
                                           const OptionsFor& options);

/// What such a program needs on one of its devices: its values' offsets start at `begin`.
struct DeviceArena {
  Device device;
  std::int64_t begin = 0, bytes = 0;
};
std::vector<DeviceArena> arenas_of(const Program& program);

/// Whose queue a step stands in; of a collective, the first of them.
Device device_of(const Program& program, const Step& step);
/// Sets what the body of a call reads and writes; its arena begins at `arena`.
void bind_call(const Opaque& call, std::byte* const* outside, std::byte* arena,
               std::vector<std::byte*>& inside);

}  // namespace tenon
