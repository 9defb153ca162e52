// Settings of the process that shape programs, and the engines they select.
#pragma once

#include <cstdint>
#include <span>

#include <tenon/eval.h>

#include "plan/program.h"

namespace tenon {

/// What planning depends on, beside the graph. `version` changes whenever any of it does.
struct Settings {
  PlanOptions options;
  std::uint64_t version = 0;
};
/// For programs on this device. Throws DeviceError when it cannot be used.
Settings current_settings(Device device);
std::uint64_t settings_version();
/// As after a change: programs that are planned already are not used again.
void plan_anew();

}  // namespace tenon
