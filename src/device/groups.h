// The groups of devices of this process, and the group that any devices can form.
#pragma once

#include <memory>
#include <span>

#include <tenon/device.h>

#include "device/communicator.h"

namespace tenon {

/// A group of arbitrary devices of this process, which exchanges through host memory.
std::unique_ptr<Communicator> make_staged_communicator(std::span<const Device> members);

/// The process's group of these devices, by rank: their backend's, or a staged one if they belong
/// to several backends. Created on first use and kept.
Communicator& communicator_of(std::span<const Device> members);

}  // namespace tenon
