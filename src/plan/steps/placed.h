// Programs on several devices. The graph is split where tensors change devices, each part is
// planned for its own device, and transfers are steps between the parts.
//
// A step of such a program is a call of one device's program (an opaque region with a body), a
// transfer (Op::ToDevice) or a collective of a group (device/communicator.h). Each step is queued
// on its devices. Transfers keep the order of both devices (device/memory.h), so no other
// synchronisation is needed. An arena value is in the arena of its own device.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plan/program/program.h"

namespace tenon {

/// The devices of a graph's values: devices with queues first, then by kind and index. Usually one.
std::vector<Device> devices_of(std::span<Node* const> order);

using OptionsFor = std::function<PlanOptions(Device)>;

/// Like plan_program(), for a graph on several `devices`. `options` is called for each device.
std::shared_ptr<const Program> plan_placed(std::span<const Tensor> roots,
                                           std::span<Node* const> leaves,
                                           std::span<const Device> devices,
                                           const OptionsFor& options);

/// The arena of such a program on one device; offsets of its values start at `begin`.
struct DeviceArena {
  Device device;
  std::int64_t begin = 0, bytes = 0;
};
std::vector<DeviceArena> arenas_of(const Program& program);

/// The device whose queue a step is in; for a collective, the first member's device.
Device device_of(const Program& program, const Step& step);
/// Binds what the body of a call reads and writes; the call's arena begins at `arena`.
void bind_call(const Opaque& call, std::byte* const* outside, std::byte* arena,
               std::vector<std::byte*>& inside);

}  // namespace tenon
