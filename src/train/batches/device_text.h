// A text for the device. Together with settings and data, the device decides the bits of a run.
#pragma once

#include <string>

namespace tenon::train {

/// Describes the current device by the facts that decide how its kernels round: "cpu avx512",
/// "NVIDIA H200".
std::string device_text();

}  // namespace tenon::train
