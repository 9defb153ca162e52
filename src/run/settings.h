// From a context to what planning needs, and the engines of a device.
#pragma once

#include <cstdint>

#include <tenon/context.h>

#include "plan/program.h"

namespace tenon {

/// Options for programs on this device. Throws DeviceError when it cannot be used.
PlanOptions plan_options(const Context& context, Device device);

/// What a program depends on beside its graph and its device, as a number: contexts that plan alike
/// in this thread have the same.
std::uint64_t planning_key(const Context& context);

}  // namespace tenon
