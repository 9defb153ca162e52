// The queues of devices: which thread may queue work.
#pragma once

#include <mutex>

#include <tenon/device.h>

namespace tenon {

/// While held, only this thread queues work on the GPU. So programs of several threads run one
/// after another, and a reader never sees a half-assigned value. Empty for the CPU.
std::unique_lock<std::mutex> lock_queue(Device device);

}  // namespace tenon
