// What decides, besides settings and data, which bits a run gets.
#pragma once

#include <string>

namespace tenon::train {

/// The current device, by what decides the rounding of its kernels: "cpu avx512", "NVIDIA H200".
std::string device_text();

}  // namespace tenon::train
