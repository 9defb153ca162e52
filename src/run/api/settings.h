// Planner options derived from a context, and the engines of a device.
#pragma once

#include <cstdint>

#include <tenon/context.h>

#include "plan/program/program.h"

namespace tenon {

/// Options for programs on this device. Throws DeviceError when it cannot be used.
PlanOptions plan_options(const Context& context, Device device);

/// A number for everything that a program depends on besides its graph and device. Contexts that
/// plan alike in this thread have the same number.
std::uint64_t planning_key(const Context& context);

}  // namespace tenon
